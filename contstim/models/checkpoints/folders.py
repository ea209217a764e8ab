"""Where a checkpoint lies: a folder, or the hub."""

from __future__ import annotations

from pathlib import Path

from contstim.errors import ModelError
from contstim.models.checkpoints.foreign import first_line

_HUB_TIMEOUT = 5  # seconds; the library itself would keep an offline machine waiting for longer


def check_folder(location: str) -> None:
    """Refuse a folder that is missing or holds no checkpoint.

    Raises:
        ModelError: see above.
    """
    folder = Path(location)
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise ModelError(
                f"{location} has no config.json: it is not a folder that 'save_pretrained' wrote."
            )
    elif location.startswith((".", "/", "~")) or location.count("/") > 1 or "\\" in location:
        raise ModelError(
            f"There is no folder {location}. Give a folder with config.json, weights and "
            f"tokenizer, or a name on the hub such as gpt2."
        )


def check_hub(location: str) -> None:
    """Ask the hub once, briefly.

    Raises:
        ModelError: it does not answer.
    """
    import huggingface_hub
    from huggingface_hub import constants

    try:
        huggingface_hub.get_session().head(constants.ENDPOINT, timeout=_HUB_TIMEOUT)
    except Exception as error:  # httpx, requests and offline mode share no base class
        raise ModelError(
            f"{location} is not a local folder, is not in the local cache, and "
            f"{constants.ENDPOINT} cannot be reached ({first_line(error)}). Download it on a "
            f"machine with internet access ('hf download {location} --local-dir DIR'), then give "
            "DIR in place of the name."
        ) from error


def stamp(location: str) -> tuple[object, ...]:
    """Changes when a folder's files do."""
    files = sorted(Path(location).glob("*")) if Path(location).is_dir() else []
    return tuple((file.name, *_state(file)) for file in files)


def _state(file: Path) -> tuple[int, int]:
    """When a file was changed, and its size; zeros for a link that leads nowhere."""
    try:
        state = file.stat()
    except OSError:
        return 0, 0
    return state.st_mtime_ns, state.st_size
