"""`python -m contstim`."""

from contstim.cli import main

if __name__ == "__main__":
    main()
