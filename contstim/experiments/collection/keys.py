"""Secrets of participants, the administrator's token, and how identities are hashed."""

from __future__ import annotations

import hmac
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from contstim.errors import InputError

if TYPE_CHECKING:
    import sqlite3

TOKEN_VARIABLE = "CONTSTIM_ADMIN_TOKEN"
_SHORTEST_TOKEN = 16


@dataclass(frozen=True)
class Keys:
    """Two random keys of a database, hexadecimal.

    Attributes:
        secret: what participants' secrets and completion codes follow from.
        salt: what identities are hashed with.
    """

    secret: str
    salt: str

    @classmethod
    def draw(cls) -> Keys:
        """New keys, 256 bits each."""
        return cls(secrets.token_hex(32), secrets.token_hex(32))

    @classmethod
    def read(cls, connection: sqlite3.Connection) -> Keys:
        """The keys that a database was made with."""
        stored = dict(connection.execute("SELECT name, value FROM study").fetchall())
        return cls(stored["secret"], stored["salt"])

    def write(self, connection: sqlite3.Connection) -> None:
        """Give a new database these keys."""
        values = (("secret", self.secret), ("salt", self.salt))
        connection.executemany("INSERT INTO study VALUES (?, ?)", values)

    def participant_secret(self, participant: str) -> str:
        """Secret that a participant's browser must show; computed from the key, never stored."""
        return _digest(self.secret, "secret", participant)

    def opens(self, participant: str, secret: str) -> bool:
        """True if this is the participant's secret; takes equally long whatever is wrong."""
        return equal_secrets(self.participant_secret(participant), secret)

    def completion_code(self, participant: str) -> str:
        """A code for one participant, short enough to be copied by hand."""
        return _digest(self.secret, "code", participant)[:10].upper()

    def hashed(self, field: str, value: str) -> str:
        """An identity that cannot be turned back, nor joined with another study's; empty stays."""
        return _digest(self.salt, field, value) if value else ""


def equal_secrets(first: str, second: str) -> bool:
    """True if two texts are equal, in a time that does not tell where they differ."""
    return hmac.compare_digest(first.encode(errors="replace"), second.encode(errors="replace"))


def admin_token(database: Path) -> tuple[str, Path | None]:
    """The token for downloads: from the environment, else from a file that is made when missing.

    Returns:
        The token, and the file beside the database that holds it, readable by its owner alone;
        None where the environment variable gives the token.

    Raises:
        InputError: the token is shorter than 16 characters, or the file cannot be used.
    """
    stated = os.environ.get(TOKEN_VARIABLE, "")
    token, file = stated.strip(), None if stated else Path(f"{database}.token")
    try:
        if file:
            file.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                number = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(number, "w", encoding="ascii") as new:
                    new.write(secrets.token_urlsafe(24) + "\n")
            token = file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"Cannot use {file} for the administrator's token: {error}.") from error
    if len(token) < _SHORTEST_TOKEN or not token.isascii():
        raise InputError(
            f"The administrator's token, from {file or TOKEN_VARIABLE}, must have "
            f"{_SHORTEST_TOKEN} ASCII characters or more."
        )
    return token, file


def _digest(key: str, field: str, value: str) -> str:
    # a sign that no field's name holds: so no two fields and values give one text
    return hmac.new(bytes.fromhex(key), f"{field}\x1f{value}".encode(), sha256).hexdigest()[:32]
