"""Loading of causal, masked and classifier checkpoints from a folder or the hub."""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast
from weakref import WeakValueDictionary

from contstim.errors import ModelError
from contstim.models import tensors
from contstim.models.checkpoints import checks
from contstim.models.checkpoints.source import Source, check_location, from_anywhere, stamp

if TYPE_CHECKING:
    from contstim.models.loading import Loading


Kind: TypeAlias = Literal["causal", "masked", "classifier"]
"""Task for which a network was trained."""

# Names of the window (the maximum number of tokens) in configurations, the most reliable first.
#
# For example, MPT uses `max_seq_len`, and ChatGLM uses `seq_length`. The value of `n_ctx` may be
# outdated
_LIMITS = (
    *("max_position_embeddings", "n_positions", "max_seq_len", "max_seq_length"),
    *("max_sequence_length", "seq_length", "n_ctx"),
)


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A network in evaluation mode, and its tokenizer. The network has an output head.

    Attributes:
        model: `transformers` model for causal or masked language modelling, or for sequence
            classification.
        tokenizer: `transformers` tokenizer.
        location: folder, GGUF file or hub name of the checkpoint.
        device: device of the network's inputs, such as `cpu` or `cuda`.
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
        """True if the network has weights; False if only the weights' shapes were loaded."""
        return tensors.is_spread(self.model) or not tensors.has_parts_elsewhere(self.model)

    def require_weights(self) -> None:
        """Check that the network has weights.

        Raises:
            ModelError: if only the tokenizer of the checkpoint was loaded, without weights.
        """
        if not self.has_weights:
            raise ModelError(f"{self.location} was loaded without its weights, so it cannot score.")

    @cached_property
    def fingerprint(self) -> str:
        """Hash of weights, precision, configuration and tokenizer. The location has no effect.

        If the network has no weights, only the tokenizer is hashed.
        """
        if not self.has_weights:
            return tensors.fingerprint_of_tokenizer(self.tokenizer)
        return tensors.fingerprint(self.model, self.tokenizer)

    @cached_property
    def window(self) -> int | None:
        """Maximum number of tokens of an input; None if the configuration sets no limit.

        In RoBERTa and similar networks, the first position has the number "id of the padding token
        plus 1". So the limit in the configuration exceeds the window.
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
    """Return `causal` or `masked`, depending on the saved architecture or the model type.

    Raises:
        ModelError: if the network is neither causal nor masked.
    """
    from transformers.models.auto import modeling_auto as auto

    causal, masked = auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    saved_as = set(_architectures(config))
    if is_classifier(config):
        raise ModelError(
            f"{location} is a sequence classifier, not a language model. If it judges "
            f"acceptability, write classifier:{location}."
        )
    # Use the architecture if it is only causal or only masked; otherwise use the model type
    in_causal, in_masked = (bool(saved_as & set(names.values())) for names in (causal, masked))
    remote_code = getattr(config, "auto_map", None) or {}  # `Source.check` has permitted it
    has_causal = config.model_type in causal or "AutoModelForCausalLM" in remote_code
    has_masked = config.model_type in masked or "AutoModelForMaskedLM" in remote_code
    is_causal = has_causal and (in_causal or not in_masked)
    is_masked = has_masked and (in_masked or not in_causal)
    if getattr(config, "is_encoder_decoder", False) or not (is_causal or is_masked):
        kind = ", ".join(sorted(saved_as)) or config.model_type
        raise ModelError(
            f"{location} ({kind}) is neither a causal nor a masked language model. Use a "
            "model that predicts the next token or masked tokens."
        )
    # The architecture does not show the kind of XLM (one class for both kinds) and of BERT without
    # its head. So use the settings of the configuration
    decodes = getattr(config, "causal", False) or getattr(config, "is_decoder", False)
    return "causal" if is_causal and (decodes or not is_masked) else "masked"


def is_classifier(config: Any) -> bool:
    """Return True if a checkpoint was saved as a sequence classifier."""
    return any(name.endswith("ForSequenceClassification") for name in _architectures(config))


def _architectures(config: Any) -> list[str]:
    names = config.architectures or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ModelError(
            f"architectures in config.json of {config.name_or_path} must be a list of names, got "
            f"{str(names)[:60]!r}."
        )
    return names


# For each kind, a noun phrase for messages and the class of `transformers` that loads the network
_KINDS: dict[Kind, tuple[str, str]] = {
    "causal": ("causal language model", "AutoModelForCausalLM"),
    "masked": ("masked language model", "AutoModelForMaskedLM"),
    "classifier": ("sequence classifier", "AutoModelForSequenceClassification"),
}

# Checkpoints in use; two models with the same checkpoint share its network
_loaded: WeakValueDictionary[tuple[object, ...], Checkpoint] = WeakValueDictionary()


@from_anywhere
def load_checkpoint(
    source: Source, loading: Loading, *, classifier: bool = False, labels: Sequence[str] = ()
) -> Checkpoint:
    """Load a language model or a classifier.

    The configuration of a language model determines whether the model is causal or masked. A
    checkpoint that is still in use is not loaded again.

    Args:
        source: folder with `config.json`, GGUF file, or name on the hub such as `gpt2` or
            `gpt2:main`.
        loading: device, precision and other options.
        classifier: whether to load a sequence classifier instead of a language model.
        labels: label names for a new classification head, in the order of their indices; if empty,
            no new head is added. The weights of a new head are random. A network with a new head is
            not shared with other models.

    Raises:
        ModelError: if files are missing, damaged or do not fit one another; if the hub cannot be
            reached; if a package is missing or memory is insufficient; if the checkpoint requires
            Python code that is not allowed, or has no trained head of the required kind; if its
            output depends on the wrong tokens; if `labels` are given although the checkpoint is
            already a classifier; or if `classifier` or `quantize` is set for a GGUF file. See also
            `Loading.resolved`.
    """
    import transformers

    location, loading = source.location, loading.resolved()
    check_location(location)
    key, current_stamp = (location, repr(loading), classifier), stamp(location)
    if not labels and (in_use := _loaded.get((*key, current_stamp))):
        return in_use
    source.check()
    if source.gguf:
        _check_use_of_gguf(location, classifier=classifier, quantize=loading.quantize)
        _hide_progress_bar()
    label_names = {"id2label": dict(enumerate(labels))} if labels else {}
    config = transformers.AutoConfig.from_pretrained(source.path, **source.options, **label_names)
    kind: Kind = "classifier" if classifier else kind_of(location, config)
    if labels and is_classifier(config):
        raise ModelError(f"{location} is already a classifier. Train one from a language model.")
    tokenizer = transformers.AutoTokenizer.from_pretrained(source.path, **source.options)
    model, device = _load_network(source, kind, config, loading, new_head=bool(labels))
    checks.check_tokenizer(location, tokenizer, model)
    checkpoint = Checkpoint(model, tokenizer, location, device, kind)
    if loading.weights:
        checks.check_behaviour(checkpoint)
    if not labels:
        # A stamp changes if the checkpoint changes. The stamp of a hub model is its commit, which
        # was unknown before a download. Therefore, compute the stamp again
        _loaded[(*key, current_stamp if Path(location).exists() else stamp(location))] = checkpoint
    return checkpoint


def _load_network(
    source: Source, kind: Kind, config: Any, loading: Loading, *, new_head: bool
) -> tuple[Any, str]:
    """Return the network, and the device of its inputs."""
    import transformers

    description, auto_name = _KINDS[kind]
    auto = getattr(transformers, auto_name)
    trusted = source.trust_remote_code
    if not loading.weights:
        return checks.without_weights(auto, config, trust_remote_code=trusted), loading.device
    if isinstance(loading.device_map, Mapping):
        shape = checks.without_weights(auto, config, trust_remote_code=trusted)
        tensors.check_map(source.location, shape, loading.device_map)
    # Without dequantization, a GPU with the package `kernels` would compute with the quantized
    # weights of a GGUF file. The file name would also become part of the configuration, so that the
    # fingerprint would depend on it
    gguf_config: Any = transformers.GgufConfig
    quantization = {"quantization_config": gguf_config(dequantize=True)} if source.gguf else {}
    offload = mkdtemp(prefix="contstim-") if loading.device_map is not None else ""
    try:
        model, report = auto.from_pretrained(
            source.path,
            config=config,
            output_loading_info=True,
            **source.options,
            **tensors.placement_options(loading, offload),
            **quantization,
        )
    except BaseException:
        shutil.rmtree(offload, ignore_errors=True)
        raise
    if offload:
        weakref.finalize(model, shutil.rmtree, offload, ignore_errors=True)
    checks.check_weights(source.location, description, model, report, new_head=new_head)
    if tensors.is_spread(model):
        return model, tensors.input_device(model)
    if loading.device == "cpu":
        from contstim.models.onednn import use_onednn

        use_onednn(model)
    return model.to(loading.device), loading.device


def _check_use_of_gguf(location: str, *, classifier: bool, quantize: str | None) -> None:
    if classifier:
        raise ModelError(
            f"{location} is a GGUF file, so it contains a causal model. To load or train a "
            "classifier, use a folder or a name on the Hub."
        )
    if quantize is not None:
        raise ModelError(
            f"quantize must be empty for {location}, whose weights are quantized already, "
            f"got {quantize}. Remove --quantize."
        )


def _hide_progress_bar() -> None:
    """Replace the progress bar of GGUF files by a progress bar that `transformers` can hide."""
    from transformers.utils import logging

    with suppress(ImportError):  # newer versions read most files without this module
        from transformers import modeling_gguf_pytorch_utils as reader

        cast("Any", reader).tqdm = logging.tqdm


@from_anywhere
def load_tokenizer(source: Source, _loading: Loading) -> tuple[Any, Any]:
    """Load a tokenizer without its network.

    Returns:
        The tokenizer, and the text configuration of its network (None if a folder has no
        config.json).

    Raises:
        ModelError: see `load_checkpoint`.
    """
    import transformers

    config, folder = None, Path(source.location)
    if source.gguf or not folder.is_dir() or (folder / "config.json").is_file():
        source.check()
        full_config = transformers.AutoConfig.from_pretrained(source.path, **source.options)
        config = full_config.get_text_config()
    tokenizer = transformers.AutoTokenizer.from_pretrained(source.path, **source.options)
    checks.check_words(source.location, tokenizer)
    return tokenizer, config
