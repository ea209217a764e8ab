"""Participants' addresses with tokens that prove their identity, and the signing key."""

from __future__ import annotations

import os
import re
import secrets
from collections import Counter
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlencode

from contstim.errors import InputError
from contstim.experiments.collection.database import digest
from contstim.experiments.platforms.jspsych.study import SIGNED, check_web_address
from contstim.files.documents import read_text


def participant_links(database: Path, identities: Path, url: str) -> list[tuple[str, str]]:
    """Return the address of each participant's page, with the identity's token.

    Args:
        database: path of the database; the signing key is in a file next to it.
        identities: text file with an ID on each line; blank lines are skipped.
        url: address of the page.

    Returns:
        Pairs of ID and address, in the order of the file.

    Raises:
        InputError: if the file has no ID, or an ID twice, or the key or the address cannot be used.
    """
    check_web_address(url)
    lines = [line.strip() for line in read_text(identities).split("\n")]
    ids = [line for line in lines if line]
    repeated = [identity for identity, n in Counter(ids).items() if n > 1]
    if repeated or not ids:
        count = f"{repeated[0]!r} twice" if repeated else "none"
        raise InputError(f"{identities} must have a different ID on each line, got {count}.")
    key, sign = link_key(database), "&" if "?" in url else "?"
    queries = [{SIGNED: identity, "token": link_token(key, identity)} for identity in ids]
    return [(query[SIGNED], f"{url}{sign}{urlencode(query)}") for query in queries]


def link_token(key: str, identity: str) -> str:
    """Return the token for a participant's address, which proves that we issued the identity."""
    return digest(key, "link", identity)


def link_key(database: Path) -> str:
    """Read the key that signs participants' addresses from a file next to the database.

    Returns:
        The key, hexadecimal; created when missing.

    Raises:
        InputError: if the file cannot be used or contains no key.
    """
    file = Path(f"{database}.key")
    key = stored_secret(file, secrets.token_hex(32))
    if not re.fullmatch("[0-9a-f]{64}", key):
        raise InputError(
            f"{file} must contain 64 hexadecimal digits. Restore it from a backup, or delete "
            "it and write the addresses again with --links."
        )
    return key


def stored_secret(file: Path, new: str) -> str:
    """Read a secret from a file that only its owner can read; create it when missing.

    Raises:
        InputError: if the file cannot be used.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="ascii") as opened:
                opened.write(new + "\n")
        return file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"Cannot use {file}, which holds a secret: {error}.") from error
