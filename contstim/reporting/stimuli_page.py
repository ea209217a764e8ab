"""A page of stimuli to look at: models' log-probabilities, changed words highlighted."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from contstim.errors import InputError
from contstim.reporting.canvas import png, styled
from contstim.reporting.heat_map import agreement_map
from contstim.reporting.report import (
    Details,
    Heading,
    Paragraph,
    Picture,
    Report,
    Table,
    changed,
    strong,
)
from contstim.reviews import changed_words
from contstim.stimuli import Condition, Kind, Pair, Trial, Triplet

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Sequence

    from contstim.reporting.report import Part, Span, Text, Value
    from contstim.reviews import Stimulus
    from contstim.scores import ScoreTable
    from contstim.sentence import Sentence

_ALL_OPEN = 20  # items of a section that are shown without unfolding anything

_Member = TypeVar("_Member")


def stimuli_report(
    title: str, stimuli: Iterable[Stimulus], *, scores: ScoreTable | None = None
) -> Report:
    """The stimuli as a page, by pair of models and, of trials, by condition.

    Args:
        title: its heading.
        stimuli: triplets, pairs, trials or several of these, each in the order to show.
        scores: log-probabilities of the sentences of pairs and trials, nats; how often the models
            agree on them is drawn as a map. Triplets hold their own.

    Raises:
        InputError: there is nothing to show, or, without scores, a pair has no texts.
        ScoreError: the scores lack a sentence or a model.
    """
    every = list(stimuli)
    triplets = [each for each in every if isinstance(each, Triplet)]
    pairs = [each for each in every if isinstance(each, Pair)]
    trials = [each for each in every if isinstance(each, Trial)]
    if not every:
        raise InputError("There is nothing to show: the table has no rows.")
    places = changed_words(every)
    parts: list[Part] = [Paragraph(_explanation(triplets, pairs, trials, scores), note=True)]
    if triplets:
        parts.append(Heading("Synthetic sentences"))
        parts += _sections(
            triplets, _duel, lambda of_duel: [triplet_table(each) for each in of_duel]
        )
    if pairs:
        parts.append(Heading("Natural pairs"))
        parts += _sections(pairs, _duel, lambda of_duel: [pairs_table(of_duel, scores)])
    if trials:
        parts.append(Heading("Trials"))
        parts += _sections(
            trials,
            lambda t: f"{_duel(t)}, {t.condition}" if t.model_1 else t.condition,
            lambda of_duel: [_trials_table(of_duel, places, scores)],
        )
    if scores is not None and len(scores.models) > 1 and len(scores.log_probs) > 1:
        with styled():
            image = png(agreement_map(scores))
        parts += (
            Heading("How often the models agree"),
            Paragraph(
                "Of two scored sentences drawn at random, how often two models find the same one "
                "likelier, in percent; 50 is chance. Only where they disagree can people decide "
                "between them.",
                note=True,
            ),
            Picture("agreement", image, "how often two models prefer the same sentence"),
        )
    return Report(title, parts)


def mark_changes(sentence: Sentence, places: Collection[int]) -> Text:
    """A sentence with the words at some places marked, from 0; its end mark belongs to no word."""
    runs: list[str | Span] = []
    for place, word in enumerate(sentence.words):
        runs += [changed(word) if place in places else word, " "]
    return (*runs[:-1], sentence.end)


def _explanation(
    triplets: Collection[Triplet],
    pairs: Collection[Pair],
    trials: Collection[Trial],
    scores: ScoreTable | None,
) -> str:
    """Explanation of numbers and marks, as far as the page has any."""
    sentences = []
    if triplets or scores is not None:
        sentences.append(
            "Numbers are natural log-probabilities (nats): higher is likelier. Bold: the sentence "
            "that a model prefers to the one it rejects."
        )
    if pairs and scores is None:
        sentences.append(
            "Numbers of natural pairs are ranks among all sentences, from 0 (the least likely) to "
            "1. Bold: the sentence that a model prefers."
        )
    if triplets or any(trial.kind_2 in (Kind.SYNTHETIC_1, Kind.SYNTHETIC_2) for trial in trials):
        sentences.append("Words that differ from the natural sentence are marked.")
    return " ".join(sentences)


def _duel(stimulus: Stimulus) -> str:
    return f"{stimulus.model_1} against {stimulus.model_2}"


def _sections(
    members: Sequence[_Member],
    heading: Callable[[_Member], Hashable],
    tables: Callable[[list[_Member]], list[Table]],
) -> list[Details]:
    """A part to unfold for each heading, in order of first occurrence."""
    groups: dict[str, list[_Member]] = {}
    for member in members:
        groups.setdefault(str(heading(member)), []).append(member)
    all_open = len(members) <= _ALL_OPEN
    return [
        Details(f"{name} ({len(group):,})", tables(group), is_open=all_open or number == 0)
        for number, (name, group) in enumerate(groups.items())
    ]


def triplet_table(t: Triplet) -> Table:
    """The sentences of a triplet with their log-probabilities (nats), changed words marked."""
    # each model's log-probability of the sentence that it rejects
    rejected = (t.log_prob_synthetic_1_model_1, t.log_prob_synthetic_2_model_2)
    natural = (t.log_prob_natural_model_1, t.log_prob_natural_model_2)
    synthetic_1 = (t.log_prob_synthetic_1_model_1, t.log_prob_synthetic_1_model_2)
    synthetic_2 = (t.log_prob_synthetic_2_model_1, t.log_prob_synthetic_2_model_2)
    places = changed_words([t])[t.triplet_id]
    sentences = (t.natural, t.synthetic_1, t.synthetic_2)
    labels = ("natural", f"{t.model_1} rejects", f"{t.model_2} rejects")
    log_probs = (natural, synthetic_1, synthetic_2)
    rows = [
        (label, mark_changes(sentence, marked), *_numbers(of_sentence, rejected))
        for label, sentence, marked, of_sentence in zip(
            labels, sentences, places, log_probs, strict=True
        )
    ]
    return Table(("", "sentence", t.model_1, t.model_2), rows, texts=2, is_wide=True)


def pairs_table(pairs: Sequence[Pair], scores: ScoreTable | None) -> Table:
    """Natural pairs of two models with their log-probabilities (nats), or ranks without scores.

    Raises:
        InputError: there are neither scores nor texts.
        ScoreError: the scores lack a sentence or a model.
    """
    models = (pairs[0].model_1, pairs[0].model_2)
    columns = [] if scores is None else [scores.column(model) for model in models]
    rows: list[tuple[Value, ...]] = []
    for pair in pairs:
        lines = [pair.row_1, pair.row_2]
        if scores is not None and scores.sentences and pair.sentence_1 and pair.sentence_2:
            # Rows are those of the scores that pairs were selected from, which may be others
            lines = scores.rows_of((pair.sentence_1, pair.sentence_2)).tolist()
        first, second = ([float(column[line]) for column in columns] for line in lines)
        if scores is None:
            if pair.sentence_1 is None:
                raise InputError(
                    f"{pair.trial_id} has no texts: show pairs together with their scores."
                )
            first = [pair.rank_1_model_1, pair.rank_1_model_2]
            second = [pair.rank_2_model_1, pair.rank_2_model_2]
        rows.append(("pair", str(pair.sentence_1 or ""), *_numbers(first, second)))
        rows.append(("", str(pair.sentence_2 or ""), *_numbers(second, first)))
    return Table(("", "sentence", *models), rows, texts=2, is_wide=True)


def _trials_table(
    trials: Sequence[Trial],
    places: dict[str, tuple[frozenset[int], ...]],
    scores: ScoreTable | None,
) -> Table:
    # Trials that compare no models have the numbers of all
    own = tuple(model for model in (trials[0].model_1, trials[0].model_2) if model)
    models: tuple[str, ...] = () if scores is None else own or scores.models
    rows: list[tuple[Value, ...]] = []
    for trial in trials:
        sentences = (trial.sentence_1, trial.sentence_2)
        first: list[float] = []
        second: list[float] = []
        if scores is not None:
            lines = scores.rows_of(sentences)
            first, second = ([float(scores.column(m)[line]) for m in models] for line in lines)
        marked_1, marked_2 = map(mark_changes, sentences, places[trial.trial_id])
        kinds = [str(kind).partition("_")[0] for kind in (trial.kind_1, trial.kind_2)]
        if trial.condition in (Condition.NATURAL_CONTROVERSIAL, Condition.RANDOM_NATURAL):
            kinds = ["", ""]
        label = f"group {trial.group}"
        rows.append((label, kinds[0], marked_1, *_numbers(first, second)))
        rows.append(("", kinds[1], marked_2, *_numbers(second, first)))
    return Table(("", "", "sentence", *models), rows, texts=3, is_wide=True)


def _numbers(values: Sequence[float], others: Sequence[float]) -> list[str | Span]:
    """Both models' numbers, those in bold that are above the other sentence's."""
    return [
        strong(f"{value:.2f}") if value > other else f"{value:.2f}"
        for value, other in zip(values, others, strict=True)
    ]
