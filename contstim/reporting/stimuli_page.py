"""Page of stimuli with models' log-probabilities and highlighted changes."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.errors import InputError
from contstim.items.matching import changes_of, figures_of
from contstim.items.reviews import named_sentences
from contstim.items.stimuli import Condition, Kind, Pair, Trial, Triplet
from contstim.reporting import report
from contstim.reporting.canvas import BLACK, BLUE, GREY, ORANGE, agreement_map, panels, png, widest
from contstim.reporting.report import short_names
from contstim.wording import grouped

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from matplotlib.figure import Figure

    from contstim.items.item_flags import FlaggedItems
    from contstim.items.matching import Changes
    from contstim.items.reviews import Stimulus
    from contstim.items.scores import ScoreTable
    from contstim.reporting.report import Part, Span, Text, Value
    from contstim.words.sentence import Sentence

_MAX_PANELS, _PANELS_PER_ROW = 6, 3
_MAX_UNFOLDED = 20  # maximum number of items of a kind that are shown unfolded
_HEADINGS = {Triplet: "Synthetic sentences", Pair: "Natural pairs", Trial: "Trials"}
_EXPLANATION = (
    "Numbers are {}{}. In pairs and trials, a bold number marks the sentence that a model prefers. "
    "In triplets, bold numbers mark the sentences that a model prefers to the rejected sentence. "
    "Words that differ from the natural sentence are highlighted"
)
_ARROWS = (
    "Black dots are natural sentences. Arrows lead to synthetic sentences. In the direction of an "
    "orange arrow, a sentence becomes less likely under the model of the horizontal axis, but not "
    "under the other model. In the direction of a blue arrow, a sentence becomes less likely only "
    "under the model of the vertical axis."
)
_ARROW: Mapping[str, Any] = {
    "angles": "xy",
    "scale_units": "xy",
    "scale": 1,
    "width": 0.004,
    "alpha": 0.7,
}
_RANKS = ", and for pairs ranks among all sentences, from 0 to 1"
_POINTER = "; point at a word to see its old and new part of speech"
_AGREEMENT = (
    "Percentage of all pairs of scored sentences in which two models prefer the same sentence; 50 "
    "is chance. Only pairs on which models disagree can show which model predicts human choices "
    "better."
)


def stimuli_report(
    title: str,
    stimuli: Iterable[Stimulus],
    *,
    scores: ScoreTable | None = None,
    flagged: FlaggedItems | None = None,
) -> report.Report:
    """Make a page of stimuli, grouped by pair of models and, for trials, by condition.

    Args:
        title: title of the page.
        stimuli: triplets, pairs and trials, in the order to show.
        scores: log-probabilities of the sentences, nats. Triplets do not need them, because a
            triplet contains its scores under its two models. If `scores` is given, the page also
            shows how often the models agree.
        flagged: flags of the stimuli. A flag marks an item that a reviewer should look at. The page
            shows only how many stimuli have flags.

    Raises:
        InputError: if there are no stimuli, or a pair without scores has no texts.
        ScoreError: if the scores lack a sentence or a model.
    """
    stimuli_list = list(stimuli)
    if not stimuli_list:
        raise InputError("The table has no rows, so there are no items to show.")
    changes = changes_of(stimuli_list, None if flagged is None else flagged.table)
    has_tags = any(any(texts.values()) for sentences in changes.values() for texts in sentences)
    has_ranks = scores is None and any(isinstance(stimulus, Pair) for stimulus in stimuli_list)
    triplets = [stimulus for stimulus in stimuli_list if isinstance(stimulus, Triplet)]
    numbers = "log-probabilities (nats)"
    if units := {m: u for t in triplets for m, u in _units(t).items() if not t.in_nats}:
        numbers = f"scores ({'; '.join(f'{model}: {unit}' for model, unit in units.items())})"
    explanation = f"{_EXPLANATION.format(numbers, _RANKS * has_ranks)}{_POINTER * has_tags}."
    parts: list[Part] = [report.Paragraph(explanation, note=True)]
    parts += arrows(triplets, scores)
    if flagged is not None:
        parts.append(report.Paragraph(f"{flagged.text} contstim review shows these items."))
        if triplets:
            # Omit the share of flags, which the paragraph reports. `enough` is not known here
            parts.append(figures_table(figures_of(triplets, None, flagged.table, enough=None)))
    for kind, heading in _HEADINGS.items():
        of_kind = [stimulus for stimulus in stimuli_list if isinstance(stimulus, kind)]
        sections = grouped((_section_name(stimulus), stimulus) for stimulus in of_kind)
        if of_kind:
            parts.append(report.Heading(heading))
        for number, (name, section) in enumerate(sections.items()):
            tables = [[stimulus] for stimulus in section] if kind is Triplet else [section]
            parts.append(
                report.Details(
                    f"{name} ({len(section):,})",
                    [stimuli_table(table, scores, changes) for table in tables],
                    is_open=len(of_kind) <= _MAX_UNFOLDED or number == 0,
                )
            )
    if scores is not None and len(scores.models) > 1 and len(scores.log_probs) > 1:
        image = png(lambda: agreement_map(scores))
        parts += (
            report.Heading("How often the models agree"),
            report.Paragraph(_AGREEMENT, note=True),
            report.Picture("agreement", image, "how often two models prefer the same sentence"),
        )
    return report.Report(title, parts)


def arrows(triplets: Sequence[Triplet], scores: ScoreTable | None = None) -> list[Part]:
    """Make the parts of a page that show and explain `arrows_figure`; empty without triplets."""
    if not triplets:
        return []
    pairs = len({(triplet.model_1, triplet.model_2) for triplet in triplets})
    further = " Grey dots are other natural sentences." * (scores is not None)
    further += f" These are {_MAX_PANELS} of {pairs} pairs of models." * (pairs > _MAX_PANELS)
    image = png(lambda: arrows_figure(triplets, scores))
    alternative = "log-probabilities of natural and synthetic sentences under both models"
    return [
        report.Picture("log-probabilities", image, alternative),
        report.Paragraph(f"{_ARROWS}{further}", note=True),
    ]


def arrows_figure(triplets: Sequence[Triplet], scores: ScoreTable | None = None) -> Figure:
    """Draw arrows from natural to synthetic sentences, in a panel for each pair of models.

    The axes are scores under the two models: log-probabilities in nats, or scores in other units.
    At most six pairs of models are shown. All sentences of `scores` are drawn as grey dots.
    """
    pairs = grouped(((triplet.model_1, triplet.model_2), triplet) for triplet in triplets)
    shown = dict(islice(pairs.items(), _MAX_PANELS))
    short = dict(zip(models := [*dict.fromkeys(chain(*shown))], short_names(models), strict=True))
    units = {model: unit for t in triplets for model, unit in _units(t).items()}
    labels = {
        model: f"{'log p' if units[model] == 'nats' else 'score'} under {name} ({units[model]})"
        for model, name in short.items()
    }
    side = max(2.8, 0.6 + widest(labels.values()))
    figure, grid = panels(len(shown), _PANELS_PER_ROW, side, side)
    for axes, ((first, second), of_pair) in zip(grid[0], shown.items(), strict=True):
        if scores is not None and {first, second} <= {*scores.models}:
            axes.plot(scores.column(first), scores.column(second), "o", ms=1.5, mew=0, color=GREY)
        for n, colour in ((1, ORANGE), (2, BLUE)):
            ends = np.array([[t.labelled[i][2] for i in (0, n)] for t in of_pair])
            (x, y), (dx, dy) = ends[:, 0].T, (ends[:, 1] - ends[:, 0]).T
            axes.quiver(x, y, dx, dy, color=colour, **_ARROW)
            axes.update_datalim(ends[:, 1])
        axes.plot(x, y, "o", ms=2.5, mew=0, color=BLACK)
        axes.autoscale_view()
        axes.set_xlabel(labels[first])
        axes.set_ylabel(labels[second])
    return figure


def _units(triplet: Triplet) -> dict[str, str]:
    units = (triplet.unit_1 or "nats", triplet.unit_2 or "nats")
    return dict(zip((triplet.model_1, triplet.model_2), units, strict=True))


def _section_name(stimulus: Stimulus) -> str:
    duel = f"{stimulus.model_1} against {stimulus.model_2}"
    if not isinstance(stimulus, Trial):
        return duel
    return f"{duel}, {stimulus.condition}" if stimulus.model_1 else str(stimulus.condition)


def stimuli_table(
    stimuli: Sequence[Stimulus], scores: ScoreTable | None = None, changes: Changes | None = None
) -> report.Table:
    """Make a table of sentences with marked changes, and log-probabilities or other scores.

    Stimuli must be of one kind and one pair of models. Pairs without scores are shown with ranks
    among all sentences. By default, `changes` are computed without tags (parts of speech).

    Raises:
        InputError: if a pair has neither scores nor texts.
        ScoreError: if the scores lack a sentence or a model.
    """
    changes = changes_of(stimuli) if changes is None else changes
    own_models = [model for model in (stimuli[0].model_1, stimuli[0].model_2) if model]
    models: Sequence[str] = own_models
    if isinstance(stimuli[0], Trial):
        # Trials that compare no models show the scores of all models
        models = [] if scores is None else own_models or scores.models
    rows: list[tuple[Value, ...]] = []
    for stimulus in stimuli:
        columns = _select_columns(stimulus, scores, models)
        bold = preferred(columns, rejected_sentences(stimulus))
        for n, (labels, sentence) in enumerate(_labelled_sentences(stimulus)):
            name = stimulus.triplet_id if isinstance(stimulus, Triplet) else stimulus.trial_id
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
    """Make a table of means and shares of triplets (`figures_of`)."""
    rows = [(name, f"{value:.2f}") for name, value in figures.items()]
    return report.Table(("triplets", "mean or share"), rows)


def _labelled_sentences(stimulus: Stimulus) -> list[tuple[tuple[Text, ...], Sentence | None]]:
    """Return each sentence with the labels in front of it."""
    if isinstance(stimulus, Triplet):
        # Put the label into a tuple. The command line would shorten a plain text that begins like
        # the specification of a model
        return [(((label,),), sentence) for label, sentence, _ in stimulus.labelled]
    if isinstance(stimulus, Pair):
        return [(("pair",), stimulus.sentence_1), (("",), stimulus.sentence_2)]
    kinds = [str(kind).partition("_")[0] for kind in (stimulus.kind_1, stimulus.kind_2)]
    if stimulus.condition in (Condition.NATURAL_CONTROVERSIAL, Condition.RANDOM_NATURAL):
        kinds = ["", ""]
    # A minimal pair that is not in a design yet has no group
    group = f"group {stimulus.group}" if stimulus.group else stimulus.paradigm.replace("_", " ")
    return [((group, kinds[0]), stimulus.sentence_1), (("", kinds[1]), stimulus.sentence_2)]


def mark_changes(sentence: Sentence, changes: Mapping[int, str]) -> Text:
    """Mark the new words of a sentence; keys of `changes` are their positions, from 0."""
    runs: list[str | Span] = []
    for position, word in enumerate(sentence.words):
        runs += [
            report.changed(word, title=changes[position]) if position in changes else word,
            " ",
        ]
    return (*runs[:-1], sentence.end)


def _select_columns(
    stimulus: Stimulus, scores: ScoreTable | None, models: Sequence[str]
) -> Mapping[str, Sequence[float]]:
    if not isinstance(stimulus, Pair):
        return log_probs(stimulus, scores, models)
    if scores is None:
        if stimulus.sentence_1 is None:
            raise InputError(f"{stimulus.trial_id} has no texts. Show pairs with their scores.")
        return {
            stimulus.model_1: (stimulus.rank_1_model_1, stimulus.rank_2_model_1),
            stimulus.model_2: (stimulus.rank_1_model_2, stimulus.rank_2_model_2),
        }
    if scores.sentences and stimulus.sentence_1 and stimulus.sentence_2:
        # Find rows by text, because `row_1` and `row_2` may be rows of another table of scores
        return log_probs(stimulus, scores, models)
    rows = [stimulus.row_1, stimulus.row_2]
    return {model: scores.column(model)[rows].tolist() for model in models}


def log_probs(
    stimulus: Stimulus, scores: ScoreTable | None, models: Sequence[str]
) -> dict[str, list[float]]:
    """Return model → scores of the stimulus's sentences, such as log-probabilities in nats.

    A triplet contains the scores of its two models. All other scores come from `scores`.

    Raises:
        ScoreError: if the scores lack a sentence or a model.
    """
    columns: dict[str, list[float]] = {}
    if isinstance(stimulus, Triplet):
        for number, model in enumerate((stimulus.model_1, stimulus.model_2)):
            columns[model] = [numbers[number] for *_, numbers in stimulus.labelled]
    missing = [model for model in models if model not in columns]
    if scores is not None and missing:
        rows = scores.rows_of(filter(None, named_sentences(stimulus)[1]))
        columns |= {model: scores.column(model)[rows].tolist() for model in missing}
    return columns


def rejected_sentences(stimulus: Stimulus) -> dict[str, int]:
    """Return model → index, from 0, of the sentence that the model is expected to reject."""
    first, second = stimulus.model_1, stimulus.model_2
    if isinstance(stimulus, Triplet):
        return {first: 1, second: 2}
    if isinstance(stimulus, Trial) and stimulus.condition is Condition.NATURAL_SYNTHETIC:
        return {first if stimulus.kind_2 is Kind.SYNTHETIC_1 else second: 1}
    return {first: 0, second: 1} if first else {}


def preferred(
    columns: Mapping[str, Sequence[float]], rejected: Mapping[str, int]
) -> list[list[bool]]:
    """Return a mask of the numbers to print in bold, (n_sentences, n_models).

    A number is the score of a sentence under a model. In a triplet, the number is bold if the model
    prefers this sentence to the sentence in `rejected`. In a pair or trial, the number is bold if
    the model prefers this sentence to the other sentence.
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
