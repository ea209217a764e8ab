"""Source of a checkpoint: where it is read from, the code that it may run, and how it fails.

A folder or a GGUF file is read as it is. A name on the hub, also one with a revision such as
`gpt2:main`, is looked for in the local cache first. Python code that comes with a checkpoint runs
only with the user's consent. Messages of `transformers` are silenced, or raised as a ModelError.
"""

from __future__ import annotations

import re
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from contstim.errors import ContstimError, ModelError
from contstim.models.catalog import hub_commit
from contstim.models.checkpoints.gguf import ENDING, check_gguf, gguf_file
from contstim.models.specifications import split_revision

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
        location: a folder, a GGUF file, or a name on the hub with its revision if it has one.
        local: whether only files on this machine are read.
        trust_remote_code: whether the checkpoint may run Python code that comes with it.
    """

    location: str
    local: bool
    trust_remote_code: bool

    @cached_property
    def gguf(self) -> Path | None:
        """The GGUF file, if the checkpoint is one."""
        return gguf_file(self.location)

    @property
    def path(self) -> str:
        """First argument of `from_pretrained`: a folder or a name on the hub."""
        return str(self.gguf.parent) if self.gguf else split_revision(self.location)[0]

    @property
    def options(self) -> dict[str, Any]:
        """Options of `from_pretrained`; without consent to code it would ask on the terminal."""
        return {"trust_remote_code": self.trust_remote_code, **self.options_of_files}

    @property
    def options_of_files(self) -> dict[str, Any]:
        """Options that say which files are read."""
        _, revision = split_revision(self.location)
        options: dict[str, Any] = {"local_files_only": self.local}
        if revision:
            options["revision"] = revision
        if self.gguf:
            options["gguf_file"] = self.gguf.name
        return options

    def check(self) -> None:
        """Refuse a checkpoint before anything of it is built or run.

        A checkpoint with code for a network that the library has too loads with the library's.

        Raises:
            ModelError: it asks for more parts than can be built, or for code that is not allowed.
        """
        config, tokenizer_config = _configurations(self)
        file = self.gguf.name if self.gguf else "config.json"
        for name, value in _numbers(config):
            if _COUNT.search(name) and value > _MOST_PARTS:
                raise ModelError(
                    f"{self.location}: {file} says {name} = {min(value, 10**15):,}; networks "
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
    """A function of a checkpoint's source that is called with a location.

    A folder or a GGUF file is read as it is. A name on the hub is looked for in the local cache
    first, and only then on the hub.

    Raises:
        ModelError: see `check_location`, `check_hub` and `foreign_errors`, or what `load` raises.
    """

    @wraps(load)
    def loaded(
        location: str, loading: Loading, /, *args: _Options.args, **options: _Options.kwargs
    ) -> _Result:
        is_local, trust = Path(location).exists(), loading.trust_remote_code
        if not Path(location).is_dir():  # a folder may hold a tokenizer only
            check_location(location)
        with silence():
            try:
                with foreign_errors(location):
                    return load(Source(location, True, trust), loading, *args, **options)
            except UnavailableError:
                if is_local:
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
    check_location(location)
    if Path(location).is_dir() and gguf_file(location) is None:
        with foreign_errors(location), silence():
            Source(location, local=True, trust_remote_code=trust_remote_code).check()


def check_location(location: str) -> None:
    """Refuse a folder or file that is missing or holds no checkpoint.

    Raises:
        ModelError: see above; or a folder is named with a revision.
    """
    name, revision = split_revision(location)
    if revision and Path(name).exists():
        raise ModelError(
            f"{name} is on this machine and has no revision {revision!r}. Leave out "
            f"':{revision}'; or rename {name}, to load the model of that name from the hub."
        )
    path = Path(location)
    if gguf := gguf_file(location):
        check_gguf(gguf)
    elif path.is_dir():
        if not (path / "config.json").is_file():
            raise ModelError(
                f"{location} has no config.json and no GGUF file: it is not a saved checkpoint."
            )
    elif path.is_file():
        raise ModelError(f"{location} is a file. Give the folder that it is in, or a GGUF file.")
    elif name.startswith((".", "/", "~")) or name.count("/") > 1 or "\\" in name:
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
        name, revision = split_revision(location)
        absent, option = f"{location} is not a local folder,", ""
        if revision:
            absent, option = f"Revision {revision!r} of {name}", f" --revision {revision}"
        raise ModelError(
            f"{absent} is not in the local cache, and "
            f"{constants.ENDPOINT} cannot be reached ({first_line(error)}). Elsewhere, download it "
            f"with 'hf download {name}{option} --local-dir DIR', and give DIR in place of the name."
        ) from error


def stamp(location: str) -> tuple[object, ...]:
    """Names, times and sizes of files, or a commit on the hub: they change with the checkpoint."""
    path = Path(location)
    if not path.exists():
        return (hub_commit(location),)
    stamps: list[tuple[str, int, int]] = []
    for file in sorted(path.glob("*")) if path.is_dir() else [path]:
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


def _configurations(source: Source) -> tuple[Any, Any]:
    """The content of `config.json`, or of a GGUF file's header, and of `tokenizer_config.json`."""
    from transformers import PreTrainedConfig
    from transformers.models.auto.tokenization_auto import get_tokenizer_config

    options = source.options_of_files
    config, _ = PreTrainedConfig.get_config_dict(source.path, **options)
    return config, get_tokenizer_config(source.path, **options)


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
            source = Source(location, local=True, trust_remote_code=False)
            raise _code_error(location, *_configurations(source)) from error
        if isinstance(error, Exception) and out_of_memory(error):  # of a GPU, say
            raise ModelError(
                f"{location} needs more memory than there is. Use dtype bfloat16, quantize int8 or "
                f"int4, device_map auto, or a smaller model."
            ) from error
        name, revision = split_revision(location)
        if revision and _is_unknown_revision(error):
            raise ModelError(
                f"{name} has no revision {revision!r} on the hub. Give one of its branches or "
                f"tags, or all 40 characters of a commit."
            ) from error
        remedy = " Download the file again." if location.lower().endswith(ENDING) else ""
        raise UnavailableError(f"Cannot load {location}: {first_line(error)}{remedy}") from error


def _is_unknown_revision(error: BaseException | None) -> bool:
    """True if the hub answered that it has the model, but not this revision."""
    from huggingface_hub.errors import RevisionNotFoundError

    while error is not None and not isinstance(error, RevisionNotFoundError):
        error = error.__cause__
    return error is not None


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
