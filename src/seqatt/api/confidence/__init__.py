"""How sure an answer is: what each feature adds, and whether the features are better than random ones."""
