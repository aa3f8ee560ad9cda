"""What a run shows while it trains: importance weights, ESS, tails, gradients."""
