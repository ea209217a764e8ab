"""What an evaluation on minimal pairs finds, with what others found beside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.evaluation.minimal_pairs.accuracies import accuracies
from contstim.evaluation.minimal_pairs.curves import curves
from contstim.evaluation.minimal_pairs.pairs import Method
from contstim.evaluation.minimal_pairs.profile import profile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contstim.evaluation.minimal_pairs.accuracies import Accuracies
    from contstim.evaluation.minimal_pairs.comparison import Comparisons, TieRule
    from contstim.evaluation.minimal_pairs.curves import Curve, Learned
    from contstim.evaluation.minimal_pairs.people import Agreement
    from contstim.evaluation.minimal_pairs.profile import Bin
    from contstim.models.base import Scorer

PEOPLE = "people"
_AGAIN = " (published)"
_RESERVED = {
    *(PEOPLE, "method", "phenomenon", "paradigm", "paradigms", "pairs", "unread", "identical"),
    *("contrast", "condition", "model"),
}


@dataclass(frozen=True)
class Known:
    """What others found on the same paradigms.

    Attributes:
        people: agreement with the labels, by paradigm.
        published: accuracy of published models on full sentences, by model and paradigm.
    """

    people: Mapping[str, Agreement]
    published: Mapping[str, Mapping[str, float]]


NOTHING_KNOWN = Known({}, {})


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What was found, ready to be written.

    Attributes:
        compared: both sides of all pairs under all models.
        ties: how ties count.
        found: accuracies by method, people and published models beside.
        bins: the profile of full sentences.
        curves: learning curves by method.
        known: what others found.
    """

    compared: Comparisons
    ties: TieRule
    found: Mapping[Method, Accuracies]
    bins: Sequence[Bin]
    curves: Mapping[Method, Sequence[Curve]]
    known: Known


def evaluate_minimal_pairs(
    compared: Comparisons,
    *,
    ties: TieRule = "wrong",
    known: Known = NOTHING_KNOWN,
    learned: Sequence[Learned] = (),
    models: Sequence[Scorer] = (),
) -> Evaluation:
    """Accuracies, profile and learning curves of what was compared.

    Args:
        compared: see `compare`.
        ties: how ties count.
        known: what to set beside.
        learned: the models that learning curves are drawn through.
        models: those compared, to know whose scores are log-probabilities.

    Raises:
        InputError: a model is called like a column of the tables.
    """
    taken = {name for one in compared.made for name in one.models} & _RESERVED
    if taken:
        raise InputError(
            f"A model cannot be called {min(taken)!r}, which is a column of the tables. Give it "
            "another name."
        )
    relative = {model.name for model in models if not model.convention.is_log_probability}
    plain = {one.method: accuracies(one, ties) for one in compared.made}
    full = next((one for one in compared.made if one.method is Method.FULL_SENTENCE), None)
    return Evaluation(
        compared,
        ties,
        {method: _beside(method, one, known) for method, one in plain.items()},
        profile(full, ties, relative=relative) if full else [],
        {method: made for method, one in plain.items() if (made := curves(one, learned))},
        known,
    )


def _beside(method: Method, found: Accuracies, known: Known) -> Accuracies:
    if method is Method.FULL_SENTENCE:
        for model, accuracy in known.published.items():
            if not accuracy.keys().isdisjoint(found.paradigms):
                found = found.beside(model + _AGAIN, accuracy)
    if not known.people.keys().isdisjoint(found.paradigms):
        shares = {paradigm: one.individual for paradigm, one in known.people.items()}
        found = found.beside(PEOPLE, shares)
    return found
