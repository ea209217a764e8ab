"""Source of a checkpoint: where it is read from, the code that it may run, and how it fails.

A folder is read as it is; a name of the hub is looked for in the local cache first. Python code
that comes with a checkpoint runs only with the user's consent. Messages of `transformers` are
silenced, or raised as a ModelError.
"""

from __future__ import annotations

import re
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from contstim.errors import ContstimError, ModelError
from contstim.models.catalog import hub_commit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from contstim.models.loading import Loading

_COUNT = re.compile(r"(^|_)(layers?|blocks?|groups?|experts?)(_num)?$")
_MOST_PARTS = 4_096  # far more than any network has; each takes a millisecond to build
_HUB_TIMEOUT = 5  # seconds; the library itself would keep an offline machine waiting for longer
_Options = ParamSpec("_Options")
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Source:
    """Source of a checkpoint.

    Attributes:
        location: a folder or a name on the hub.
        local: whether only files on this machine are read.
        trust_remote_code: whether the checkpoint may run Python code that comes with it.
    """

    location: str
    local: bool
    trust_remote_code: bool

    @property
    def options(self) -> dict[str, Any]:
        """Options of `from_pretrained`; without the second it would ask on the terminal."""
        return {"local_files_only": self.local, "trust_remote_code": self.trust_remote_code}

    def check(self) -> None:
        """Refuse a checkpoint before anything of it is built or run.

        A checkpoint with code for a network that the library has too loads with the library's.

        Raises:
            ModelError: it asks for more parts than can be built, or for code that is not allowed.
        """
        config, tokenizer_config = _configurations(self.location, local=self.local)
        for name, value in _numbers(config):
            if _COUNT.search(name) and value > _MOST_PARTS:
                raise ModelError(
                    f"{self.location}: config.json says {name} = {min(value, 10**15):,}; networks "
                    f"of up to {_MOST_PARTS:,} can be loaded. Is the file that of the weights?"
                )
        if self.trust_remote_code:
            return
        if _code_of(config) and not _has_network(config):
            raise _code_error(self.location, config, tokenizer_config)
        if _code_of(tokenizer_config):
            from transformers.models.auto.tokenization_auto import tokenizer_class_from_name

            # Where no class is named, the library chooses its own by the network.
            name = tokenizer_config.get("tokenizer_class")
            if name is not None and tokenizer_class_from_name(str(name)) is None:
                raise _code_error(self.location, tokenizer_config)


def from_anywhere(
    load: Callable[Concatenate[Source, Loading, _Options], _Result],
) -> Callable[Concatenate[str, Loading, _Options], _Result]:
    """A function of a checkpoint's source, called with a location: a folder or a name on the hub.

    A folder is read as it is. A name of the hub is looked for in the local cache first, and only
    then on the hub.

    Raises:
        ModelError: see `check_folder`, `check_hub` and `foreign_errors`, or what `load` raises.
    """

    @wraps(load)
    def loaded(
        location: str, loading: Loading, /, *args: _Options.args, **options: _Options.kwargs
    ) -> _Result:
        folder, trust = Path(location).is_dir(), loading.trust_remote_code
        if not folder:
            check_folder(location)
        with silence():
            try:
                with foreign_errors(location):
                    return load(Source(location, True, trust), loading, *args, **options)
            except UnavailableError:
                if folder:
                    raise
            check_hub(location)
            with foreign_errors(location):
                return load(Source(location, False, trust), loading, *args, **options)

    return loaded


def check_source(location: str, *, trust_remote_code: bool = False) -> None:
    """Refuse a folder without a readable configuration; names on the hub are not looked up.

    Raises:
        ModelError: see above, and `Source.check`.
    """
    check_folder(location)
    if Path(location).is_dir():
        with foreign_errors(location), silence():
            Source(location, local=True, trust_remote_code=trust_remote_code).check()


def check_folder(location: str) -> None:
    """Refuse a folder that is missing or holds no checkpoint.

    Raises:
        ModelError: see above.
    """
    folder = Path(location)
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise ModelError(f"{location} has no config.json: it is not a saved checkpoint.")
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
            f"{constants.ENDPOINT} cannot be reached ({first_line(error)}). Elsewhere, download it "
            f"with 'hf download {location} --local-dir DIR', and give DIR in place of the name."
        ) from error


def stamp(location: str) -> tuple[object, ...]:
    """Names, times and sizes of a folder's files, or a commit on the hub: what tells of changes."""
    if not Path(location).is_dir():
        return (hub_commit(location),)
    stamps: list[tuple[str, int, int]] = []
    for file in sorted(Path(location).glob("*")):
        # a link may lead nowhere, such as into a cleared cache of the hub
        state = file.stat() if file.exists() else None
        stamps.append((file.name, state.st_mtime_ns, state.st_size) if state else (file.name, 0, 0))
    return tuple(stamps)


def _numbers(config: Any, name: str = "") -> Iterator[tuple[str, int]]:
    if isinstance(config, dict):
        for key, value in config.items():
            yield from _numbers(value, str(key))
    elif isinstance(config, int):
        yield name, config


def _configurations(location: str, *, local: bool) -> tuple[Any, Any]:
    """The content of `config.json` and of `tokenizer_config.json`."""
    from transformers import PreTrainedConfig
    from transformers.models.auto.tokenization_auto import get_tokenizer_config

    config, _ = PreTrainedConfig.get_config_dict(location, local_files_only=local)
    return config, get_tokenizer_config(location, local_files_only=local)


def _code_error(location: str, *configurations: Any) -> ModelError:
    """The refusal of a checkpoint that wants to run code of its own."""
    code = ", ".join(sorted({name for part in configurations for name in _code_of(part)}))
    return ModelError(
        f"{location} wants to run code of its own on this machine ({code or 'Python files'}), "
        f"which nobody here has checked. Read it; if you trust it, allow it with "
        f"trust_remote_code (--trust-remote-code), or use a checkpoint that needs none."
    )


def _code_of(configuration: Any) -> list[str]:
    """The classes of Python code that a configuration names under `auto_map`."""
    names = configuration.get("auto_map") if isinstance(configuration, dict) else None
    # A tokenizer's entry is a pair, slow and fast, of which one may be missing
    values = names.values() if isinstance(names, dict) else [names]
    return [str(part) for value in values for part in _as_list(value) if part]


def _has_network(config: dict[str, Any]) -> bool:
    """True if the library has the type and the architecture, upper and lower case aside."""
    from transformers.models.auto import modeling_auto as auto

    kind = config.get("model_type")
    kinds = ("CAUSAL_LM", "MASKED_LM", "SEQUENCE_CLASSIFICATION", "PRETRAINING")
    mappings = [getattr(auto, f"MODEL_FOR_{name}_MAPPING_NAMES") for name in kinds]
    mappings.append(auto.MODEL_MAPPING_NAMES)
    found = [mapping.get(kind) for mapping in mappings] if isinstance(kind, str) else []
    names = {str(name).lower() for value in found for name in _as_list(value) if name}
    saved_as = config.get("architectures") or []
    return bool(names) and all(str(name).lower() in names for name in saved_as)


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


_LONGEST = 300  # characters of a foreign message


class UnavailableError(ModelError):
    """Files are missing or damaged, or not on this machine."""


@contextmanager
def foreign_errors(location: str) -> Iterator[None]:
    """Turn any failure of loading a checkpoint into an error that names the checkpoint.

    Damaged files can make the libraries fail in any way: with their own errors, with Python's, or
    with a panic of their compiled parts, which is not even an `Exception`.

    Raises:
        UnavailableError: a library failed.
        ModelError: a package is missing, code of its own is not allowed to run, or there is not
            enough memory.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of formats and empty layers; what matters is checked
            yield
    except ContstimError:
        raise
    except ImportError as error:
        what = first_line(error)
        how = " Install it with pip install 'contstim[xlm]'." if "sacremoses" in what else ""
        raise ModelError(f"{location} needs a package that is missing: {what}{how}") from error
    except BaseException as error:
        from contstim.models.batching import out_of_memory

        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        if isinstance(error, ValueError) and "trust_remote_code" in str(error):
            raise _code_error(location, *_configurations(location, local=True)) from error
        if isinstance(error, Exception) and out_of_memory(error):  # of a GPU, say
            raise ModelError(
                f"{location} needs more memory than there is. Use dtype bfloat16, quantize int8 or "
                f"int4, device_map auto, or a smaller model."
            ) from error
        raise UnavailableError(f"Cannot load {location}: {first_line(error)}") from error


@contextmanager
def silence() -> Iterator[None]:
    """Keep `transformers` from printing bars, advice and reports while it loads."""
    import transformers

    chatter: Any = transformers.utils.logging
    level, bars = chatter.get_verbosity(), chatter.is_progress_bar_enabled()
    chatter.set_verbosity_error()
    chatter.disable_progress_bar()
    try:
        yield
    finally:
        chatter.set_verbosity(level)
        if bars:
            chatter.enable_progress_bar()


def first_line(error: BaseException) -> str:
    """The beginning of a long message, closed by a full stop, in characters that print."""
    text = " ".join(str(error).split())
    if " " not in text:  # such as the key that a dictionary lacks
        text = f"{type(error).__name__}: {text}"
    printable = text.encode("utf-8", "backslashreplace").decode()
    cut = f"{printable[:_LONGEST]}…" if len(printable) > _LONGEST else printable
    return cut.rstrip(": .") + "."
