"""Trials from what a platform recorded, for experiments that have no table of trials."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError
from contstim.experiments.responses.alignment import is_group_number
from contstim.sentence import Sentence
from contstim.stimuli import Condition, Kind, Trial, content_id
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from contstim.experiments.responses.recorded import RecordedAnswer
    from contstim.scores import ScoreTable

    Kinds: TypeAlias = tuple[Kind | None, Kind | None]  # left and right

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
    """What the platform says of both sentences, left and right; None where it says nothing.

    Raises:
        InputError: it says a word that is not a kind of sentence.
    """
    kinds = []
    for name in ("kind_left", "kind_right"):
        said = answer.about.get(name, "")
        if said and said.lower() not in _KINDS:
            raise InputError(
                f"{answer.where}: {said!r} under {name} is not a kind of sentence. Give a "
                f"translation under [values] to one of {', '.join(Kind)}."
            )
        kinds.append(_KINDS.get(said.lower()))
    # Spreadsheets often call both sentences of a catch trial natural: then they say nothing of it.
    if _same_words(answer) and Kind.SHUFFLED not in kinds:
        return None, None
    return kinds[0], kinds[1]


def _same_words(answer: RecordedAnswer) -> bool:
    first, second = (sorted(Sentence.parse(text.lower()).words) for text in answer.shown)
    return first == second


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
    synthetic = sum(kind in SYNTHETIC for kind in kinds)
    if stated:
        try:
            condition = Condition(stated.lower().replace("_", "-"))
        except ValueError:
            raise InputError(
                f"{answer.where}: {stated!r} is not a condition. Give a translation under [values] "
                f"to one of {', '.join(Condition)}."
            ) from None
    elif Kind.SHUFFLED in kinds or _same_words(answer):
        condition = Condition.CATCH
    elif None in kinds and any(models):
        # With models it may be a controversial natural pair or a synthetic one: no guess.
        raise InputError(
            f"{answer.where}: are the sentences natural or synthetic? Name the columns that "
            "tell (condition, or kind_left and kind_right), or state one condition for all."
        )
    elif synthetic and None not in kinds:
        both = synthetic == 2
        condition = Condition.SYNTHETIC_SYNTHETIC if both else Condition.NATURAL_SYNTHETIC
    else:
        # Two natural sentences, or unknown kinds where no model is named either.
        condition = Condition.NATURAL_CONTROVERSIAL if any(models) else Condition.RANDOM_NATURAL
    # Random pairs and catch trials set no models against each other; all others need two.
    if condition not in UNTARGETED and (not all(models) or models[0] == models[1]):
        raise InputError(
            f"{answer.where}: a trial that is {condition} compares two models; stated are "
            f"{models[0]!r} and {models[1]!r}. Name their columns."
        )
    return condition


def build_trials(
    answers: Sequence[RecordedAnswer], scores: ScoreTable | None
) -> tuple[tuple[Trial, ...], tuple[RecordedAnswer, ...], tuple[str, ...]]:
    """One trial for each pair of sentences that a group was shown, in canonical order.

    The condition is the one stated, or follows from the kinds of sentences: natural and synthetic
    is natural-synthetic; two of a kind are synthetic-synthetic or, with models, natural-
    controversial, without, random-natural; the same words in another order are a catch trial.
    A sentence shown without its end mark has the one it was scored with.
    Where canonical order depends on which sentence a model rejects, the scores decide: of the two
    models, model_1 is relatively more in favour of sentence_2, model_2 of sentence_1.

    Args:
        answers: all of them; groups are those stated, or participants who share pairs.
        scores: log-probabilities of the models under the names used by the platform.

    Returns:
        The trials, the answers with the numbers of their groups, and what was decided.

    Raises:
        InputError: a trial is described in two ways, or not well enough; models without scores.
    """
    answers = _grouped(answers if scores is None else _as_scored(answers, scores))
    build = _Builder(scores)
    trials: dict[object, Trial] = {}
    said: dict[object, frozenset[object]] = {}
    for answer in answers:
        # Without identifiers, the same two sentences on whatever sides are the same trial.
        key = (answer.group, answer.trial_id or answer.pair)
        if said.setdefault(key, description(answer)) != description(answer):
            raise InputError(
                f"{answer.where}: {' / '.join(answer.shown)} are described here in another way "
                "than where they were first shown."
            )
        if key not in trials:
            trials[key] = build.trial(answer)
    counts = Counter(str(trial.condition) for trial in trials.values())
    notes = [
        f"Built from the export: {counted(len(trials), 'trial')}, "
        + ", ".join(f"{count:,} {name}" for name, count in counts.items())
        + "."
    ]
    ordered = sorted(trials.values(), key=lambda trial: trial.group)
    return tuple(ordered), tuple(answers), (*notes, *build.notes)


def _as_scored(answers: Sequence[RecordedAnswer], scores: ScoreTable) -> list[RecordedAnswer]:
    """Every answer with the end marks of the scored sentences, which platforms do not show."""
    scored: dict[str, list[str]] = {}
    for sentence in scores.sentences or ():
        scored.setdefault(sentence.bare, []).append(sentence.text)

    def as_scored(text: str) -> str:
        # Where "Why" was scored both as "Why." and as "Why?", the platform's text stands.
        candidates = set(scored.get(Sentence.parse(text).bare, []))
        return candidates.pop() if len(candidates) == 1 else text

    return [replace(a, shown=(as_scored(a.shown[0]), as_scored(a.shown[1]))) for a in answers]


def _grouped(answers: Sequence[RecordedAnswer]) -> list[RecordedAnswer]:
    """Every answer with the number of its group, from 1 in order of appearance.

    Where no group is stated, participants who saw a pair in common are in the same group.
    """
    if any(answer.group for answer in answers):
        unstated = next((answer for answer in answers if not answer.group), None)
        if unstated is not None:
            raise InputError(f"{unstated.where} states no group, though other rows do.")
        names = list(dict.fromkeys(answer.group for answer in answers))
        if all(is_group_number(name) and int(name) for name in names):
            return list(answers)
        return [replace(a, group=str(names.index(a.group) + 1)) for a in answers]
    # Union of sets: each participant points to another of their group, and the last of such a
    # chain, who points to themselves, stands for the group.
    leader: dict[str, str] = {}
    first_viewer: dict[frozenset[str], str] = {}  # of each pair

    def lead(participant: str) -> str:
        while leader[participant] != participant:
            participant = leader[participant]
        return participant

    for answer in answers:
        leader.setdefault(answer.participant, answer.participant)
        first = first_viewer.setdefault(answer.pair, answer.participant)
        leader[lead(answer.participant)] = lead(first)
    leads = list(dict.fromkeys(lead(answer.participant) for answer in answers))
    return [replace(a, group=str(leads.index(lead(a.participant)) + 1)) for a in answers]


class _Builder:
    """Puts the sentences of one trial after another into canonical order, and counts the doubts."""

    def __init__(self, scores: ScoreTable | None) -> None:
        self._scores = scores
        self._doubts: Counter[str] = Counter()

    @property
    def notes(self) -> list[str]:
        return [f"{counted(count, 'trial')}: {doubt}." for doubt, count in self._doubts.items()]

    def trial(self, answer: RecordedAnswer) -> Trial:
        kinds = kinds_of(answer)
        models = models_of(answer)
        condition = condition_of(answer, kinds, models)
        if condition in UNTARGETED:
            models = ("", "")
        if condition is Condition.RANDOM_NATURAL:
            texts = (min(answer.shown), max(answer.shown))
            canonical = (Kind.NATURAL, Kind.NATURAL)
        elif condition is Condition.CATCH:
            # The shuffled one by the stated kinds; else by the one capital; else by most models.
            capital = [text[0].isupper() for text in answer.shown]
            if Kind.SHUFFLED in kinds:
                swap = kinds[0] is Kind.SHUFFLED
            elif capital[0] != capital[1]:
                self._doubts["the unshuffled sentence of a catch trial is the capitalised one"] += 1
                swap = capital[1]
            elif self._scores is not None:
                doubt = "the unshuffled sentence of a catch trial is what most models prefer"
                self._doubts[doubt] += 1
                swap = float(np.sum(np.sign(self._leads(answer, answer.shown)))) > 0
            else:
                raise _which(answer, "shuffled")
            texts = _swapped(answer.shown) if swap else answer.shown
            canonical = (Kind.NATURAL, Kind.SHUFFLED)
        elif condition is Condition.NATURAL_SYNTHETIC:
            if Kind.NATURAL not in kinds or kinds[0] == kinds[1]:
                raise _which(answer, "synthetic")
            texts = answer.shown if kinds[0] is Kind.NATURAL else _swapped(answer.shown)
            lead = self._lead(answer, texts, models)
            # The second sentence is synthetic, and rejected by the model that favours it less.
            canonical = (Kind.NATURAL, SYNTHETIC[lead[0] > lead[1]])
        else:
            lead = self._lead(answer, answer.shown, models)
            texts = answer.shown if lead[0] > lead[1] else _swapped(answer.shown)
            natural = condition is Condition.NATURAL_CONTROVERSIAL
            canonical = (Kind.NATURAL, Kind.NATURAL) if natural else SYNTHETIC
        first, second = map(Sentence.parse, texts)
        return Trial(
            answer.trial_id or content_id("trial", answer.group, condition, *models, *texts),
            int(answer.group),
            condition,
            *models,
            first,
            second,
            *canonical,
            answer.about.get("source_id", ""),
        )

    def _lead(
        self, answer: RecordedAnswer, texts: tuple[str, str], models: tuple[str, str]
    ) -> tuple[float, float]:
        """By how many nats each of two models prefers the second text."""
        if self._scores is None:
            raise InputError(
                f"{answer.where}: which of {' / '.join(texts)} does {models[0]} reject? Give the "
                "scores (--scores), or state the trials (--trials)."
            )
        scored = self._scores.models
        missing = [model for model in models if model not in scored]
        if missing:
            raise InputError(
                f"{answer.where}: there are no scores of the model {missing[0]!r}, only of "
                f"{', '.join(scored)}. Translate names of models under [values]."
            )
        leads = self._leads(answer, texts)
        lead = (leads[scored.index(models[0])], leads[scored.index(models[1])])
        # Leads of one sign: both models prefer the same sentence, so they do not disagree.
        if lead[0] * lead[1] >= 0:
            self._doubts["by the scores the two models do not prefer different sentences"] += 1
        return lead

    def _leads(self, answer: RecordedAnswer, texts: tuple[str, str]) -> list[float]:
        """By how many nats each scored model prefers the second text."""
        assert self._scores is not None
        sentences = [Sentence.parse(text) for text in texts]
        for sentence in sentences:
            if sentence not in self._scores.rows:
                raise InputError(f"{answer.where}: there are no scores of {sentence.text!r}.")
        first, second = (self._scores.log_probs[self._scores.rows[s]] for s in sentences)
        # Two probabilities of zero differ by nothing; subtracting -inf from -inf would give nan.
        differ = first != second
        leads: list[float] = np.subtract(
            second, first, out=np.zeros(len(first)), where=differ
        ).tolist()
        return leads


def _swapped(texts: tuple[str, str]) -> tuple[str, str]:
    return texts[1], texts[0]


def _which(answer: RecordedAnswer, kind: str) -> InputError:
    return InputError(
        f"{answer.where}: which of {' / '.join(answer.shown)} is the {kind} sentence? Name the "
        "columns that tell (kind_left and kind_right), or state the trials (--trials)."
    )
