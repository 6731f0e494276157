"""Gates: how features enter a model, and how they are scored."""
