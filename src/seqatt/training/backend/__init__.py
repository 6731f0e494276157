"""How steps run on a CPU and on a GPU."""
