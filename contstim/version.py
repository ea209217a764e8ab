"""Version of the package, for the build, the records and the command line."""

__version__ = "0.1.0"
"""Version of the package."""
