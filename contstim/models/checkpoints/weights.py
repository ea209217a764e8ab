"""Whether a network got all of its weights, they all had a place, and they are numbers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from contstim.errors import ModelError
from contstim.models.checkpoints.stored import integer_tensors

if TYPE_CHECKING:
    from collections.abc import Iterable

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


def check_weights(
    location: str, what: str, model: Any, report: dict[str, Any], *, new_head: bool = False
) -> None:
    """Refuse a network with weights that are missing, left over, or not numbers.

    Args:
        location: where it came from.
        what: what it was loaded as.
        model: the network.
        report: what the library says of the weights' names.
        new_head: whether the head starts anew, and another's may be left over.

    Raises:
        ModelError: names one of the weights.
    """
    missing = sorted(report["missing_keys"])
    if new_head:
        missing = [name for name in missing if _below_the_head(model, name)]
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
    """The names among weights without a place that matter: a layer, not an unused head.

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

    whole = set() if _is_quantised(model) else set(integer_tensors(location))
    for name, weight in model.named_parameters():
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


def _is_quantised(model: Any) -> bool:
    return getattr(model.config, "quantization_config", None) is not None


def _below_the_head(model: Any, weight: str) -> bool:
    """Whether a weight is part of the network that the head, with BERT's pooler, stands on."""
    return weight.startswith(f"{model.base_model_prefix}.") and ".pooler." not in weight
