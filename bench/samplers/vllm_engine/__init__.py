"""vLLM as the sampler: in this process or behind HTTP, told so that its log-probabilities are those of the policy."""
