"""Transformer checkpoints from a folder or the hub: causal or masked, complete or refused."""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from weakref import WeakValueDictionary

from contstim.errors import ModelError
from contstim.models.checkpoints.checkpoint import Checkpoint, is_classifier, kind_of
from contstim.models.checkpoints.devices import Placement
from contstim.models.checkpoints.foreign import UnavailableError, foreign_errors, silence
from contstim.models.checkpoints.memory import check_memory
from contstim.models.checkpoints.probes import check_behaviour
from contstim.models.checkpoints.source import Source, check_folder, check_hub, stamp
from contstim.models.checkpoints.tokenizers import check_tokenizer, check_words
from contstim.models.checkpoints.weights import check_sizes, check_weights, without_weights
from contstim.models.spread import check_map, input_device, is_spread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.models.checkpoints.checkpoint import Kind
    from contstim.models.checkpoints.devices import Device, DeviceMap, Precision, Quantization

_Head: TypeAlias = Literal["language model", "classifier", "new classifier"]

_WHAT: dict[Kind, str] = {
    "causal": "causal language model",
    "masked": "masked language model",
    "classifier": "classifier of sequences",
}
_AUTO: dict[Kind, str] = {
    "causal": "AutoModelForCausalLM",
    "masked": "AutoModelForMaskedLM",
    "classifier": "AutoModelForSequenceClassification",
}

# Checkpoints still in use: two rules of one checkpoint share its network
_loaded: WeakValueDictionary[tuple[object, ...], Checkpoint] = WeakValueDictionary()


def load_checkpoint(
    location: str,
    *,
    device: Device = "auto",
    dtype: Precision = "auto",
    device_map: DeviceMap | None = None,
    quantize: Quantization | None = None,
    classifier: bool = False,
    trust_remote_code: bool = False,
    weights: bool = True,
) -> Checkpoint:
    """Load a causal or masked language model, as the checkpoint's configuration says.

    A folder is read as it is. A name of the hub is looked for in the local cache first, and only
    then on the hub. A checkpoint that is still in use is not loaded again.

    Args:
        location: a folder with `config.json`, or a name on the hub such as `gpt2`.
        device: `auto` is a GPU where there is one.
        dtype: `auto` is float32: half precision rounds scores to ties and is only for models that
            would not fit otherwise.
        device_map: `auto` spreads the network over all GPUs, memory and disk; a mapping says where
            each part goes, such as `{"transformer": 0, "lm_head": "cpu"}`.
        quantize: `int8` or `int4` quantizes its linear layers, apart from the output.
        classifier: whether to load a classifier of sequences instead.
        trust_remote_code: whether the checkpoint may run Python code that lies beside its weights.
        weights: False loads the tokenizer and the network's shape only.

    Raises:
        ModelError: the folder is missing or a file in it damaged; the hub cannot be reached; the
            checkpoint has no trained head of that kind, or weights that its configuration has no
            place for; its tokenizer is not that of the network, or needs a package that is not
            installed; a causal network reads what follows; it wants to run code of its own; the
            memory does not hold it; or the device or the precision does not exist.
    """
    placement = Placement.resolve(device, dtype, device_map, quantize)
    check_folder(location)
    key = (location, placement.key, classifier, trust_remote_code, weights)
    stamped = stamp(location)
    checkpoint = _loaded.get((*key, stamped))
    if checkpoint is None:
        head: _Head = "classifier" if classifier else "language model"
        checkpoint = _load(
            location,
            placement,
            head,
            trust_remote_code=trust_remote_code,
            weights=weights,
        )
        # What was fetched from the hub just now has a commit since
        _loaded[(*key, stamped if Path(location).is_dir() else stamp(location))] = checkpoint
    return checkpoint


def new_classifier(
    location: str, labels: Sequence[str], *, trust_remote_code: bool = False
) -> Checkpoint:
    """A checkpoint's network on the CPU with a new classification head, ready to be trained.

    The head's first weights are drawn from torch's generator. The network is shared with no other
    model.

    Args:
        location: as of `load_checkpoint`; the head of a language model is dropped.
        labels: names of the classes, in order.
        trust_remote_code: as of `load_checkpoint`.

    Raises:
        ModelError: see `load_checkpoint`; or it is a classifier already, or more than the head is
            missing.
    """
    check_folder(location)
    return _load(
        location,
        Placement("cpu", "float32"),
        "new classifier",
        labels,
        trust_remote_code=trust_remote_code,
    )


def load_tokenizer(location: str, *, trust_remote_code: bool = False) -> tuple[Any, Any]:
    """Load a tokenizer without its network, which may be elsewhere.

    Args:
        location: a folder with the tokenizer's files, or a name on the hub.
        trust_remote_code: as of `load_checkpoint`.

    Returns:
        The tokenizer, and the network's text configuration, None where a folder has none.

    Raises:
        ModelError: see `load_checkpoint`.
    """
    if not Path(location).is_dir():
        check_folder(location)
    source = Source(location, local=True, trust_remote_code=trust_remote_code)
    with silence():
        try:
            return _open_tokenizer(source)
        except UnavailableError:
            if Path(location).is_dir():
                raise
        check_hub(location)
        return _open_tokenizer(replace(source, local=False))


def _open_tokenizer(source: Source) -> tuple[Any, Any]:
    import transformers

    folder, config = Path(source.location), None
    with foreign_errors(source.location):
        if not folder.is_dir() or (folder / "config.json").is_file():
            source.check()
            config = source.load(transformers.AutoConfig).get_text_config()
        tokenizer = source.load(transformers.AutoTokenizer)
        check_words(source.location, tokenizer)
    return tokenizer, config


def _load(
    location: str,
    placement: Placement,
    head: _Head,
    labels: Sequence[str] = (),
    *,
    trust_remote_code: bool,
    weights: bool = True,
) -> Checkpoint:
    """Load from a folder or the local cache; from the hub where neither has the checkpoint."""
    source = Source(location, local=True, trust_remote_code=trust_remote_code)
    with silence():
        try:
            return _open(source, placement, head, labels, weights=weights)
        except UnavailableError:
            if Path(location).is_dir():
                raise
        check_hub(location)
        return _open(replace(source, local=False), placement, head, labels, weights=weights)


def _open(
    source: Source, placement: Placement, head: _Head, labels: Sequence[str], *, weights: bool
) -> Checkpoint:
    import transformers

    location, trust_remote_code = source.location, source.trust_remote_code
    with foreign_errors(location):
        # The configuration first: it decides what is built, and must not ask for too much
        source.check()
        named = {"id2label": dict(enumerate(labels))} if labels else {}
        config = source.load(transformers.AutoConfig, **named)
        kind: Kind = kind_of(location, config) if head == "language model" else "classifier"
        if head == "new classifier" and is_classifier(config):
            raise ModelError(
                f"{location} is a classifier already, whose head would not start anew. Name the "
                f"language model that it was made from."
            )
        tokenizer = source.load(transformers.AutoTokenizer)
        auto = getattr(transformers, _AUTO[kind])
        # The sizes next, on a network without memory; a checkpoint's code is run only once
        if not (weights and trust_remote_code):
            shape = without_weights(auto, config, trust_remote_code=trust_remote_code)
            if not weights:
                check_tokenizer(location, tokenizer, shape)
                return Checkpoint(shape, tokenizer, location, placement.device, kind)
            check_sizes(location, shape)
            # A network that was saved quantized is smaller than its shape says, and a map spreads
            # one of any size
            if isinstance(placement.device_map, Mapping):
                check_map(location, shape, placement.device_map)
            elif placement.device_map is None and not hasattr(config, "quantization_config"):
                check_memory(location, shape, placement)
        offload = mkdtemp(prefix="contstim-") if placement.device_map is not None else ""
        try:
            model, report = source.load(
                auto, config=config, output_loading_info=True, **placement.settings(offload)
            )
        except BaseException:
            shutil.rmtree(offload, ignore_errors=True)
            raise
        if offload:
            weakref.finalize(model, shutil.rmtree, offload, ignore_errors=True)
        check_weights(location, _WHAT[kind], model, report, new_head=head == "new classifier")
        check_tokenizer(location, tokenizer, model)
        device = placement.device
        if is_spread(model):
            device = input_device(model)
        else:
            if device == "cpu":
                from contstim.models.onednn import use_onednn

                use_onednn(model)
            model = model.to(device)
        checkpoint = Checkpoint(model, tokenizer, location, device, kind)
        check_behaviour(checkpoint)
    return checkpoint
