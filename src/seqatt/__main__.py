"""``python -m seqatt`` is the command line."""

from seqatt.cli.main import main

main()
