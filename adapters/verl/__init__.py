"""Methods and the monitor inside verl, switched on in its configuration. verl is imported when it asks for them.

actor_rollout_ref.actor.policy_loss.loss_mode="vcpo_bench:tis(cap=8)"   # methods that need one row at a time
trainer.v1.trainer_mode=vcpo_bench                                      # with it: every method
trainer.v1.trainer_mode=vcpo_bench_monitor                              # verl's own losses, with our gauges
"""
