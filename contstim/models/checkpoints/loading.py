"""Transformer checkpoints from a folder or the hub: causal or masked, complete or refused."""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from contstim.errors import ModelError
from contstim.models.checkpoints.checkpoint import Checkpoint, is_classifier, kind_of
from contstim.models.checkpoints.probes import check_behaviour
from contstim.models.checkpoints.source import check_folder, foreign_errors, open_source, stamp
from contstim.models.checkpoints.tokenizers import check_tokenizer, check_words
from contstim.models.checkpoints.weights import check_sizes, check_weights, without_weights
from contstim.models.loading import DEFAULT_LOADING, Loading
from contstim.models.spread import check_map, input_device, is_spread, spreading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.models.checkpoints.checkpoint import Kind
    from contstim.models.checkpoints.source import Source

_KINDS: dict[Kind, tuple[str, str]] = {
    "causal": ("causal language model", "AutoModelForCausalLM"),
    "masked": ("masked language model", "AutoModelForMaskedLM"),
    "classifier": ("classifier of sequences", "AutoModelForSequenceClassification"),
}

# Checkpoints still in use: two rules of one checkpoint share its network
_loaded: WeakValueDictionary[tuple[object, ...], Checkpoint] = WeakValueDictionary()


def load_checkpoint(
    location: str, loading: Loading = DEFAULT_LOADING, *, classifier: bool = False
) -> Checkpoint:
    """Load a causal or masked language model, as the checkpoint's configuration says.

    A folder is read as it is. A name of the hub is looked for in the local cache first, and only
    then on the hub. A checkpoint that is still in use is not loaded again.

    Args:
        location: a folder with `config.json`, or a name on the hub such as `gpt2`.
        loading: device, precision and the like; without weights the tokenizer and the network's
            shape only.
        classifier: whether to load a classifier of sequences instead.

    Raises:
        ModelError: the folder is missing or a file in it damaged; the hub cannot be reached; the
            checkpoint has no trained head of that kind, or weights that its configuration has no
            place for; its tokenizer is not that of the network, or needs a package that is not
            installed; a causal network reads what follows; it wants to run code of its own; the
            memory does not hold it; or see `Loading.resolved`.
    """
    loading = replace(loading.resolved(), prompt=None)
    check_folder(location)
    key = (location, repr(loading), classifier)
    stamped = stamp(location)
    checkpoint = _loaded.get((*key, stamped))
    if checkpoint is None:
        checkpoint = _load(location, loading, classifier=classifier)
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
        trust_remote_code: see `Loading`.

    Raises:
        ModelError: see `load_checkpoint`; or it is a classifier already, or more than the head is
            missing.
    """
    check_folder(location)
    loading = Loading(device="cpu", trust_remote_code=trust_remote_code).resolved()
    return _load(location, loading, classifier=True, labels=labels)


def load_tokenizer(location: str, *, trust_remote_code: bool = False) -> tuple[Any, Any]:
    """Load a tokenizer without its network, which may be elsewhere.

    Args:
        location: a folder with the tokenizer's files, or a name on the hub.
        trust_remote_code: see `Loading`.

    Returns:
        The tokenizer, and the network's text configuration, None where a folder has none.

    Raises:
        ModelError: see `load_checkpoint`.
    """
    folder = Path(location)
    if not folder.is_dir():
        check_folder(location)

    def load(source: Source) -> tuple[Any, Any]:
        import transformers

        config = None
        with foreign_errors(location):
            if not folder.is_dir() or (folder / "config.json").is_file():
                source.check()
                config = source.load(transformers.AutoConfig).get_text_config()
            tokenizer = source.load(transformers.AutoTokenizer)
            check_words(location, tokenizer)
        return tokenizer, config

    return open_source(location, load, trust_remote_code=trust_remote_code)


def _load(
    location: str, loading: Loading, *, classifier: bool, labels: Sequence[str] = ()
) -> Checkpoint:
    """Load from a folder, the local cache or the hub; with labels, with a new head for them."""

    def load(source: Source) -> Checkpoint:
        with foreign_errors(location):
            return _open(source, loading, classifier=classifier, labels=labels)

    return open_source(location, load, trust_remote_code=loading.trust_remote_code)


def _open(
    source: Source, loading: Loading, *, classifier: bool, labels: Sequence[str]
) -> Checkpoint:
    import transformers

    location, trust_remote_code = source.location, source.trust_remote_code
    # The configuration first: it decides what is built, and must not ask for too much
    source.check()
    named = {"id2label": dict(enumerate(labels))} if labels else {}
    config = source.load(transformers.AutoConfig, **named)
    kind: Kind = "classifier" if classifier else kind_of(location, config)
    if labels and is_classifier(config):
        raise ModelError(
            f"{location} is a classifier already, whose head would not start anew. Name the "
            f"language model that it was made from."
        )
    tokenizer = source.load(transformers.AutoTokenizer)
    what, auto_name = _KINDS[kind]
    auto = getattr(transformers, auto_name)
    # The sizes next, on a network without memory; a checkpoint's code is run only once
    if not (loading.weights and trust_remote_code):
        shape = without_weights(auto, config, trust_remote_code=trust_remote_code)
        if not loading.weights:
            check_tokenizer(location, tokenizer, shape)
            return Checkpoint(shape, tokenizer, location, loading.device, kind)
        check_sizes(location, shape)
        if isinstance(loading.device_map, Mapping):
            check_map(location, shape, loading.device_map)
    offload = mkdtemp(prefix="contstim-") if loading.device_map is not None else ""
    try:
        model, report = source.load(
            auto, config=config, output_loading_info=True, **spreading(loading, offload)
        )
    except BaseException:
        shutil.rmtree(offload, ignore_errors=True)
        raise
    if offload:
        weakref.finalize(model, shutil.rmtree, offload, ignore_errors=True)
    check_weights(location, what, model, report, new_head=bool(labels))
    check_tokenizer(location, tokenizer, model)
    device: str = loading.device
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
