"""Transformer checkpoints from a folder or the hub: causal or masked, complete or refused."""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from weakref import WeakValueDictionary

from contstim.errors import ModelError
from contstim.models import tensors
from contstim.models.checkpoints import checks, gguf
from contstim.models.checkpoints.source import Source, check_location, from_anywhere, stamp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.models.loading import Loading


Kind: TypeAlias = Literal["causal", "masked", "classifier"]
"""What a network was trained to do."""

_LIMITS = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",  # MPT
    "max_seq_length",
    "max_sequence_length",
    "seq_length",  # ChatGLM
    "n_ctx",
)
"""What configurations call the window, the surest first: old ones keep a stale `n_ctx`."""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A network with its head, in evaluation mode, and its tokenizer.

    Attributes:
        model: a `transformers` model for causal or masked language modelling, or a classifier of
            sequences.
        tokenizer: a `transformers` tokenizer.
        location: the folder, GGUF file or hub name that it came from.
        device: where the network's inputs go, such as `cpu` or `cuda`; all of it is there unless a
            device map spreads it.
        kind: whether it predicts the next token, hidden ones, or a sequence's class.
    """

    model: Any
    tokenizer: Any
    location: str
    device: str
    kind: Kind

    def __post_init__(self) -> None:
        self.model.eval()

    @property
    def has_weights(self) -> bool:
        """True if the network can score; without weights it has only its shape."""
        return tensors.is_spread(self.model) or all(
            weight.device.type != "meta" for weight in self.model.parameters()
        )

    def require_weights(self) -> None:
        """Refuse a network that was loaded for its tokenizer only.

        Raises:
            ModelError: it has no weights.
        """
        if not self.has_weights:
            raise ModelError(f"{self.location} was loaded without its weights: it cannot score.")

    @cached_property
    def fingerprint(self) -> str:
        """Hash of weights, precision, configuration and tokenizer, wherever the files lie.

        Without weights, the hash of the tokenizer alone.
        """
        if not self.has_weights:
            return tensors.fingerprint_of_tokenizer(self.tokenizer)
        return tensors.fingerprint(self.model, self.tokenizer)

    @cached_property
    def window(self) -> int | None:
        """Number of tokens that the network can read; None where its configuration sets no limit.

        RoBERTa and its kin count positions from the one after the padding index, so that the
        configuration's number is larger than the window.
        """
        config = self.model.config.get_text_config()
        limits = (getattr(config, name, None) for name in _LIMITS)
        limit = next((n for n in limits if isinstance(n, int) and n > 0), None)
        if limit is None:
            return None
        for name, module in self.model.named_modules():
            if name.endswith("position_embeddings"):
                padding = getattr(module, "padding_idx", None)
                return limit if padding is None else limit - int(padding) - 1
        return limit


def kind_of(location: str, config: Any) -> Kind:
    """Causal or masked: by the architecture it was saved as, else by what its type can be.

    Raises:
        ModelError: the configuration is that of a classifier, or of another kind of network.
    """
    from transformers.models.auto import modeling_auto as auto

    causal, masked = auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    saved_as = set(_architectures(config))
    if is_classifier(config):
        raise ModelError(
            f"{location} is a classifier of sequences, not a language model. If it judges "
            f"acceptability, name it classifier:{location}."
        )
    # An architecture of one list alone decides; of neither list or of both, the type has to
    in_causal, in_masked = (bool(saved_as & set(names.values())) for names in (causal, masked))
    remote_code = getattr(config, "auto_map", None) or {}  # allowed by now
    is_causal = (in_causal or not in_masked) and (
        config.model_type in causal or "AutoModelForCausalLM" in remote_code
    )
    is_masked = (in_masked or not in_causal) and (
        config.model_type in masked or "AutoModelForMaskedLM" in remote_code
    )
    if getattr(config, "is_encoder_decoder", False) or not (is_causal or is_masked):
        kind = ", ".join(sorted(saved_as)) or config.model_type
        raise ModelError(
            f"{location} ({kind}) is neither a causal nor a masked language model. Give one that "
            f"predicts the next token or hidden tokens."
        )
    if is_causal and is_masked:  # XLM's one class for both; BERT without its head
        decodes = getattr(config, "causal", False) or getattr(config, "is_decoder", False)
        return "causal" if decodes else "masked"
    return "causal" if is_causal else "masked"


def is_classifier(config: Any) -> bool:
    """True if a checkpoint was saved as a classifier of sequences."""
    return any(name.endswith("ForSequenceClassification") for name in _architectures(config))


def _architectures(config: Any) -> list[str]:
    names = config.architectures or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ModelError(f"config.json: architectures is {str(names)[:60]!r}, not a list of names.")
    return names


_KINDS: dict[Kind, tuple[str, str]] = {
    "causal": ("causal language model", "AutoModelForCausalLM"),
    "masked": ("masked language model", "AutoModelForMaskedLM"),
    "classifier": ("classifier of sequences", "AutoModelForSequenceClassification"),
}

# Checkpoints still in use: two rules of one checkpoint share its network
_loaded: WeakValueDictionary[tuple[object, ...], Checkpoint] = WeakValueDictionary()


@from_anywhere
def load_checkpoint(
    source: Source, loading: Loading, *, classifier: bool = False, labels: Sequence[str] = ()
) -> Checkpoint:
    """Load a causal or masked language model, as the checkpoint's configuration says.

    A checkpoint that is still in use is not loaded again.

    Args:
        source: a folder with `config.json`, a GGUF file, or a name on the hub such as `gpt2` or
            `gpt2:main`.
        loading: device, precision and the like; without weights the tokenizer and the network's
            shape only.
        classifier: whether to load a classifier of sequences instead.
        labels: classes, in order, of a new head in place of a language model's, to be trained: its
            first weights are drawn from torch's generator, and the network is shared with nobody.

    Raises:
        ModelError: the folder is missing or a file in it damaged; the hub cannot be reached; the
            checkpoint has no trained head of that kind, or weights that its configuration has no
            place for; its tokenizer is not that of the network, or needs a package that is not
            installed; a causal network reads what follows; it wants to run code of its own; the
            memory does not hold it; or see `Loading.resolved`.
    """
    import transformers

    location, loading = source.location, loading.resolved()
    check_location(location)
    key, stamped = (location, repr(loading), classifier), stamp(location)
    if not labels and (in_use := _loaded.get((*key, stamped))):
        return in_use
    source.check()
    if source.gguf:
        gguf.check_use(location, classifier=classifier, quantize=loading.quantize)
        gguf.hide_progress_bar()
    named = {"id2label": dict(enumerate(labels))} if labels else {}
    config = transformers.AutoConfig.from_pretrained(source.path, **source.options, **named)
    kind: Kind = "classifier" if classifier else kind_of(location, config)
    if labels and is_classifier(config):
        raise ModelError(f"{location} is a classifier already: name the language model it is of.")
    tokenizer = transformers.AutoTokenizer.from_pretrained(source.path, **source.options)
    model, device = _network(source, kind, config, loading, new_head=bool(labels))
    checks.check_tokenizer(location, tokenizer, model)
    checkpoint = Checkpoint(model, tokenizer, location, device, kind)
    if loading.weights:
        checks.check_behaviour(checkpoint)
    if not labels:
        # What was fetched from the hub just now has a commit since
        _loaded[(*key, stamped if Path(location).exists() else stamp(location))] = checkpoint
    return checkpoint


def _network(
    source: Source, kind: Kind, config: Any, loading: Loading, *, new_head: bool
) -> tuple[Any, str]:
    """The network on its device or spread over several, and the device of its inputs."""
    import transformers

    what, auto_name = _KINDS[kind]
    auto = getattr(transformers, auto_name)
    trusted = source.trust_remote_code
    if not loading.weights:
        return checks.without_weights(auto, config, trust_remote_code=trusted), loading.device
    if isinstance(loading.device_map, Mapping):
        shape = checks.without_weights(auto, config, trust_remote_code=trusted)
        tensors.check_map(source.location, shape, loading.device_map)
    quantization = gguf.dequantization() if source.gguf else {}
    offload = mkdtemp(prefix="contstim-") if loading.device_map is not None else ""
    try:
        model, report = auto.from_pretrained(
            source.path,
            config=config,
            output_loading_info=True,
            **source.options,
            **tensors.spreading(loading, offload),
            **quantization,
        )
    except BaseException:
        shutil.rmtree(offload, ignore_errors=True)
        raise
    if offload:
        weakref.finalize(model, shutil.rmtree, offload, ignore_errors=True)
    checks.check_weights(source.location, what, model, report, new_head=new_head)
    if tensors.is_spread(model):
        return model, tensors.input_device(model)
    if loading.device == "cpu":
        from contstim.models.onednn import use_onednn

        use_onednn(model)
    return model.to(loading.device), loading.device


@from_anywhere
def load_tokenizer(source: Source, _loading: Loading) -> tuple[Any, Any]:
    """Load a tokenizer without its network, which may be elsewhere.

    Returns:
        The tokenizer, and the network's text configuration, None where a folder has none.

    Raises:
        ModelError: see `load_checkpoint`.
    """
    import transformers

    config, folder = None, Path(source.location)
    if source.gguf or not folder.is_dir() or (folder / "config.json").is_file():
        source.check()
        whole = transformers.AutoConfig.from_pretrained(source.path, **source.options)
        config = whole.get_text_config()
    tokenizer = transformers.AutoTokenizer.from_pretrained(source.path, **source.options)
    checks.check_words(source.location, tokenizer)
    return tokenizer, config
