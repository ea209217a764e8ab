"""The version, in one place for the build, the records and the command line."""

__version__ = "0.1.0"
"""The version of the package that is installed."""
