"""Trials from what a platform recorded, for experiments that have no table of trials."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError
from contstim.experiments.platforms.gorilla.describing import (
    SYNTHETIC,
    UNTARGETED,
    condition_of,
    description,
    kinds_of,
    models_of,
)
from contstim.experiments.responses.alignment import is_group_number
from contstim.sentence import Sentence
from contstim.stimuli import Condition, Kind, Trial, content_id
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.experiments.platforms.gorilla.describing import Kinds
    from contstim.experiments.responses.recorded import RecordedAnswer
    from contstim.scores import ScoreTable


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
        known = scored.get(Sentence.parse(text).bare, [])
        return known[0] if len(set(known)) == 1 else text

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
    leader: dict[str, str] = {}  # of each participant: the first one in their group
    seen: dict[frozenset[str], str] = {}

    def lead(participant: str) -> str:
        while leader[participant] != participant:
            participant = leader[participant]
        return participant

    for answer in answers:
        leader.setdefault(answer.participant, answer.participant)
        first = seen.setdefault(answer.pair, answer.participant)
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
            texts = self._unshuffled_first(answer, kinds)
            canonical = (Kind.NATURAL, Kind.SHUFFLED)
        elif condition is Condition.NATURAL_SYNTHETIC:
            texts = _natural_first(answer, kinds)
            lead = self._lead(answer, texts, models)
            canonical = (Kind.NATURAL, SYNTHETIC[lead[0] > lead[1]])
        else:
            texts = answer.shown
            lead = self._lead(answer, texts, models)
            texts = texts if lead[0] > lead[1] else (texts[1], texts[0])
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
        known = self._scores.models
        missing = [model for model in models if model not in known]
        if missing:
            raise InputError(
                f"{answer.where}: there are no scores of the model {missing[0]!r}, only of "
                f"{', '.join(known)}. Translate names of models under [values]."
            )
        leads = self._leads(answer, texts)
        lead = (leads[known.index(models[0])], leads[known.index(models[1])])
        if lead[0] * lead[1] >= 0:
            self._doubts["by the scores the two models do not prefer different sentences"] += 1
        return lead

    def _leads(self, answer: RecordedAnswer, texts: tuple[str, str]) -> list[float]:
        assert self._scores is not None
        sentences = [Sentence.parse(text) for text in texts]
        for sentence in sentences:
            if sentence not in self._scores.rows:
                raise InputError(f"{answer.where}: there are no scores of {sentence.text!r}.")
        first, second = (self._scores.log_probs[self._scores.rows[s]] for s in sentences)
        differ = first != second  # two probabilities of zero differ by nothing
        leads: list[float] = np.subtract(
            second, first, out=np.zeros(len(first)), where=differ
        ).tolist()
        return leads

    def _unshuffled_first(self, answer: RecordedAnswer, kinds: Kinds) -> tuple[str, str]:
        """By the stated kinds; else by the one capital at the start; else by most models."""
        texts = answer.shown
        capital = [text[0].isupper() for text in texts]
        if Kind.SHUFFLED in kinds:
            swap = kinds[0] is Kind.SHUFFLED
        elif capital[0] != capital[1]:
            self._doubts["the unshuffled sentence of a catch trial is the capitalised one"] += 1
            swap = capital[1]
        elif self._scores is not None:
            self._doubts["the unshuffled sentence of a catch trial is what most models prefer"] += 1
            swap = float(np.sum(np.sign(self._leads(answer, texts)))) > 0
        else:
            raise _which(answer, "shuffled")
        return (texts[1], texts[0]) if swap else texts


def _natural_first(answer: RecordedAnswer, kinds: Kinds) -> tuple[str, str]:
    if Kind.NATURAL not in kinds or kinds[0] == kinds[1]:
        raise _which(answer, "synthetic")
    left, right = answer.shown
    return (left, right) if kinds[0] is Kind.NATURAL else (right, left)


def _which(answer: RecordedAnswer, kind: str) -> InputError:
    return InputError(
        f"{answer.where}: which of {' / '.join(answer.shown)} is the {kind} sentence? Name the "
        "columns that tell (kind_left and kind_right), or state the trials (--trials)."
    )
