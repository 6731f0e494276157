"""Networks that evaluate sets of features: many of them train in one step on a CPU."""
