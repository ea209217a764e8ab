"""Errors that several rooms raise alike."""

from __future__ import annotations

import importlib

import pytest

from contstim.errors import WorkerError, needing


def test_an_extra_that_is_missing_is_named_with_its_installation() -> None:
    message = r"Collecting needs nothing_of_this_name, .*: pip install 'contstim\[collect\]'\."
    with pytest.raises(WorkerError, match=message), needing("collect", "Collecting"):
        importlib.import_module("nothing_of_this_name")
