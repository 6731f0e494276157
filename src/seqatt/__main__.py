"""``python -m seqatt`` is the command line."""

from seqatt.cli import main

main()
