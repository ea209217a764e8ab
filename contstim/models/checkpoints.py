"""Transformer checkpoints from a folder or the hub: causal or masked, complete or refused."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args
from weakref import WeakValueDictionary

from contstim.errors import ModelError
from contstim.models.fingerprints import fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Kind: TypeAlias = Literal["causal", "masked", "classifier"]
Device: TypeAlias = Literal["auto", "cpu", "cuda"]
Precision: TypeAlias = Literal["auto", "float32", "bfloat16", "float16"]
_Head: TypeAlias = Literal["language model", "classifier", "new classifier"]

_WHAT: dict[Kind, str] = {
    "causal": "causal language model",
    "masked": "masked language model",
    "classifier": "classifier of sequences",
}
_HUB_TIMEOUT = 5  # seconds; the library itself would keep an offline machine waiting for longer


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A network with its head, in evaluation mode, and its tokenizer.

    Attributes:
        model: a `transformers` model for causal or masked language modelling, or a classifier of
            sequences.
        tokenizer: a `transformers` tokenizer.
        location: the folder or hub name that it came from.
        device: where the network is, such as `cpu` or `cuda`.
        kind: whether it predicts the next token, hidden ones, or a sequence's class.
    """

    model: Any
    tokenizer: Any
    location: str
    device: str
    kind: Kind

    def __post_init__(self) -> None:
        self.model.eval()

    @cached_property
    def fingerprint(self) -> str:
        """Hash of weights, precision, configuration and tokenizer; the same wherever they lie."""
        return fingerprint(self.model, self.tokenizer)

    @property
    def window(self) -> int | None:
        """How many tokens the network can read; None where it sets no limit."""
        config = self.model.config.get_text_config()
        limit = getattr(config, "max_position_embeddings", None)
        if limit is None or limit <= 0:
            return None
        return int(limit) - _positions_before_the_first(self.model)


_loaded: WeakValueDictionary[tuple[object, ...], Checkpoint] = WeakValueDictionary()


def load_checkpoint(
    location: str,
    *,
    device: Device = "auto",
    dtype: Precision = "auto",
    classifier: bool = False,
) -> Checkpoint:
    """Load a causal or masked language model, told apart by the checkpoint's configuration.

    A folder is read as it is. A name of the hub is looked for in the local cache first, and only
    then on the hub. A checkpoint that is still in use is not loaded again.

    Args:
        location: a folder with `config.json`, or a name on the hub such as `gpt2`.
        device: `auto` is a GPU where there is one.
        dtype: `auto` is float32: half precision rounds scores to ties and is only for models that
            would not fit otherwise.
        classifier: whether to load a classifier of sequences instead.

    Raises:
        ModelError: the folder is missing, the hub cannot be reached, the checkpoint has no trained
            head of that kind, its tokenizer needs a package that is not installed, or the
            device or the precision does not exist.
    """
    place, precision = resolve_device(device), _precision(dtype)
    _check_folder(location)
    key = (location, place, precision, classifier, _stamp(location))
    checkpoint = _loaded.get(key)
    if checkpoint is None:
        with silence():
            head: _Head = "classifier" if classifier else "language model"
            checkpoint = _load(location, place, precision, head)
        _loaded[key] = checkpoint
    return checkpoint


def new_classifier(location: str, labels: Sequence[str]) -> Checkpoint:
    """A checkpoint's network on the CPU with a classification head that is drawn anew.

    Nobody else holds the network, so that it can be trained. What chance decides, torch's generator
    does.

    Args:
        location: as of `load_checkpoint`; the head of a language model is left away.
        labels: names of the classes, in order.

    Raises:
        ModelError: see `load_checkpoint`; or it is a classifier already, or more than the head is
            missing.
    """
    _check_folder(location)
    with silence():
        return _load(location, "cpu", "float32", "new classifier", labels)


def _load(
    location: str, device: str, dtype: str, head: _Head, labels: Sequence[str] = ()
) -> Checkpoint:
    if Path(location).is_dir():
        return _open(location, device, dtype, head, labels, local=True)
    try:
        return _open(location, device, dtype, head, labels, local=True)
    except _UnavailableError:
        _check_hub(location)
    return _open(location, device, dtype, head, labels, local=False)


class _UnavailableError(ModelError):
    """Files are missing, damaged, or not where they were looked for."""


def _open(
    location: str, device: str, dtype: str, head: _Head, labels: Sequence[str], *, local: bool
) -> Checkpoint:
    import transformers

    where = {"local_files_only": local}
    named = {"id2label": dict(enumerate(labels))} if labels else {}
    try:
        config = transformers.AutoConfig.from_pretrained(location, **named, **where)
        kind: Kind = _kind(location, config) if head == "language model" else "classifier"
        if head == "new classifier" and _is_classifier(config):
            raise ModelError(
                f"{location} is a classifier already, whose head would not start anew. Name the "
                f"language model that it was made from."
            )
        tokenizer = transformers.AutoTokenizer.from_pretrained(location, **where)
        auto = {
            "causal": transformers.AutoModelForCausalLM,
            "masked": transformers.AutoModelForMaskedLM,
            "classifier": transformers.AutoModelForSequenceClassification,
        }
        model, report = auto[kind].from_pretrained(
            location, config=config, dtype=dtype, output_loading_info=True, **where
        )
    except ImportError as error:
        raise ModelError(f"{location} needs a package that is missing: {_first(error)}") from error
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise _UnavailableError(f"Cannot load {location}: {_first(error)}") from error
    missing = sorted(report["missing_keys"])
    if head == "new classifier":
        missing = [name for name in missing if _below_the_head(model, name)]
    if missing:
        raise ModelError(
            f"{location} is not a complete {_WHAT[kind]}: {len(missing)} of its weights would "
            f"start at random, among them {missing[0]}. Use a checkpoint that was saved with its "
            f"{'language-modelling' if head == 'language model' else 'classification'} head."
        )
    if device == "cpu":
        from contstim.models.onednn import use_onednn

        use_onednn(model)
    return Checkpoint(model.to(device), tokenizer, location, device, kind)


def _below_the_head(model: Any, weight: str) -> bool:
    """Whether a weight is part of the network that the head, with BERT's pooler, stands on."""
    return weight.startswith(f"{model.base_model_prefix}.") and ".pooler." not in weight


def _kind(location: str, config: Any) -> Kind:
    """Causal or masked: by the architecture it was saved as, else by what its type can be."""
    from transformers.models.auto import modeling_auto as auto

    causal, masked = auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    saved_as = set(config.architectures or ())
    if _is_classifier(config):
        raise ModelError(
            f"{location} is a classifier of sequences, not a language model. If it judges "
            f"acceptability, name it classifier:{location}."
        )
    is_causal = bool(saved_as & set(causal.values())) or not saved_as & set(masked.values())
    is_masked = bool(saved_as & set(masked.values())) or not saved_as & set(causal.values())
    is_causal &= config.model_type in causal
    is_masked &= config.model_type in masked
    if getattr(config, "is_encoder_decoder", False) or not (is_causal or is_masked):
        raise ModelError(
            f"{location} ({', '.join(sorted(saved_as)) or config.model_type}) is neither a causal "
            f"nor a masked language model. Give one that predicts the next token or hidden tokens."
        )
    if is_causal and is_masked:  # XLM's one class for both; BERT without its head
        return "causal" if _reads_left_to_right(config) else "masked"
    return "causal" if is_causal else "masked"


def _is_classifier(config: Any) -> bool:
    names = config.architectures or ()
    return any(name.endswith("ForSequenceClassification") for name in names)


def _reads_left_to_right(config: Any) -> bool:
    return bool(getattr(config, "causal", False) or getattr(config, "is_decoder", False))


def _positions_before_the_first(model: Any) -> int:
    """RoBERTa and its kin count positions from the one after the padding index."""
    for name, module in model.named_modules():
        if name.endswith("position_embeddings"):
            padding = getattr(module, "padding_idx", None)
            return 0 if padding is None else int(padding) + 1
    return 0


def _check_folder(location: str) -> None:
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


def _check_hub(location: str) -> None:
    """Ask the hub once, briefly."""
    import huggingface_hub
    from huggingface_hub import constants

    try:
        huggingface_hub.get_session().head(constants.ENDPOINT, timeout=_HUB_TIMEOUT)
    except Exception as error:  # httpx, requests and offline mode share no base class
        raise ModelError(
            f"{location} is no local folder, is not in the local cache, and {constants.ENDPOINT} "
            f"cannot be reached ({_first(error)}). Download it on a machine with internet access "
            f"('hf download {location} --local-dir DIR'), then give the folder: hf:DIR."
        ) from error


def resolve_device(name: str) -> str:
    """The device that a name stands for; `auto` is a GPU where there is one.

    Raises:
        ModelError: there is no such device.
    """
    import torch

    if name not in get_args(Device):
        raise ModelError(f"There is no device {name!r}; there are {', '.join(get_args(Device))}.")
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        raise ModelError("PyTorch finds no GPU here. Use --device cpu, or auto.")
    return name


def _precision(name: str) -> str:
    if name not in get_args(Precision):
        raise ModelError(
            f"There is no precision {name!r}; there are {', '.join(get_args(Precision))}."
        )
    return "float32" if name == "auto" else name


def _stamp(location: str) -> tuple[object, ...]:
    """Changes when a folder's files do."""
    files = sorted(Path(location).glob("*")) if Path(location).is_dir() else []
    return tuple((file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files)


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


def _first(error: Exception) -> str:
    """The first line of a long message, closed by a full stop."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__).rstrip(".") + "."
