"""An evaluation of desiderata as a folder of tables and scatter plots with a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contstim.evaluation.desiderata import RuleClaim, check_claims, correlation_columns
from contstim.evaluation.folder import Findings, page_table, panels, table_of
from contstim.reporting.canvas import BLACK, BLUE, ORANGE, widest
from contstim.reporting.names import short_names
from contstim.reporting.report import Bullets, Heading, Paragraph, Table, code, emphasis
from contstim.tables import columns_of
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from contstim.arrays import FloatArray
    from contstim.correlation import Correlation
    from contstim.evaluation.desiderata import Desiderata
    from contstim.evaluation.folder import Columns
    from contstim.reporting.report import Part

_ACROSS = 5  # models side by side
_LENGTH = "Pearson correlation of negative score with the number of tokens."
_FREQUENCY = "of a word's score, averaged over the carriers, with its frequency (Zipf scale)."
_SINGLE = "mean score (nats) of words of one token and of several."
_ADVANTAGE = (
    "how much higher a word of several tokens scores than one of one token that is as frequent "
    "(nats, with standard error); the more a rule lets a word's tokens give each other away, the "
    "higher it is."
)
_SHOWN = {
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


def desiderata_findings(desiderata: Desiderata) -> Findings:
    """Correlations and published findings as a page, a figure, and tables.

    desiderata  a row each model: correlations with 95 % intervals, what splitting does
    claims      whether findings of Kauf & Ivanova (2023) hold
    carriers    the correlation with word frequency in each carrier
    scores      scores of sentences, nats
    tokens      tokens of sentences
    words       words, their frequencies, tokens and scores in each carrier
    left_out    sentences and words that are left out, and why
    """
    claims, columns = tuple(check_claims(desiderata)), desiderata.table()
    summary = page_table(columns, {n: shown for n, shown in _SHOWN.items() if n in columns})
    return Findings(
        "Desiderata of scoring rules",
        summary,
        tuple(desiderata_parts(desiderata, summary, claims)),
        desiderata_tables(desiderata) | {"claims": columns_of(RuleClaim, claims)},
        lambda: {"desiderata": desiderata_figure(desiderata)},
    )


def desiderata_tables(desiderata: Desiderata) -> dict[str, Columns]:
    """Every table by its name, but for that of claims."""
    table, models = desiderata.scores, [model.model for model in desiderata.models]
    sentences = list(map(str, table.sentences or ()))
    tokens = desiderata.tokens.astype(np.int64)  # (n_sentences, n_models)
    words: Columns = {"word": list(desiderata.words), "zipf": desiderata.zipfs.tolist()}
    for column, model in enumerate(models):
        words[f"tokens {model}"] = desiderata.word_tokens[:, column].tolist()
        for carrier, scores in zip(
            desiderata.carriers, desiderata.word_scores[column].T, strict=True
        ):
            words[f"{carrier} {model}"] = scores.tolist()
    left_out = {o.sentence: f"{o.model}: {o.reason}" for o in desiderata.left_out}
    return {
        "desiderata": desiderata.table(),
        "carriers": {
            "model": [model for model in models for _ in desiderata.carriers],
            "carrier": [*desiderata.carriers] * len(models),
            **correlation_columns(
                "frequency", [r for model in desiderata.models for r in model.by_carrier]
            ),
        },
        "scores": {"sentence": sentences}
        | dict(zip(table.models, table.log_probs.T.tolist(), strict=True)),
        "tokens": {"sentence": sentences} | dict(zip(models, tokens.T.tolist(), strict=True)),
        "words": words,
        "left_out": table_of(
            (
                {"left_out": text, "reason": reason}
                for each in (left_out, desiderata.words_left_out)
                for text, reason in each.items()
            ),
            ("left_out", "reason"),
        ),
    }


def desiderata_parts(
    desiderata: Desiderata, summary: Table, claims: Sequence[RuleClaim]
) -> Iterator[Part]:
    """Parts of the page."""
    carriers = [part for carrier in desiderata.carriers for part in ("; ", code(carrier))]
    yield Paragraph(
        (
            f"{counted(len(desiderata.scores.log_probs), 'sentence')}, "
            f"{counted(len(desiderata.words), 'word')} in "
            f"{counted(len(desiderata.carriers), 'carrier')}: ",
            *carriers[1:],
            ".",
        )
    )
    reference = (": correlation of scores with those of ", code(desiderata.reference or ""), ".")
    yield Bullets(
        [
            (emphasis("length"), f": {_LENGTH}"),
            *([(emphasis("reference"), *reference)] if desiderata.reference else []),
            (emphasis("frequency"), f": {_FREQUENCY}"),
            (emphasis("single"), ", ", emphasis("several"), f": {_SINGLE}"),
            (emphasis("advantage"), f": {_ADVANTAGE}"),
        ]
    )
    yield summary
    if claims:
        yield Heading("Published findings")
        rules = (code("pll-original"), " with ", code("pll-word-l2r"))
        yield Paragraph(
            (
                *("Kauf & Ivanova (2023) compare ", *rules),
                ". What they find of the former, here (95 % bootstrap interval of the difference; "
                "undecided where it holds zero):",
            )
        )
        yield Table(
            ("model", "finding", "original", "word-l2r", "difference", ""),
            [
                (
                    *(claim.model, claim.finding, f"{claim.original:.4f}", f"{claim.adapted:.4f}"),
                    f"{claim.original - claim.adapted:.4f} ({claim.low:.4f} to {claim.high:.4f})",
                    claim.verdict,
                )
                for claim in claims
            ],
            texts=2,
            notes=1,
        )
    n_sentences = len({omission.sentence for omission in desiderata.left_out})
    n_words = len(desiderata.words_left_out)
    if n_sentences or n_words:
        left_out = f"{counted(n_sentences, 'sentence')} and {counted(n_words, 'word')}"
        yield Paragraph(f"Left out: {left_out} (left_out.csv says why).")


def desiderata_figure(desiderata: Desiderata) -> Figure:
    """A column for each model: length, frequency and, where there is one, the reference.

    Of many models, five stand side by side and the next below.
    """
    models = desiderata.models
    titles = short_names([model.model for model in models])
    reference = short_names([desiderata.reference])[0] if desiderata.reference else ""
    width = max(1.9, 0.5 + widest([*titles, reference]))
    rows = 3 if desiderata.reference else 2
    figure, grid = panels(len(models), _ACROSS, width, 1.8, rows=rows)
    for column, (model, words) in enumerate(zip(models, desiderata.word_scores, strict=True)):
        scores = desiderata.scores.column(model.model)
        lengths, by_frequency = grid[0, column], grid[1, column]
        _scatter(lengths, desiderata.tokens[:, column], -scores, model.length)
        lengths.set(xlabel="tokens", ylabel="negative score (nats)")
        lengths.set_title(titles[column], fontsize="medium")
        means, split = words.mean(axis=1), desiderata.word_tokens[:, column] > 1
        for chosen, colour, label in ((~split, BLUE, "one token"), (split, ORANGE, "several")):
            x, y = desiderata.zipfs[chosen], means[chosen]
            by_frequency.plot(x, y, "o", ms=2, color=colour, alpha=0.5, mew=0, label=label)
        by_frequency.legend(loc="lower right", frameon=False, fontsize="x-small", handletextpad=0.1)
        _write_r(by_frequency, model.frequency)
        by_frequency.set(xlabel="word frequency (Zipf)", ylabel="word score (nats)")
        if desiderata.reference and model.reference:
            x = desiderata.scores.column(desiderata.reference)
            _scatter(grid[2, column], x, scores, model.reference)
            grid[2, column].set(xlabel=f"{reference}\n(nats)", ylabel="score (nats)")
    return figure


def _scatter(axes: Axes, x: FloatArray, y: FloatArray, correlation: Correlation) -> None:
    """Dots, the least-squares line through them, and r."""
    axes.plot(x, y, "o", ms=2, color=BLUE, alpha=0.5, mew=0)
    use = np.isfinite(x) & np.isfinite(y)
    if np.isfinite(correlation.r):
        slope, intercept = np.polyfit(x[use], y[use], 1)
        ends = np.array([x[use].min(), x[use].max()])
        axes.plot(ends, slope * ends + intercept, color=BLACK, lw=0.8)
    _write_r(axes, correlation)


def _write_r(axes: Axes, correlation: Correlation) -> None:
    axes.text(0.03, 0.97, f"r = {correlation.r:.2f}", transform=axes.transAxes, va="top")
