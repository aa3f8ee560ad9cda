"""The lags that the studies realized, beside those they asked for."""
