"""Addresses that browsers are sent to."""

from __future__ import annotations

from urllib.parse import urlsplit

from contstim.errors import InputError


def check_web_address(address: str) -> None:
    """Refuse what is not an address of the web, such as `javascript:…` or a bare host.

    Raises:
        InputError: it begins with neither https:// nor http://, or names no host.
    """
    try:
        parts = urlsplit(address)
        proper = parts.scheme in ("http", "https") and bool(parts.netloc)
    except ValueError:
        proper = False
    if not proper:
        raise InputError(f"{address!r} is not a web address; it must begin with https://.")
