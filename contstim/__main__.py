"""`python -m contstim`."""

from contstim.cli import main

main()
