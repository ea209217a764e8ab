"""Sources of checkpoints: location, permission to run code, and errors of loading.

A folder or a GGUF file is read directly. A model on the hub is first looked up in the local cache.
Python code of a checkpoint runs only with the user's consent. Messages of `transformers` are
suppressed; its errors are raised as ModelError.
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
from contstim.models.loading import Loading, require_packages
from contstim.models.specifications import hub_commit, split_revision

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


_GGUF = ".gguf"
_GGUF_MAGIC = b"GGUF"
_GGUF_PART = re.compile(r"-\d{5}-of-(?!00001)\d{5}$")
_OTHER_WEIGHTS = ("*.safetensors", "*.bin")
# Names of settings for the number of layers, experts or other parts of a network
_COUNT = re.compile(r"(^|_)(layers?|blocks?|groups?|experts?)(_num)?$")
# Maximum number of parts: more than any network has. Each part takes a millisecond to build
_MAX_PARTS = 4_096
_Options = ParamSpec("_Options")
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Source:
    """Source of a checkpoint.

    Attributes:
        location: folder, GGUF file, or name on the hub with an optional revision.
        local: whether to read only files on this machine.
    """

    location: str
    local: bool
    trust_remote_code: bool

    @cached_property
    def gguf(self) -> Path | None:
        """GGUF file of the checkpoint; None if it has another format."""
        return gguf_file(self.location)

    @property
    def path(self) -> str:
        """First argument of `from_pretrained`: a folder or a name on the hub."""
        return str(self.gguf.parent) if self.gguf else split_revision(self.location)[0]

    @property
    def options(self) -> dict[str, Any]:
        """Options of `from_pretrained`.

        `trust_remote_code` is always included, because otherwise `from_pretrained` asks the user.
        """
        _, revision = split_revision(self.location)
        trust = self.trust_remote_code
        options: dict[str, Any] = {"trust_remote_code": trust, "local_files_only": self.local}
        if revision:
            options["revision"] = revision
        if self.gguf:
            options["gguf_file"] = self.gguf.name
        return options

    def check(self) -> None:
        """Refuse an unusable checkpoint before any part of it is built or run.

        A checkpoint with Python code is accepted if `transformers` itself has code for the network.
        Then the code of `transformers` is used.

        Raises:
            ModelError: if the network has too many parts, or needs code that is not allowed.
        """
        config, tokenizer_config = _configurations(self)
        file = self.gguf.name if self.gguf else "config.json"
        for name, value in _numbers(config):
            if _COUNT.search(name) and value > _MAX_PARTS:
                raise ModelError(
                    f"{name} in {file} of {self.location} must be at most {_MAX_PARTS:,}, got "
                    f"{min(value, 10**15):,}. Check that the file belongs to the weights."
                )
        if self.trust_remote_code:
            return
        if _code_of(config) and not _has_network(config):
            raise _code_error(self.location, config, tokenizer_config)
        if _code_of(tokenizer_config):
            from transformers.models.auto.tokenization_auto import tokenizer_class_from_name

            # Without a class name, `transformers` chooses a class by the type of the network
            name = tokenizer_config.get("tokenizer_class")
            if name is not None and tokenizer_class_from_name(str(name)) is None:
                raise _code_error(self.location, tokenizer_config)


def from_anywhere(
    load: Callable[Concatenate[Source, Loading, _Options], _Result],
) -> Callable[Concatenate[str, Loading, _Options], _Result]:
    """Decorate a function that takes a `Source`, so that it takes a location instead.

    A model on the hub is read from the local cache. If this fails, the model is downloaded.

    Raises:
        ModelError: see `check_location`, `check_hub`, `foreign_errors` and the function `load`.
    """

    @wraps(load)
    def loaded(
        location: str, loading: Loading, /, *args: _Options.args, **options: _Options.kwargs
    ) -> _Result:
        is_local, trust = Path(location).exists(), loading.trust_remote_code
        if not Path(location).is_dir():  # skip folders, which may contain only a tokenizer
            check_location(location)
        with silence():
            load_with_errors = foreign_errors(location)(load)
            try:
                return load_with_errors(Source(location, True, trust), loading, *args, **options)
            except UnavailableError:
                if is_local:
                    raise
            check_hub(location)
            return load_with_errors(Source(location, False, trust), loading, *args, **options)

    return loaded


def check_source(location: str, *, trust_remote_code: bool = False) -> None:
    """Check that a folder has a readable configuration; the hub is not accessed.

    Raises:
        ModelError: if the configuration is missing or unreadable; see also `Source.check`.
    """
    check_location(location)
    if Path(location).is_dir() and gguf_file(location) is None:
        with foreign_errors(location), silence():
            Source(location, local=True, trust_remote_code=trust_remote_code).check()


def check_location(location: str) -> None:
    """Refuse a folder or file that is missing or is not a checkpoint.

    Raises:
        ModelError: if the location is not a checkpoint, or if it names a revision of a local folder
            or file.
    """
    name, revision = split_revision(location)
    if revision and Path(name).exists():
        raise ModelError(
            f"{name} is on this machine and has no revision {revision!r}. Remove "
            f"':{revision}'. To load a model from the Hub instead, rename {name} on this machine."
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
        raise ModelError(f"{location} is a file. Name its folder, or a GGUF file.")
    elif name.startswith((".", "/", "~")) or name.count("/") > 1 or "\\" in name:
        raise ModelError(
            f"The folder {location} does not exist. Name a folder with config.json, weights "
            "and tokenizer, or a model on the Hub such as gpt2."
        )


def check_hub(location: str) -> None:
    """Check that the hub responds within a few seconds.

    Raises:
        ModelError: if the hub does not respond.
    """
    import huggingface_hub
    from huggingface_hub import constants

    try:
        # Seconds; huggingface_hub would wait longer
        huggingface_hub.get_session().head(constants.ENDPOINT, timeout=5)
    except Exception as error:  # httpx, requests and offline mode have no common base class
        name, revision = split_revision(location)
        absent, option = f"{location} is not a local folder,", ""
        if revision:
            absent, option = f"Revision {revision!r} of {name}", f" --revision {revision}"
        raise ModelError(
            f"{absent} is not in the local cache, and {constants.ENDPOINT} cannot be reached "
            f"({first_line(error)}). Download the model on another machine with 'hf download "
            f"{name}{option} --local-dir DIR', and use DIR instead of the name."
        ) from error


def stamp(location: str) -> tuple[object, ...]:
    """Return a value that changes if the checkpoint changes.

    The value contains names, times and sizes of local files, or the commit of a model on the hub.
    """
    path = Path(location)
    if not path.exists():
        return (hub_commit(location),)
    files = sorted(path.glob("*")) if path.is_dir() else [path]
    # A link may be broken, for example if the hub's cache was cleared
    states = [(file.name, file.stat()) for file in files if file.exists()]
    return tuple((name, state.st_mtime_ns, state.st_size) for name, state in states)


def _numbers(config: Any, name: str = "") -> Iterator[tuple[str, int]]:
    if isinstance(config, dict):
        for key, value in config.items():
            yield from _numbers(value, str(key))
    elif isinstance(config, int):
        yield name, config


def _configurations(source: Source) -> tuple[Any, Any]:
    """Return the content of `config.json` (or a GGUF header), and of `tokenizer_config.json`."""
    from transformers import PreTrainedConfig
    from transformers.models.auto.tokenization_auto import get_tokenizer_config

    config, _ = PreTrainedConfig.get_config_dict(source.path, **source.options)
    return config, get_tokenizer_config(source.path, **source.options)


def _code_error(location: str, *configurations: Any) -> ModelError:
    code = ", ".join(sorted({name for part in configurations for name in _code_of(part)}))
    return ModelError(
        f"{location} needs to run its own code on this machine ({code or 'Python files'}). "
        "Read the code. If you trust it, allow it with trust_remote_code (--trust-remote-code). "
        "Otherwise, use another checkpoint."
    )


def _code_of(configuration: Any) -> list[str]:
    """Return the classes of custom Python code in a configuration's `auto_map`."""
    names = configuration.get("auto_map") if isinstance(configuration, dict) else None
    # A tokenizer's entry is a pair of classes (slow, fast). One of the two classes may be missing
    values = names.values() if isinstance(names, dict) else [names]
    return [str(part) for value in values for part in _as_list(value) if part]


def _has_network(config: dict[str, Any]) -> bool:
    """Return True if `transformers` has code for the network's type and architecture.

    The letter case of architectures is ignored.
    """
    from transformers.models.auto import modeling_auto as auto

    kind = config.get("model_type")
    kinds = ("CAUSAL_LM", "MASKED_LM", "SEQUENCE_CLASSIFICATION", "PRETRAINING")
    mappings = [getattr(auto, f"MODEL_FOR_{name}_MAPPING_NAMES") for name in kinds]
    mappings.append(auto.MODEL_MAPPING_NAMES)
    classes = [mapping.get(kind) for mapping in mappings] if isinstance(kind, str) else []
    names = {str(name).lower() for value in classes for name in _as_list(value) if name}
    saved_as = config.get("architectures") or []
    return bool(names) and all(str(name).lower() in names for name in saved_as)


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


_MAX_MESSAGE_LENGTH = 300  # maximum number of characters of a library's message


class UnavailableError(ModelError):
    """Raised if files are missing, damaged or not on this machine."""


@contextmanager
def foreign_errors(location: str) -> Iterator[None]:
    """Convert any failure to load a checkpoint into an error that names the checkpoint.

    If files are damaged, libraries raise errors of many classes. Compiled libraries may raise a
    PanicException, which is not an `Exception`.

    Raises:
        ModelError: if a package is missing; if the checkpoint's code is not allowed to run; if the
            hub does not have the revision; or if there is not enough memory.
        UnavailableError: if a library fails for any other reason.
    """
    try:
        with warnings.catch_warnings():
            # Warnings are about formats and empty layers. The module `checks` finds real problems
            warnings.simplefilter("ignore")
            yield
    except ContstimError:
        raise
    except ImportError as error:
        reason = first_line(error)
        remedy = " Install it with pip install 'contstim[xlm]'." if "sacremoses" in reason else ""
        raise ModelError(f"{location} needs a package that is missing: {reason}{remedy}") from error
    except BaseException as error:
        from contstim.models.batching import out_of_memory

        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        if isinstance(error, ValueError) and "trust_remote_code" in str(error):
            source = Source(location, local=True, trust_remote_code=False)
            raise _code_error(location, *_configurations(source)) from error
        if isinstance(error, Exception) and out_of_memory(error):
            raise ModelError(
                f"{location} does not fit into memory. Use dtype bfloat16, quantize int8 or "
                "int4, device_map auto, or a smaller model."
            ) from error
        name, revision = split_revision(location)
        if revision and _is_unknown_revision(error):
            raise ModelError(
                f"{name} has no revision {revision!r} on the Hub. Name a branch, a tag, or a "
                "commit with all 40 characters."
            ) from error
        remedy = " Download the file again." if location.lower().endswith(_GGUF) else ""
        raise UnavailableError(f"Cannot load {location}: {first_line(error)}{remedy}") from error


def _is_unknown_revision(error: BaseException | None) -> bool:
    """Return True if the hub has the model but not this revision."""
    from huggingface_hub.errors import RevisionNotFoundError

    while error is not None and not isinstance(error, RevisionNotFoundError):
        error = error.__cause__
    return error is not None


@contextmanager
def silence() -> Iterator[None]:
    """Suppress the progress bars and messages of `transformers` during loading."""
    import transformers

    library_logging: Any = transformers.utils.logging
    level, bars = library_logging.get_verbosity(), library_logging.is_progress_bar_enabled()
    library_logging.set_verbosity_error()
    library_logging.disable_progress_bar()
    try:
        yield
    finally:
        library_logging.set_verbosity(level)
        if bars:
            library_logging.enable_progress_bar()


def first_line(error: BaseException) -> str:
    """Return the message of an error as one line that ends with a full stop.

    Long messages are truncated. Characters that UTF-8 cannot encode are escaped.
    """
    text = " ".join(str(error).split())
    if " " not in text:  # for example the missing key of a KeyError
        text = f"{type(error).__name__}: {text}"
    encodable = text.encode("utf-8", "backslashreplace").decode()
    if len(encodable) > _MAX_MESSAGE_LENGTH:
        encodable = f"{encodable[:_MAX_MESSAGE_LENGTH]}…"
    return encodable.rstrip(": .") + "."


def gguf_file(location: str) -> Path | None:
    """Return the GGUF file at a location; None if the location has no GGUF file.

    The location is the file itself, or a folder with one GGUF file and no weights in other formats.

    Raises:
        ModelError: if a folder without other weights has several GGUF files.
    """
    path = Path(location)
    if path.suffix.lower() == _GGUF and not path.is_dir():
        return path
    files = sorted(file for file in path.glob("*") if file.suffix.lower() == _GGUF)
    if not files or any(any(path.glob(pattern)) for pattern in _OTHER_WEIGHTS):
        return None
    if len(files) > 1:
        names = ", ".join(file.name for file in files)
        raise ModelError(
            f"{location} has several GGUF files: {names}. Name one of them, such as "
            f"hf:{path / files[0].name}."
        )
    return files[0]


def check_gguf(path: Path) -> None:
    """Check that a GGUF file exists and is complete, and that the required packages are installed.

    A file that is one of several parts is refused. Only the first bytes of the file are read.

    Raises:
        ModelError: if a check fails.
    """
    if not path.is_file():
        raise ModelError(f"{path} does not exist. Name a GGUF file, or a folder that contains one.")
    if _GGUF_PART.search(path.stem):
        raise ModelError(
            f"{path} is one part of a GGUF model. Merge the parts with 'llama-gguf-split --merge'."
        )
    with path.open("rb") as file:
        magic = file.read(len(_GGUF_MAGIC))
    if magic != _GGUF_MAGIC:
        raise ModelError(
            f"{path} is not a GGUF file: it is {'damaged' if magic else 'empty'}. Download "
            "it again."
        )
    require_packages(str(path), "gguf", "gguf", "accelerate")
