"""An evaluation of desiderata as a folder of tables and scatter plots with a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contstim.evaluation.desiderata import CLAIM, check_claims
from contstim.evaluation.folder import Findings, page_table, table_of
from contstim.reporting.canvas import BLACK, BLUE, ORANGE, panels, widest
from contstim.reporting.report import (
    Bullets,
    Heading,
    Paragraph,
    Table,
    code,
    emphasis,
    short_names,
)
from contstim.wording import quantity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from contstim.evaluation.desiderata import Desiderata
    from contstim.evaluation.folder import Columns
    from contstim.files.arrays import FloatArray
    from contstim.reporting.report import Part

_ACROSS = 5  # models in a row
_SUMMARY_COLUMNS = {
    "model": "model",
    "length_r": "length",
    "reference_r": "reference",
    "frequency_r": "frequency",
    "split_words": "words split",
    "score_of_single": "single",
    "score_of_several": "several",
    "advantage_of_several": "advantage",
    "advantage_error": "its error",
}
_MEANING = {
    "length": "Pearson correlation of negative score with the number of tokens.",
    "reference": "correlation of scores with those of {}.",
    "frequency": "correlation of a word's score, averaged over the carriers, with its frequency "
    "(Zipf scale).",
    "single": "mean score (nats) of words of one token, and of words of several tokens.",
    "advantage": (
        "difference in score between a word of several tokens and an equally frequent word "
        "of one token (nats, with standard error); it is positive if the tokens of a word "
        "predict each other under the rule."
    ),
}


def desiderata_findings(desiderata: Desiderata) -> Findings:
    """Prepare correlations and published findings as a page, a figure, and tables.

    desiderata  correlations with 95 % intervals and effects of splitting, a row for each model
    claims      whether findings of Kauf & Ivanova (2023) hold
    carriers    the correlation with word frequency in each carrier
    scores      scores of sentences, nats
    tokens      numbers of tokens of sentences
    words       words, their frequencies, tokens and scores in each carrier
    left_out    excluded sentences and words, with reasons
    """
    tables = _tables(desiderata)
    columns = tables["desiderata"]
    summary = page_table(
        columns, {n: heading for n, heading in _SUMMARY_COLUMNS.items() if n in columns}
    )
    return Findings(
        "Desiderata of scoring rules",
        summary,
        tuple(_parts(desiderata, summary, tables["claims"])),
        tables,
        lambda: {"desiderata": desiderata_figure(desiderata)},
    )


def _tables(desiderata: Desiderata) -> dict[str, Columns]:
    models, carriers = desiderata.models, desiderata.carriers
    tokens = desiderata.tokens.astype(np.int64).T.tolist()  # (n_models, n_sentences)
    words: Columns = {"word": list(desiderata.words), "zipf": desiderata.zipfs.tolist()}
    for column, model in enumerate(models):
        words[f"tokens {model}"] = desiderata.word_tokens[:, column].tolist()
        for carrier, scores in zip(carriers, desiderata.word_scores[column].T, strict=True):
            words[f"{carrier} {model}"] = scores.tolist()
    reasons = {o.sentence: f"{o.model}: {o.reason}" for o in desiderata.left_out}
    omissions = [*reasons.items(), *desiderata.words_left_out.items()]
    scores = desiderata.scores.columns
    return {
        "desiderata": table_of(desiderata.rows),
        "carriers": table_of(desiderata.by_carrier),
        "scores": scores,
        "tokens": {"sentence": scores["sentence"], **dict(zip(models, tokens, strict=True))},
        "words": words,
        "left_out": {
            "left_out": [text for text, _ in omissions],
            "reason": [reason for _, reason in omissions],
        },
        "claims": table_of(check_claims(desiderata), CLAIM),
    }


def _parts(desiderata: Desiderata, summary: Table, claims: Columns) -> Iterator[Part]:
    carriers = [part for carrier in desiderata.carriers for part in ("; ", code(carrier))]
    sentences = quantity(len(desiderata.scores.log_probs), "sentence")
    words = quantity(len(desiderata.words), "word")
    n_carriers = quantity(len(desiderata.carriers), "carrier")
    yield Paragraph((f"{sentences}, {words} in {n_carriers}: ", *carriers[1:], "."))
    yield Bullets(
        [
            (emphasis(name), f": {meaning.format(desiderata.reference)}")
            for name, meaning in _MEANING.items()
            if name != "reference" or desiderata.reference
        ]
    )
    yield summary
    if claims["model"]:
        yield Heading("Published findings")
        yield Paragraph(
            "Findings of Kauf & Ivanova (2023) on pll-original, compared with pll-word-l2r "
            "(95 % bootstrap interval of the difference; undecided if it contains zero):"
        )
        yield page_table(claims)
    n_sentences = len({omission.sentence for omission in desiderata.left_out})
    n_words = len(desiderata.words_left_out)
    if n_sentences or n_words:
        left_out = f"{quantity(n_sentences, 'sentence')} and {quantity(n_words, 'word')}"
        yield Paragraph(f"Excluded: {left_out} (reasons in left_out.csv).")


def desiderata_figure(desiderata: Desiderata) -> Figure:
    """Draw a column for each model: length, frequency and, if there is one, the reference.

    Each row of panels has at most five models.
    """
    titles = short_names(desiderata.models)
    reference = short_names([desiderata.reference])[0] if desiderata.reference else ""
    width = max(1.9, 0.5 + widest([*titles, reference]))
    rows = 3 if desiderata.reference else 2
    figure, grid = panels(len(titles), _ACROSS, width, 1.8, rows=rows)
    for column, row in enumerate(desiderata.rows):
        words = desiderata.word_scores[column]
        scores = desiderata.scores.column(row["model"])
        lengths, by_frequency = grid[0, column], grid[1, column]
        _scatter(lengths, desiderata.tokens[:, column], -scores, row["length_r"])
        lengths.set(xlabel="tokens", ylabel="negative score (nats)")
        lengths.set_title(titles[column], fontsize="medium")
        means, split = words.mean(axis=1), desiderata.word_tokens[:, column] > 1
        for mask, colour, label in ((~split, BLUE, "one token"), (split, ORANGE, "several")):
            x, y = desiderata.zipfs[mask], means[mask]
            by_frequency.plot(x, y, "o", ms=2, color=colour, alpha=0.5, mew=0, label=label)
        by_frequency.legend(loc="lower right", frameon=False, fontsize="x-small", handletextpad=0.1)
        _write_r(by_frequency, row["frequency_r"])
        by_frequency.set(xlabel="word frequency (Zipf)", ylabel="word score (nats)")
        if desiderata.reference:
            x = desiderata.scores.column(desiderata.reference)
            _scatter(grid[2, column], x, scores, row["reference_r"])
            grid[2, column].set(xlabel=f"{reference}\n(nats)", ylabel="score (nats)")
    return figure


def _scatter(axes: Axes, x: FloatArray, y: FloatArray, r: float) -> None:
    """Draw dots, the least-squares line, and r."""
    axes.plot(x, y, "o", ms=2, color=BLUE, alpha=0.5, mew=0)
    use = np.isfinite(x) & np.isfinite(y)
    if np.isfinite(r):
        slope, intercept = np.polyfit(x[use], y[use], 1)
        ends = np.array([x[use].min(), x[use].max()])
        axes.plot(ends, slope * ends + intercept, color=BLACK, lw=0.8)
    _write_r(axes, r)


def _write_r(axes: Axes, r: float) -> None:
    axes.text(0.03, 0.97, f"r = {r:.2f}", transform=axes.transAxes, va="top")
