"""Transformer checkpoints from a folder or the hub: causal or masked, complete or refused."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias
from weakref import WeakValueDictionary

from contstim.errors import ModelError
from contstim.models.checkpoints.checkpoint import Checkpoint
from contstim.models.checkpoints.devices import resolve_device, resolve_precision
from contstim.models.checkpoints.folders import check_folder, check_hub, stamp
from contstim.models.checkpoints.foreign import first_line, silence
from contstim.models.checkpoints.kinds import is_classifier, kind_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from contstim.models.checkpoints.checkpoint import Kind
    from contstim.models.checkpoints.devices import Device, Precision

_Head: TypeAlias = Literal["language model", "classifier", "new classifier"]

_WHAT: dict[Kind, str] = {
    "causal": "causal language model",
    "masked": "masked language model",
    "classifier": "classifier of sequences",
}


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
    place, precision = resolve_device(device), resolve_precision(dtype)
    check_folder(location)
    key = (location, place, precision, classifier, stamp(location))
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
    check_folder(location)
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
        check_hub(location)
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
        kind: Kind = kind_of(location, config) if head == "language model" else "classifier"
        if head == "new classifier" and is_classifier(config):
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
        raise ModelError(
            f"{location} needs a package that is missing: {first_line(error)}"
        ) from error
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise _UnavailableError(f"Cannot load {location}: {first_line(error)}") from error
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
