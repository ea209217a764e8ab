"""A page of stimuli to look at: models' log-probabilities, changed words highlighted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.items.matching import changes_of, figures_of
from contstim.items.reviews import named_sentences
from contstim.items.stimuli import Condition, Kind, Pair, Trial, Triplet
from contstim.reporting import report
from contstim.reporting.canvas import png, styled
from contstim.reporting.heat_map import agreement_map

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from contstim.items.item_flags import FlaggedItems
    from contstim.items.matching import Changes
    from contstim.items.reviews import Stimulus
    from contstim.items.scores import ScoreTable
    from contstim.reporting.report import Part, Span, Text, Value
    from contstim.words.sentence import Sentence

_ALL_OPEN = 20  # items of a section that are shown without unfolding anything
_HEADINGS = {Triplet: "Synthetic sentences", Pair: "Natural pairs", Trial: "Trials"}
_EXPLANATION = (
    "Numbers are natural log-probabilities (nats){}. Higher is likelier. Bold: the sentence that a "
    "model prefers to the one it rejects. Words that differ from the natural sentence are marked"
)
_RANKS = ", of pairs ranks among all sentences, from 0 to 1"
_POINTER = "; the pointer on one tells the old and the new part of speech"
_AGREEMENT = (
    "Of two scored sentences drawn at random, how often two models find the same one likelier, in "
    "percent; 50 is chance. Only where they disagree can people decide between them."
)


def stimuli_report(
    title: str,
    stimuli: Iterable[Stimulus],
    *,
    scores: ScoreTable | None = None,
    flagged: FlaggedItems | None = None,
) -> report.Report:
    """The stimuli as a page, by pair of models and, of trials, by condition.

    Args:
        title: its heading.
        stimuli: triplets, pairs, trials or several of these, each in the order to show.
        scores: log-probabilities of the sentences of pairs and trials, nats; how often the models
            agree on them is drawn as a map. Triplets hold their own.
        flagged: their flags, of which the page says how many there are; `contstim review` shows
            them.

    Raises:
        InputError: there is nothing to show, or, without scores, a pair has no texts.
        ScoreError: the scores lack a sentence or a model.
    """
    every = list(stimuli)
    if not every:
        raise InputError("There is nothing to show: the table has no rows.")
    changes = changes_of(every, None if flagged is None else flagged.table)
    has_tags = any(any(of.values()) for each in changes.values() for of in each)
    has_ranks = scores is None and any(isinstance(each, Pair) for each in every)
    explanation = f"{_EXPLANATION.format(_RANKS * has_ranks)}{_POINTER * has_tags}."
    parts: list[Part] = [report.Paragraph(explanation, note=True)]
    if flagged is not None:
        parts.append(report.Paragraph(f"{flagged.text} contstim review shows which."))
        if triplets := [each for each in every if isinstance(each, Triplet)]:
            # The share with flags is of all stimuli; how many nats are enough the selection says
            parts.append(figures_table(figures_of(triplets, None, flagged.table, enough=None)))
    for kind, heading in _HEADINGS.items():
        of_kind = [each for each in every if isinstance(each, kind)]
        sections: dict[str, list[Stimulus]] = {}
        for each in of_kind:
            sections.setdefault(_section(each), []).append(each)
        if of_kind:
            parts.append(report.Heading(heading))
        for number, (name, section) in enumerate(sections.items()):
            tables = [[each] for each in section] if kind is Triplet else [section]
            parts.append(
                report.Details(
                    f"{name} ({len(section):,})",
                    [stimuli_table(table, scores, changes) for table in tables],
                    is_open=len(of_kind) <= _ALL_OPEN or number == 0,
                )
            )
    if scores is not None and len(scores.models) > 1 and len(scores.log_probs) > 1:
        with styled():
            image = png(agreement_map(scores))
        parts += (
            report.Heading("How often the models agree"),
            report.Paragraph(_AGREEMENT, note=True),
            report.Picture("agreement", image, "how often two models prefer the same sentence"),
        )
    return report.Report(title, parts)


def _section(stimulus: Stimulus) -> str:
    duel = f"{stimulus.model_1} against {stimulus.model_2}"
    if not isinstance(stimulus, Trial):
        return duel
    return f"{duel}, {stimulus.condition}" if stimulus.model_1 else str(stimulus.condition)


def stimuli_table(
    stimuli: Sequence[Stimulus],
    scores: ScoreTable | None = None,
    changes: Changes | None = None,
) -> report.Table:
    """Sentences with their log-probabilities (nats), changed words marked.

    Pairs without scores have ranks among all sentences.

    Args:
        stimuli: of one kind and two models.
        scores: of the sentences of pairs and trials.
        changes: of words (`changes_of`); by default among these stimuli, and nothing said of them.

    Raises:
        InputError: a pair has neither scores nor texts.
        ScoreError: the scores lack a sentence or a model.
    """
    changes = changes_of(stimuli) if changes is None else changes
    own = [model for model in (stimuli[0].model_1, stimuli[0].model_2) if model]
    models: Sequence[str] = own
    if isinstance(stimuli[0], Trial):
        # Trials that compare no models have the numbers of all
        models = [] if scores is None else own or scores.models
    rows: list[tuple[Value, ...]] = []
    for each in stimuli:
        columns = _columns(each, scores, models)
        bold = preferred(columns, rejected_sentences(each))
        for n, (labels, sentence) in enumerate(_labelled(each)):
            name = each.triplet_id if isinstance(each, Triplet) else each.trial_id
            text = mark_changes(sentence, changes[name][n]) if sentence else ""
            numbers = [f"{columns[model][n]:.2f}" for model in models]
            styled_numbers = (
                report.strong(number) if is_bold else number
                for number, is_bold in zip(numbers, bold[n] if models else (), strict=True)
            )
            rows.append((*labels, text, *styled_numbers))
    texts = len(rows[0]) - len(models)
    header = (*[""] * (texts - 1), "sentence", *models)
    return report.Table(header, rows, texts=texts, is_wide=True)


def figures_table(figures: Mapping[str, float]) -> report.Table:
    """Figures of a set of triplets (`figures_of`)."""
    rows = [(name, f"{value:.2f}") for name, value in figures.items()]
    return report.Table(("triplets", "mean or share"), rows)


def _labelled(stimulus: Stimulus) -> list[tuple[tuple[str, ...], Sentence | None]]:
    """Each sentence, with what stands before it in its row."""
    if isinstance(stimulus, Triplet):
        return [((label,), sentence) for label, sentence, _ in stimulus.labelled]
    if isinstance(stimulus, Pair):
        return [(("pair",), stimulus.sentence_1), (("",), stimulus.sentence_2)]
    kinds = [str(kind).partition("_")[0] for kind in (stimulus.kind_1, stimulus.kind_2)]
    if stimulus.condition in (Condition.NATURAL_CONTROVERSIAL, Condition.RANDOM_NATURAL):
        kinds = ["", ""]
    # A trial in no group yet is a minimal pair
    group = f"group {stimulus.group}" if stimulus.group else stimulus.paradigm.replace("_", " ")
    return [((group, kinds[0]), stimulus.sentence_1), (("", kinds[1]), stimulus.sentence_2)]


def mark_changes(sentence: Sentence, changes: Mapping[int, str]) -> Text:
    """A sentence with its new words marked, by their places; its end mark belongs to no word."""
    runs: list[str | Span] = []
    for place, word in enumerate(sentence.words):
        runs += [report.changed(word, title=changes[place]) if place in changes else word, " "]
    return (*runs[:-1], sentence.end)


def _columns(
    stimulus: Stimulus, scores: ScoreTable | None, models: Sequence[str]
) -> Mapping[str, Sequence[float]]:
    if not isinstance(stimulus, Pair):
        return log_probs(stimulus, scores, models)
    if scores is None:
        if stimulus.sentence_1 is None:
            raise InputError(
                f"{stimulus.trial_id} has no texts: show pairs together with their scores."
            )
        return {
            stimulus.model_1: (stimulus.rank_1_model_1, stimulus.rank_2_model_1),
            stimulus.model_2: (stimulus.rank_1_model_2, stimulus.rank_2_model_2),
        }
    if scores.sentences and stimulus.sentence_1 and stimulus.sentence_2:
        # Rows of a pair are those of the scores that it was selected from, which may be others
        return log_probs(stimulus, scores, models)
    rows = [stimulus.row_1, stimulus.row_2]
    return {model: scores.column(model)[rows].tolist() for model in models}


def log_probs(
    stimulus: Stimulus, scores: ScoreTable | None, models: Sequence[str]
) -> dict[str, list[float]]:
    """Models' log-probabilities of the sentences, nats; a triplet holds those of its own models.

    Raises:
        ScoreError: the scores lack a sentence or a model.
    """
    columns: dict[str, list[float]] = {}
    if isinstance(stimulus, Triplet):
        for number, model in enumerate((stimulus.model_1, stimulus.model_2)):
            columns[model] = [scores[number] for *_, scores in stimulus.labelled]
    lacking = [model for model in models if model not in columns]
    if scores is not None and lacking:
        rows = scores.rows_of(filter(None, named_sentences(stimulus)[1]))
        columns |= {model: scores.column(model)[rows].tolist() for model in lacking}
    return columns


def rejected_sentences(stimulus: Stimulus) -> dict[str, int]:
    """The sentence, from 0, that each of the stimulus's models is to reject."""
    first, second = stimulus.model_1, stimulus.model_2
    if isinstance(stimulus, Triplet):
        return {first: 1, second: 2}
    if isinstance(stimulus, Trial) and stimulus.condition is Condition.NATURAL_SYNTHETIC:
        return {first if stimulus.kind_2 is Kind.SYNTHETIC_1 else second: 1}
    return {first: 0, second: 1} if first else {}


def preferred(
    columns: Mapping[str, Sequence[float]], rejected: Mapping[str, int]
) -> list[list[bool]]:
    """Numbers of each sentence that are to be bold.

    Of three sentences those that a model prefers to the one that it is to reject; else the one that
    it finds likeliest.
    """
    n_sentences = max(map(len, columns.values()), default=0)
    return [
        [
            values[n] > values[rejected[model]]
            if n_sentences > 2 and model in rejected
            else values[n] == max(values) > min(values)
            for model, values in columns.items()
        ]
        for n in range(n_sentences)
    ]
