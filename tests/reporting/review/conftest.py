"""A real browser, and pages in files."""

from tests.experiments.platforms.conftest import chromium, visit

__all__ = ["chromium", "visit"]
