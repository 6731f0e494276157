"""The training loop and everything it trains."""
