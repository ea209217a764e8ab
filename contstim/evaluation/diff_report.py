"""Page and tables about where models part.

Two models part on a pair of sentences if one model prefers the first sentence, and the other model
the second sentence. A change replaces a word of a natural sentence; see `diff`.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from contstim.items.reviews import changed_positions
from contstim.reporting.canvas import BLUE, GREY, new_figure, png, widest
from contstim.reporting.report import Heading, Paragraph, Picture, Report, Table, code
from contstim.reporting.stimuli_page import arrows, stimuli_table
from contstim.reporting.templates import passages

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from matplotlib.figure import Figure

    from contstim.evaluation.diff import Difference
    from contstim.items.scores import ScoreTable
    from contstim.reporting.report import Part
    from contstim.words.tags import TagTable

MAX_PARADIGMS = 10
"""Maximum number of paradigms that are listed for two models."""


def diff_report(
    differences: Sequence[Difference],
    scores: ScoreTable,
    *,
    baseline: str = "",
    natural_text: str,
    command: str,
) -> Report:
    """Make the page that reports the differences from `find_differences`.

    `scores` has the scores of the natural sentences, and `natural_text` names the source of these
    sentences. If `baseline` is not empty, it names a model that is compared only with the first
    model; the last difference is this comparison. The page suggests `command`, which makes a study
    of the models.
    """
    compared = differences[:-1] if baseline else differences
    texts = passages(
        *(__package__, "diff.md.jinja"),
        baseline=baseline,
        compared=compared,
        first=compared[0],
        sentences=len(scores.log_probs),
        natural_text=natural_text,
    )
    parts: list[Part] = [
        summary_table(differences),
        Paragraph(texts["baseline"], note=not baseline),
        Paragraph(texts["meaning"], note=True),
    ]
    for difference in compared:
        if len(compared) > 1:
            parts.append(Heading(difference.names[:1].upper() + difference.names[1:]))
        parts += _parts_of_pair(difference, scores, differences[-1] if baseline else None, texts)
    parts += [Heading("Ask people which model is right"), Paragraph((code(command),))]
    models = " and ".join(dict.fromkeys(n for d in compared for n in (d.model_1, d.model_2)))
    return Report(f"Where {models} part", parts)


def summary_table(differences: Sequence[Difference]) -> Table:
    """Tabulate the rank correlation of every two models, and the shares on which they part."""
    header = ("", "rank correlation", "reordered", "changes", "minimal pairs")
    rows = [
        (
            (f"{d.model_1} × {d.model_2}",),  # a tuple, so that it is not shortened like a model
            f"{d.spearman:.2f}",
            f"{d.reordered:.0%}",
            str(d.changes),
            str(d.pairs or "–"),
        )
        for d in differences
    ]
    return Table(header, rows)


def paradigm_table(difference: Difference) -> Table:
    """Tabulate the paradigms on which two models part most, with the accuracies of both."""
    header = ("paradigm", "pairs", difference.model_1, difference.model_2, "part")
    rows = [
        (
            name.replace("_", " "),
            str(parting.n),
            *(f"{share:.0%}" for share in parting.correct),
            str(parting),
        )
        for name, parting in islice(difference.paradigms.items(), MAX_PARADIGMS)
    ]
    return Table(header, rows)


def where_text(difference: Difference) -> str:
    """Describe the replaced words on which two models part more often than on average.

    The share of a value, such as `noun`, is reported if the whole interval of this share is above
    the share over all changes. The level of the intervals is corrected for the number of values
    (Bonferroni).
    """
    most, average = [], difference.changes.share
    alpha = 0.05 / max(1, sum(map(len, difference.where.values())))
    for name, shares in difference.where.items():
        values = (f"{v} ({x})" for v, x in shares.items() if x.interval(alpha)[0] > average)
        if listed := ", ".join(values):
            most.append(f"{name}: {listed}")
    if not most:
        return "They part on no kind of word clearly more often than on others."
    return f"They part more often than on average by {'; '.join(most)}."


def _parts_of_pair(
    difference: Difference,
    scores: ScoreTable,
    baseline: Difference | None,
    texts: Mapping[str, str],
) -> Iterator[Part]:
    yield from arrows(difference.triplets, scores)
    if difference.where:
        yield Heading("Where they part", 3)
        yield Paragraph(where_text(difference))
        names, image = difference.names, png(lambda: where_figure(difference, baseline))
        yield Picture(f"where-{names}", image, f"share of changes on which {names} part")
        yield Paragraph(texts["figure"], note=True)
    if difference.paradigms:
        yield Heading("Minimal pairs on which they part most: share that each model gets right", 3)
        yield Paragraph(texts["paradigms"], note=True)
        yield paradigm_table(difference)
    if not difference.triplets:
        yield Paragraph("The search found no sentences on which they part.")
        return
    numbers = "log-probabilities in nats" if difference.triplets[0].in_nats else "scores"
    yield Heading(f"Sentences on which they part, with {numbers}", 3)
    yield Paragraph(texts["items"], note=True)
    yield from (stimuli_table([triplet]) for triplet in difference.triplets)


def where_figure(difference: Difference, baseline: Difference | None = None) -> Figure:
    """Draw the share of changes on which two models part, by properties of the replaced word.

    `baseline` is another comparison of two models; its shares are drawn in grey.
    """
    where, row = difference.where, 0
    # An empty label separates two properties
    labels = [label for name, shares in where.items() for label in (name, *shares, "")][:-1]
    width = 2.0 + widest(value for shares in where.values() for value in shares)
    figure = new_figure(width, 0.6 + 0.17 * len(labels))
    axes = figure.subplots()
    for name, shares in where.items():
        for value, parting in shares.items():
            row += 1
            other = baseline and baseline.where.get(name, {}).get(value)
            for share, colour in ((other, GREY), (parting, BLUE)):
                if share:
                    axes.plot(share.interval(), (row, row), color=colour, lw=1)
                    axes.plot(share.share, row, "o", ms=3.5, color=colour)
        row += 2
    axes.set_yticks(range(len(labels)), labels)
    for label in axes.get_yticklabels():
        if label.get_text() in where:
            label.set_fontweight("bold")
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.set_xlim(0, None)
    axes.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.set_xlabel("share of changes")
    return figure


def item_rows(
    difference: Difference, scores: ScoreTable, tags: TagTable, columns: Sequence[str]
) -> Iterator[dict[str, str | float]]:
    """Yield a row of diff.csv for each synthetic sentence.

    `scores` has the scores of the synthetic sentences under all models. `columns` names the columns
    of diff.csv that contain these scores, one for each model.
    """
    for triplet in difference.triplets:
        roles = ((triplet.model_2, triplet.model_1), (triplet.model_1, triplet.model_2))
        synthetic = triplet.sentences[1:]
        for (accept, reject), sentence, drop in zip(roles, synthetic, triplet.drops, strict=True):
            positions = sorted(changed_positions(triplet.natural, sentence))
            words = (f"{triplet.natural.words[i]} → {sentence.words[i]}" for i in positions)
            row_tags = tags.tags(triplet.natural)
            row = scores.log_probs[scores.rows[sentence]]
            yield {
                "natural": triplet.natural.text,
                "sentence": sentence.text,
                "model_accept": accept,
                "model_reject": reject,
                **dict(zip(columns, row.tolist(), strict=True)),
                "drop": drop,
                "drop_unit": triplet.drop_unit,
                "changed_words": "; ".join(words),
                "tags": "; ".join(tags.part_of_speech(row_tags[i]) for i in positions),
            }
