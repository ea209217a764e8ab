"""Fixtures for tests in a real browser."""

from tests.experiments.platforms.conftest import chromium, visit

__all__ = ["chromium", "visit"]
