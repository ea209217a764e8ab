"""Origins of models, by which records notice that a model has become another one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from contstim.models.specifications import parse_specification
from contstim.models.training_text import training_text_path
from contstim.models.word_list import counts_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from contstim.models.specifications import Specification


@dataclass(frozen=True)
class ModelOrigins:
    """Files and commits that some models are loaded from.

    Attributes:
        files: files and folders that are there, word counts and hashes of training sentences beside
            them included.
        commits: of models in the local cache of the Hugging Face hub, by their names there.
    """

    files: tuple[Path, ...]
    commits: Mapping[str, str]


def model_origins(specifications: Iterable[str | Specification]) -> ModelOrigins:
    """Find the files and commits that models are loaded from, also those of transforms.

    Args:
        specifications: parsed, or as `parse_specification` takes them; an empty one, of a model
            that was made in Python, has no origin.

    Raises:
        ModelError: see `parse_specification`.
    """
    files: dict[Path, None] = {}
    commits: dict[str, str] = {}
    for specification in specifications:
        for location in _locations(specification) if specification else ():
            path = Path(location)
            if path.exists():
                files |= dict.fromkeys(p for p in with_neighbours([path]) if p.exists())
            elif commit := hub_commit(location):
                commits[location] = commit
    return ModelOrigins(tuple(files), commits)


def with_neighbours(paths: Iterable[Path]) -> Iterator[Path]:
    """Files, and where word counts and hashes of training sentences stand beside a model's file."""
    for path in paths:
        yield path
        yield counts_path(path)
        yield training_text_path(path)


def hub_commit(location: str) -> str:
    """The commit of a model in the local cache of the hub; empty where it is not there."""
    from huggingface_hub import try_to_load_from_cache

    try:
        found = try_to_load_from_cache(location, "config.json")
    except (OSError, ValueError):  # unreadable, or not a name that the hub can have
        return ""
    # …/models--NAME/snapshots/COMMIT/config.json; no text where it is not there
    return Path(found).parent.name if isinstance(found, str) else ""


def _locations(specification: str | Specification) -> Iterator[str]:
    parsed = specification
    if isinstance(parsed, str):
        parsed = parse_specification(parsed)
    if parsed.family == "server":
        from contstim.models.server.address import parse_address

        # Of what a server computes its answers tell; what is read here can change
        address = parse_address(parsed.location)
        yield address.tokenizer
        if address.draft:
            yield from _locations(address.draft)
        return
    yield parsed.location
    if parsed.argument:
        yield parsed.argument
