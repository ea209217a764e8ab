"""The `hf:` family: a checkpoint becomes a causal or a masked model, as its configuration says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contstim.errors import ModelError
from contstim.models.checkpoints import load_checkpoint
from contstim.models.checkpoints.foreign import foreign_errors
from contstim.models.families import CAUSAL_RULES
from contstim.models.masked.rules import RULES

if TYPE_CHECKING:
    from contstim.models.base import LanguageModel
    from contstim.models.checkpoints import Device, DeviceMap, Precision, Quantization


def load_transformer(
    location: str,
    *,
    name: str,
    rule: str = "",
    device: Device = "auto",
    dtype: Precision = "auto",
    device_map: DeviceMap | None = None,
    quantize: Quantization | None = None,
    prompt: str | None = None,
    trust_remote_code: bool = False,
    weights: bool = True,
) -> LanguageModel:
    """Load a checkpoint and score with a rule of its kind.

    The default rule is `log-likelihood` for causal models and `chain` for masked ones. Masked
    models read no prompt.

    Raises:
        ModelError: see `load_checkpoint`; or the rule belongs to the other kind of model.
    """
    checkpoint = load_checkpoint(
        location,
        device=device,
        dtype=dtype,
        device_map=device_map,
        quantize=quantize,
        trust_remote_code=trust_remote_code,
        weights=weights,
    )
    rules = CAUSAL_RULES if checkpoint.kind == "causal" else tuple(RULES)
    if rule and rule not in rules:
        raise ModelError(
            f"{location} is a {checkpoint.kind} model, which has no rule {rule!r}; it has "
            f"{', '.join(rules)}."
        )
    options: dict[str, Any] = {"rule": rule or rules[0], "name": name}
    with foreign_errors(location):
        if checkpoint.kind == "causal":
            from contstim.models.causal.adapter import CausalModel

            return CausalModel(checkpoint, prompt=prompt, **options)
        from contstim.models.masked.adapter import MaskedModel

        return MaskedModel(checkpoint, **options)
