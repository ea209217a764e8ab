"""What each column of our tables holds, in words and as schema.org PropertyValues."""

from __future__ import annotations

from typing import Any

from contstim.stimuli import Condition, Kind

_PLAIN: dict[str, str] = {
    "trial_id": "The trial: two sentences that the participants of a group compared.",
    "group": "The group of participants who saw the trial, from 1.",
    "model_1": "One of the two language models that the trial sets against each other.",
    "model_2": "The other one.",
    "sentence_1": "The sentence that ratings of 1 to 3 prefer.",
    "sentence_2": "The sentence that ratings of 4 to 6 prefer.",
    "source_id": "The pair or triplet that the trial was made of.",
    "participant": "A pseudonym of the participant.",
    "sentence": "A sentence, to which the scores of a row belong.",
}


def variable(name: str, *, model: bool = False) -> dict[str, Any]:
    """The PropertyValue of a column; `model` where it holds a model's scores."""
    if model:
        return _value(
            name, f"Log-probability of the sentence under the model {name}.", unitText="nats"
        )
    if name in _PLAIN:
        return _value(name, _PLAIN[name])
    return _MEASURED[name]


def _value(name: str, description: str, **more: object) -> dict[str, Any]:
    return {"@type": "PropertyValue", "name": name, "description": description, **more}


_MEASURED = {
    "condition": _value(
        "condition", "What the trial compares.", valueReference=[str(one) for one in Condition]
    ),
    "kind_1": _value(
        "kind_1", "Where sentence_1 comes from.", valueReference=[str(one) for one in Kind]
    ),
    "kind_2": _value(
        "kind_2", "Where sentence_2 comes from.", valueReference=[str(one) for one in Kind]
    ),
    "rating": _value(
        "rating",
        "1: very confident that sentence_1 is likelier, to 6: very confident that sentence_2 is, "
        "whatever side each was on. Empty where none was given.",
        minValue=1,
        maxValue=6,
    ),
    "left": _value(
        "left",
        "The sentence that was shown left, 1 or 2. Empty where not recorded.",
        minValue=1,
        maxValue=2,
    ),
    "position": _value(
        "position", "Order of presentation, from 1. Empty where not recorded.", minValue=1
    ),
    "simulated": _value(
        "simulated",
        "Whether an artificial participant answered, and no person: true or false.",
        valueReference=["true", "false"],
    ),
    "rt_ms": _value("rt_ms", "Reaction time. Empty where not recorded.", unitText="ms"),
}

COLUMNS = frozenset((*_PLAIN, *_MEASURED))
"""The columns of stimuli and responses, and `sentence` of scores."""
