"""The version, in one place: the build, the records beside every output and the command line read it."""

__version__ = "0.1.0"
