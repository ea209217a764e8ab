"""Fetching the 2023 study's published files by name, checked against the content known here.

The files are those of the repository dpmlab/contstimlang, under its own paths. `registry.txt` pins
each by the SHA-256 of its content: whatever the repository serves one day, a reader gets these
bytes or an error.
"""

from __future__ import annotations

import logging
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from contstim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ADDRESS = "https://raw.githubusercontent.com/dpmlab/contstimlang/HEAD/"

#: What can be asked for, and where its files lie in the repository.
PUBLISHED = {
    "pairs": ("natural_controversial_sentences/",),
    "triplets": ("synthesized_sentences/",),
    "sentences": ("resources/sentence_corpora/",),
    "vocabulary": ("resources/vocabulary/", "resources/preps.pkl"),
    "natural-scores": ("resources/precomputed_sentence_probabilities/",),
    "stimulus-scores": ("resources/contstim_stim_probs_dict.pkl", "resources/contstim_sents_"),
}


def published_files() -> dict[str, str]:
    """The paths of all files that can be fetched, and the checksums of their content."""
    registry = files("contstim.experiments.reproduce").joinpath("registry.txt")
    text = registry.read_text(encoding="utf-8")
    return dict(line.split(" ") for line in text.splitlines())


def fetch_published(
    folder: Path | str,
    names: Iterable[str] = tuple(PUBLISHED),
    *,
    address: str = ADDRESS,
    progress: Callable[[str], None] | None = None,
) -> Path:
    """Bring files of the 2023 study into a folder, from which this package reads them.

    A file that is there with the right content is left alone, so an interrupted call can be
    repeated. `read_natural_pairs` also needs `stimulus-scores`.

    Args:
        folder: where the files are put, under the repository's own paths; made if need be.
        names: keys of `PUBLISHED`; all of them are 20 MB.
        address: where the repository's files are served.
        progress: told the path of each file before it is fetched or checked.

    Returns:
        The folder.

    Raises:
        InputError: Pooch is not installed, an unknown name, no connection, no such file, or other
            content than expected.
    """
    try:
        import pooch
    except ImportError as error:
        raise InputError(
            "Fetching published files needs Pooch, which is not installed. Install it with pip "
            "install 'contstim[published]', or download the repository dpmlab/contstimlang by hand "
            "and give its folder."
        ) from error

    try:
        prefixes = tuple(prefix for name in names for prefix in PUBLISHED[name])
    except KeyError as error:
        raise InputError(
            f"Nothing is published under {error}; ask for {', '.join(PUBLISHED)}."
        ) from None
    registry = published_files()
    keeper = pooch.create(path=Path(folder), base_url=address, registry=registry)
    # Pooch tells of every download on its logger; progress is told here.
    pooch.get_logger().setLevel(logging.WARNING)
    for path in registry:
        if path.startswith(prefixes):
            if progress is not None:
                progress(path)
            try:
                keeper.fetch(path)
            except (OSError, ValueError) as error:  # ValueError: the checksum is another
                raise InputError(
                    f"Cannot fetch {address}{path}: {error} Or download the repository "
                    "dpmlab/contstimlang by hand and give its folder."
                ) from error
    return Path(folder)
