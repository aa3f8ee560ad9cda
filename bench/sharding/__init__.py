"""One cell on several processes of a machine: parameters, gradients and optimizer sharded by FSDP2 (`fully_shard`)."""
