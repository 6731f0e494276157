"""Input data: tables in memory and files, read and encoded as rows of numbers."""
