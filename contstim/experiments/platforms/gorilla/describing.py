"""What a platform says of a trial, in the words of trials.csv."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.sentence import Sentence
from contstim.stimuli import Condition, Kind

if TYPE_CHECKING:
    from typing import TypeAlias

    from contstim.experiments.responses.recorded import RecordedAnswer

    Kinds: TypeAlias = tuple[Kind | None, Kind | None]

FACTS = (
    "condition",
    "source_id",
    "model_1",
    "model_2",
    "model_left",
    "model_right",
    "kind_left",
    "kind_right",
)
"""What `RecordedAnswer.about` may hold: of the trial, or of the sentence shown on a side.

Where sides have models of their own, the two together are the models of the trial; which sentence
either rejects is for the scores to say.
"""

SYNTHETIC = (Kind.SYNTHETIC_1, Kind.SYNTHETIC_2)
UNTARGETED = (Condition.RANDOM_NATURAL, Condition.CATCH)

_KINDS = {
    "n": Kind.NATURAL,
    "natural": Kind.NATURAL,
    "r": Kind.NATURAL,
    "random": Kind.NATURAL,
    "s": Kind.SYNTHETIC_1,
    "synthetic": Kind.SYNTHETIC_1,
    "synthetic_1": Kind.SYNTHETIC_1,
    "synthetic_2": Kind.SYNTHETIC_2,
    "c": Kind.SHUFFLED,
    "catch": Kind.SHUFFLED,
    "shuffled": Kind.SHUFFLED,
}


def description(answer: RecordedAnswer) -> frozenset[object]:
    """What is said of a trial, whatever side its sentences were shown on."""
    sides = ("left", "right")
    of_sides = {
        (text, name, answer.about.get(f"{name}_{side}", ""))
        for side, text in zip(sides, answer.shown, strict=True)
        for name in ("model", "kind")
    }
    models = frozenset(answer.about.get(name, "") for name in ("model_1", "model_2"))
    return frozenset({*of_sides, models, answer.about.get("condition", ""), answer.trial_id})


def kinds_of(answer: RecordedAnswer) -> Kinds:
    """What the platform says of both sentences, left and right; None where it says nothing."""
    left, right = (_kind(answer, f"kind_{side}") for side in ("left", "right"))
    if _same_words(answer) and Kind.SHUFFLED not in (left, right):
        return None, None
    return left, right


def _same_words(answer: RecordedAnswer) -> bool:
    first, second = (sorted(Sentence.parse(text.lower()).words) for text in answer.shown)
    return first == second


def _kind(answer: RecordedAnswer, name: str) -> Kind | None:
    said = answer.about.get(name, "")
    if said and said.lower() not in _KINDS:
        raise InputError(
            f"{answer.where}: {said!r} under {name} is not a kind of sentence. Give a translation "
            f"under [values] to one of {', '.join(Kind)}."
        )
    return _KINDS.get(said.lower())


def models_of(answer: RecordedAnswer) -> tuple[str, str]:
    """Both models that a trial is about, in alphabetical order where sides name them."""
    about = answer.about
    stated = (about.get("model_1", ""), about.get("model_2", ""))
    of_sides = tuple(sorted((about.get("model_left", ""), about.get("model_right", ""))))
    return (of_sides[0], of_sides[1]) if not any(stated) else stated


def condition_of(answer: RecordedAnswer, kinds: Kinds, models: tuple[str, str]) -> Condition:
    """What a trial compares: as stated, else as its sentences and models tell.

    Raises:
        InputError: neither tells, or a controversial trial does not name two models.
    """
    stated = answer.about.get("condition", "")
    if stated:
        try:
            condition = Condition(stated.lower().replace("_", "-"))
        except ValueError:
            raise InputError(
                f"{answer.where}: {stated!r} is not a condition. Give a translation under [values] "
                f"to one of {', '.join(Condition)}."
            ) from None
    else:
        condition = _inferred(answer, kinds, models)
    if condition not in UNTARGETED and (not all(models) or models[0] == models[1]):
        raise InputError(
            f"{answer.where}: a trial that is {condition} compares two models; stated are "
            f"{models[0]!r} and {models[1]!r}. Name their columns."
        )
    return condition


def _inferred(answer: RecordedAnswer, kinds: Kinds, models: tuple[str, str]) -> Condition:
    if Kind.SHUFFLED in kinds or _same_words(answer):
        return Condition.CATCH
    synthetic = sum(kind in SYNTHETIC for kind in kinds)
    if None in kinds:
        if any(models):
            raise InputError(
                f"{answer.where}: are the sentences natural or synthetic? Name the columns that "
                "tell (condition, or kind_left and kind_right), or state one condition for all."
            )
        return Condition.RANDOM_NATURAL
    if synthetic:
        return Condition.SYNTHETIC_SYNTHETIC if synthetic == 2 else Condition.NATURAL_SYNTHETIC
    return Condition.NATURAL_CONTROVERSIAL if any(models) else Condition.RANDOM_NATURAL
