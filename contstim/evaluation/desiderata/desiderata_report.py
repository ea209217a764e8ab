"""An evaluation of desiderata as a folder of tables and scatter plots with a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.evaluation.desiderata.claims import RuleClaim, check_claims
from contstim.evaluation.desiderata.measures import correlation_columns
from contstim.evaluation.output_folder import finite_numbers, write_evaluation
from contstim.reporting.canvas import BLACK, BLUE, ORANGE, new_figure, styled, widest
from contstim.reporting.names import short_names
from contstim.reporting.report import Bullets, Heading, Paragraph, Table, code, emphasis
from contstim.tables import columns_of
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from contstim.arrays import FloatArray
    from contstim.correlation import Correlation
    from contstim.evaluation.desiderata.evaluation import Desiderata
    from contstim.models.base import Scorer
    from contstim.reporting.report import Part, Text

_ACROSS = 5  # models side by side


def write_desiderata(
    desiderata: Desiderata,
    folder: Path | str,
    *,
    models: Sequence[Scorer],
    data: Iterable[Path],
    **facts: Any,
) -> None:
    """Write the tables (CSV), a figure, report.html and report.md.

    desiderata.csv  a row each model: correlations with 95 % intervals, what splitting does
    claims.csv      whether findings of Kauf & Ivanova (2023) hold
    carriers.csv    the correlation with word frequency in each carrier
    scores.csv      scores of sentences, nats
    tokens.csv      tokens of sentences
    words.csv       words, their frequencies, tokens and scores in each carrier
    left_out.csv    sentences and words that are left out, and why

    Raises:
        InputError: a file cannot be written.
    """
    claims = tuple(check_claims(desiderata))
    with styled():
        write_evaluation(
            folder,
            title="Desiderata of scoring rules",
            parts=desiderata_parts(desiderata, claims),
            tables={
                "desiderata": desiderata.table(),
                "claims": columns_of(RuleClaim, claims),
                **_other_tables(desiderata),
            },
            figures={"desiderata": desiderata_figure(desiderata)},
            models=models,
            data=data,
            **facts,
        )


def desiderata_parts(desiderata: Desiderata, claims: Sequence[RuleClaim]) -> Iterator[Part]:
    """Parts of the page."""
    carriers = [part for carrier in desiderata.carriers for part in ("; ", code(carrier.text))]
    yield Paragraph(
        (
            f"{counted(len(desiderata.scores.log_probs), 'sentence')}, "
            f"{counted(len(desiderata.words), 'word')} in "
            f"{counted(len(desiderata.carriers), 'carrier')}: ",
            *carriers[1:],
            ".",
        )
    )
    reference: tuple[Text, ...] = ()
    if desiderata.reference:
        name = code(desiderata.reference)
        reference = ((emphasis("reference"), ": correlation of scores with those of ", name, "."),)
    yield Bullets(
        (
            (
                emphasis("length"),
                ": Pearson correlation of negative score with the number of tokens.",
            ),
            *reference,
            (
                emphasis("frequency"),
                ": of a word's score, averaged over the carriers, with its frequency (Zipf scale).",
            ),
            (
                *(emphasis("single"), ", ", emphasis("several")),
                ": mean score (nats) of words of one token and of several.",
            ),
            (
                emphasis("advantage"),
                ": how much higher a word of several tokens scores than one of one token that is "
                "as frequent (nats, with standard error); the more a rule lets a word's tokens "
                "give each other away, the higher it is.",
            ),
        )
    )
    header = ["model", "length", *(["reference"] if desiderata.reference else []), "frequency"]
    header += ["words split", "single", "several", "advantage"]
    yield Table(
        header,
        [
            [
                model.model,
                *finite_numbers([model.length.r]),
                *finite_numbers([model.reference.r] if model.reference else []),
                *finite_numbers([model.frequency.r]),
                f"{model.splitting.share:.1%}",
                *finite_numbers([model.splitting.single, model.splitting.several]),
                f"{model.splitting.advantage:.3f} ± {model.splitting.standard_error:.3f}"
                if np.isfinite(model.splitting.advantage)
                else "",
            ]
            for model in desiderata.models
        ],
    )
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
                    claim.verdict.value,
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


def _other_tables(desiderata: Desiderata) -> dict[str, dict[str, Any]]:
    """Tables from which the results were computed."""
    table, models = desiderata.scores, [model.model for model in desiderata.models]
    sentences = list(map(str, table.sentences or ()))
    tokens = desiderata.tokens.astype(np.int64)  # (n_sentences, n_models)
    words: dict[str, Any] = {"word": list(desiderata.words), "zipf": desiderata.zipfs}
    for model, of_words in zip(models, desiderata.word_scores, strict=True):
        words[f"tokens {model}"] = of_words.tokens
        for carrier, scores in zip(desiderata.carriers, of_words.scores.T, strict=True):
            words[f"{carrier.text} {model}"] = scores
    texts = [carrier.text for carrier in desiderata.carriers]
    # model by model, carriers in their order within each, as in the columns below
    by_carrier = [r for model in desiderata.models for r in model.by_carrier]
    # sentences and words under one another, each with its reason
    left_out = [(o.sentence, f"{o.model}: {o.reason}") for o in desiderata.left_out]
    left_out += desiderata.words_left_out.items()
    return {
        "carriers": {
            "model": [model for model in models for _ in texts],
            "carrier": texts * len(models),
            **correlation_columns("frequency", by_carrier),
        },
        "scores": {"sentence": sentences} | dict(zip(table.models, table.log_probs.T, strict=True)),
        "tokens": {"sentence": sentences} | dict(zip(models, tokens.T, strict=True)),
        "words": words,
        "left_out": {
            "left_out": [text for text, _ in left_out],
            "reason": [reason for _, reason in left_out],
        },
    }


def desiderata_figure(desiderata: Desiderata) -> Figure:
    """A column for each model: length, frequency and, where there is one, the reference.

    Of many models, five stand side by side and the next below.
    """
    models = desiderata.models
    n, across = len(models), min(len(models), _ACROSS)
    rows = 3 if desiderata.reference else 2
    titles = short_names([model.model for model in models])
    reference = short_names([desiderata.reference])[0] if desiderata.reference else ""
    width = max(1.9, 0.5 + widest([*titles, reference]))
    down = rows * -(-n // across)
    figure = new_figure(0.4 + width * across, 0.4 + 1.8 * down)
    grid = figure.subplots(down, across, squeeze=False)
    # blocks of rows below each other become one block: (rows, n_models and unused panels)
    panels = np.hstack(np.split(grid, down // rows))
    for axes in panels[:, n:].flat:
        axes.set_axis_off()
    for column, (model, words) in enumerate(zip(models, desiderata.word_scores, strict=True)):
        scores = desiderata.scores.column(model.model)
        lengths, by_frequency = panels[0, column], panels[1, column]
        _scatter(lengths, desiderata.tokens[:, column], -scores, model.length)
        lengths.set(xlabel="tokens", ylabel="negative score (nats)")
        lengths.set_title(titles[column], fontsize="medium")
        means, split = words.scores.mean(axis=1), words.tokens > 1
        for chosen, colour, label in ((~split, BLUE, "one token"), (split, ORANGE, "several")):
            x, y = desiderata.zipfs[chosen], means[chosen]
            by_frequency.plot(x, y, "o", ms=2, color=colour, alpha=0.5, mew=0, label=label)
        by_frequency.legend(loc="lower right", frameon=False, fontsize="x-small", handletextpad=0.1)
        _write_r(by_frequency, model.frequency)
        by_frequency.set(xlabel="word frequency (Zipf)", ylabel="word score (nats)")
        if desiderata.reference and model.reference:
            x = desiderata.scores.column(desiderata.reference)
            _scatter(panels[2, column], x, scores, model.reference)
            panels[2, column].set(xlabel=f"{reference}\n(nats)", ylabel="score (nats)")
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
