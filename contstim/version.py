"""The version of the package, which the build, the records and the command line read."""

__version__ = "0.1.0"
"""Version of the package."""
