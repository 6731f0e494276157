"""How features enter the model and how they are judged: one file a gate."""
