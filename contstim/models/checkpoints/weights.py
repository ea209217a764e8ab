"""Check that a configuration and weights belong together, before and after a network is built.

The library builds whatever `config.json` asks for before it compares it with the weights: billions
of layers one by one, or an embedding larger than the memory. So the sizes are compared beforehand,
by `check_counts` and `check_sizes`. Afterwards `check_weights` makes sure that all weights were
there, had a place, and are numbers.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contstim.errors import ModelError
from contstim.models.spread import with_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_COUNT = re.compile(r"(^|_)(layers?|blocks?|groups?|experts?)(_num)?$")
_MOST_PARTS = 4_096  # far more than any network has; each takes a millisecond to build
_MOST_IN_BUFFERS = 2**31  # numbers in untrained tensors, such as masks and tables of angles
_INTEGERS = frozenset({"I8", "U8", "I16", "U16", "I32", "U32", "I64", "U64", "BOOL"})
_HARMLESS = re.compile(
    "|".join(
        (
            # heads for tasks beside that of predicting tokens
            r"(^|\.)pooler\.",  # BERT, RoBERTa, ALBERT: of the first token
            r"(^|\.)seq_relationship\.",  # BERT: next sentence
            r"(^|\.)sop_classifier\.",  # ALBERT: order of sentences
            r"(^|\.)discriminator_predictions\.",  # ELECTRA
            r"(^|\.)mask_predictions\.",  # DeBERTa 3: replaced tokens
            r"(^|\.)multiple_choice_head\.",  # GPT-2 with two heads
            r"(^|\.)contact_head\.",  # ESM
            # further copies of the embedding and of the bias
            r"(^|\.)lm_head\.(decoder\.(weight|bias)|weight)$",
            r"(^|\.)predictions\.decoder\.(weight|bias)$",
            # what follows from the configuration
            r"(^|\.)(attn|attention|self_attn)\.(attention\.)?(masked_)?bias$",  # causal masks
            r"(^|\.)rotary_emb\.",
            r"(^|\.)(inv_freq|position_ids|token_type_ids|version|final_logits_bias)$",
        )
    )
)
_HEAD = re.compile(
    r"^(cls|lm_head|predictions|generator_predictions|generator_lm_head|lm_predictions|pred_layer|"
    r"vocab_[a-z_]+|mlm|embed_out|head|score|classifier|qa_outputs)\.|^decoder\.(weight|bias)$"
)


def check_counts(location: str, config: dict[str, Any]) -> None:
    """Refuse a configuration that asks for more layers or experts than can be built.

    Raises:
        ModelError: names the entry.
    """
    for name, value in _numbers(config):
        if _COUNT.search(name) and value > _MOST_PARTS:
            number = f"{value:,}" if value < 10**15 else "a number of more than 15 digits"
            raise ModelError(
                f"{location}: config.json says {name} = {number}; networks of up to "
                f"{_MOST_PARTS:,} can be loaded. Give the configuration that the weights were "
                f"saved with."
            )


def without_weights(model_class: Any, config: Any, *, trust_remote_code: bool) -> Any:
    """The network that a configuration describes, with the shapes of its weights only.

    Args:
        model_class: an auto class of `transformers`.
        config: its configuration.
        trust_remote_code: whether it may run code of its own.
    """
    import torch
    from transformers.initialization import no_init_weights

    with torch.device("meta"), no_init_weights():
        network = model_class.from_config(config, trust_remote_code=trust_remote_code)
    # Left undone where nothing is initialised: the output would count beside its embedding
    network.tie_weights()
    return network


def check_sizes(location: str, network: Any) -> None:
    """Refuse a configuration of a network that is far larger than the weights in its folder.

    Args:
        location: a folder; checkpoints of the hub are not checked.
        network: see `without_weights`.

    Raises:
        ModelError: the network is larger.
    """
    folder = Path(location)
    if not folder.is_dir():
        return
    # At most: pickled and safetensors files are both counted, at four bits a number.
    files = [*folder.glob("*.safetensors"), *folder.glob("*.bin")]
    stored = 2 * sum(file.stat().st_size for file in files)
    weights = sum(weight.numel() for weight in network.parameters())
    buffers = sum(buffer.numel() for buffer in network.buffers())
    if weights > max(4 * stored, 10**7) or buffers > _MOST_IN_BUFFERS:
        raise ModelError(
            f"{location}: config.json describes a network of {max(weights, buffers):,} numbers, "
            f"the files beside it hold {stored:,}. Give the configuration that the weights were "
            f"saved with."
        )


def _numbers(config: Any, name: str = "") -> Iterator[tuple[str, int]]:
    if isinstance(config, dict):
        for key, value in config.items():
            yield from _numbers(value, str(key))
    elif isinstance(config, int):
        yield name, config


def _integer_tensors(location: str) -> set[str]:
    """Names of the tensors that a folder's safetensors files keep as whole numbers."""
    from safetensors import safe_open

    names: set[str] = set()
    for path in Path(location).glob("*.safetensors"):
        with safe_open(path, "pt") as file:
            kinds = {name: file.get_slice(name).get_dtype() for name in file.keys()}  # noqa: SIM118
        names |= {name for name, kind in kinds.items() if kind in _INTEGERS}
    return names


def check_weights(
    location: str, what: str, model: Any, report: dict[str, Any], *, new_head: bool = False
) -> None:
    """Refuse a network with weights that are missing, left over, or not numbers.

    Args:
        location: where it came from.
        what: its kind, as a noun phrase.
        model: the network.
        report: what the library says of the weights' names.
        new_head: whether the head starts anew, and another's may be left over.

    Raises:
        ModelError: names one of the weights.
    """
    missing = sorted(report["missing_keys"])
    if new_head:
        # the head, with BERT's pooler, stands on the network; what is below it must be there
        body = f"{model.base_model_prefix}."
        missing = [name for name in missing if name.startswith(body) and ".pooler." not in name]
    if missing:
        raise ModelError(
            f"{location} is not a complete {what}: {len(missing)} of its weights would start at "
            f"random, among them {missing[0]}. Use a checkpoint that was saved with its "
            f"{'classification' if 'classifier' in what else 'language-modelling'} head."
        )
    spare = left_over(report["unexpected_keys"], new_head=new_head)
    if spare:
        raise ModelError(
            f"{location} holds {len(spare)} weights that have no place in the {what} that its "
            f"config.json describes, among them {spare[0]}. Give the configuration that the "
            f"weights were saved with."
        )
    _check_numbers(location, model)


def left_over(names: Iterable[str], *, new_head: bool = False) -> list[str]:
    """The weights without a place that matter, such as a layer; unused heads do not.

    Args:
        names: of weights that the network has no place for.
        new_head: whether heads of language models are expected among them.
    """
    return sorted(
        name
        for name in names
        if not _HARMLESS.search(name) and not (new_head and _HEAD.search(name))
    )


def _check_numbers(location: str, model: Any) -> None:
    import torch

    quantised = getattr(model.config, "quantization_config", None) is not None
    whole = set() if quantised else _integer_tensors(location)
    for name, weight in with_values(model, model.named_parameters()):
        if name in whole:
            raise ModelError(
                f"{location}: the weight {name} is kept as whole numbers, without a quantization "
                f"that says what they stand for. Save it in float32, bfloat16 or float16."
            )
        if not weight.is_floating_point():
            continue
        # a sum takes one pass and no memory; infinite if large, which is then looked at again
        if not torch.isfinite(weight.detach().sum(dtype=torch.float32)) and not bool(
            torch.isfinite(weight.detach()).all()
        ):
            raise ModelError(
                f"{location}: the weight {name} holds values that are not finite numbers (nan or "
                f"infinity). The file is damaged, or its training diverged: use another."
            )
