"""From what people have to rows of numbers."""
