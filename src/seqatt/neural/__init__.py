"""Methods that train a network: one engine, with gates and schedules."""
