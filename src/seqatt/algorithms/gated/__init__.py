"""Methods that are a gate and a schedule, trained by the training loop: one file each."""
