"""The `hf:` family: a checkpoint becomes a causal or a masked model, as its configuration says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contstim.errors import ModelError
from contstim.models.checkpoints import load_checkpoint
from contstim.models.checkpoints.source import foreign_errors
from contstim.models.families import CAUSAL_RULES
from contstim.models.masked.rules import RULES

if TYPE_CHECKING:
    from contstim.models.base import LanguageModel
    from contstim.models.loading import Loading


def load_transformer(location: str, *, name: str, rule: str, loading: Loading) -> LanguageModel:
    """Load a checkpoint and score with a rule of its kind.

    The default rule is `log-likelihood` for causal models and `chain` for masked ones. Masked
    models read no prompt.

    Raises:
        ModelError: see `load_checkpoint`; or the rule belongs to the other kind of model.
    """
    checkpoint = load_checkpoint(location, loading)
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

            return CausalModel(checkpoint, prompt=loading.prompt, **options)
        from contstim.models.masked.adapter import MaskedModel

        return MaskedModel(checkpoint, **options)
