"""The folder of an evaluation of desiderata: tables, scatter plots, and a page."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.evaluation.desiderata.claims import Claim, claims
from contstim.evaluation.outputs import write_evaluation
from contstim.reporting.canvas import BLACK, BLUE, ORANGE, new_figure, styled, widest
from contstim.reporting.markdown import markdown_code, markdown_table
from contstim.reporting.names import short_names
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from contstim.arrays import FloatArray
    from contstim.evaluation.desiderata.measures import Correlation
    from contstim.evaluation.desiderata.run import Desiderata, ModelDesiderata
    from contstim.models.base import Scorer


_ACROSS = 5  # models side by side


def write_desiderata(
    found: Desiderata,
    folder: Path | str,
    *,
    models: Sequence[Scorer],
    data: Iterable[Path],
    **facts: Any,
) -> None:
    """Write the tables desiderata to left_out (below) as CSV, a figure, and report.md.

    Raises:
        InputError: a file cannot be written.
    """
    with styled():
        write_evaluation(
            folder,
            title="Desiderata of scoring rules",
            summary=summary(found),
            tables={
                "desiderata": desiderata_table(found),
                "claims": _claims_table(found),
                "carriers": _carriers_table(found),
                "scores": _scores_table(found),
                "tokens": _tokens_table(found),
                "words": _words_table(found),
                "left_out": _left_out_table(found),
            },
            figures={"desiderata": desiderata_figure(found)},
            models=models,
            data=data,
            **facts,
        )


def desiderata_table(found: Desiderata) -> dict[str, list[Any]]:
    """One row a model: correlations with 95 % intervals, and what splitting does."""
    columns: dict[str, list[Any]] = {"model": [one.model for one in found.models]}
    columns |= _correlations("length", [one.length for one in found.models])
    if found.reference:
        columns["reference"] = [found.reference] * len(found.models)
        references = [one.reference for one in found.models if one.reference]
        columns |= _correlations("reference", references)
    columns |= _correlations("frequency", [one.frequency for one in found.models])
    columns["split_words"] = [one.splitting.share for one in found.models]
    columns["split_in_text"] = [one.split_in_text for one in found.models]
    columns["score_of_single"] = [one.splitting.single for one in found.models]
    columns["score_of_several"] = [one.splitting.several for one in found.models]
    columns["advantage_of_several"] = [one.splitting.advantage for one in found.models]
    columns["advantage_error"] = [one.splitting.standard_error for one in found.models]
    return columns


def summary(found: Desiderata) -> str:
    """The body of the report."""
    header = ["model", "length", *(["reference"] if found.reference else []), "frequency"]
    header += ["words split", "single", "several", "advantage"]
    rows = [_row(one) for one in found.models]
    about = [
        f"{counted(len(found.scores.log_probs), 'sentence')}, "
        f"{counted(len(found.words), 'word')} in {counted(len(found.carriers), 'carrier')}: "
        f"{'; '.join(f'`{c.text}`' for c in found.carriers)}.",
        "*length*: Pearson correlation of negative score with the number of tokens. "
        "*frequency*: of a word's score, averaged over the carriers, with its frequency "
        "(Zipf scale). "
        "*single*, *several*: mean score (nats) of words of one token and of several. "
        "*advantage*: how much higher a word of several tokens scores than one of one token that "
        "is as frequent (nats, with standard error); the more a rule lets a word's tokens give "
        "each other away, the higher it is.",
    ]
    if found.reference:
        about.append(
            f"*reference*: correlation of scores with those of {markdown_code(found.reference)}."
        )
    parts = [*about, markdown_table(header, rows), *_findings(found), _left_out(found)]
    return "\n\n".join(filter(None, parts))


def _row(one: ModelDesiderata) -> list[Any]:
    cells: list[Any] = [one.model, one.length.r]
    cells += [one.reference.r] if one.reference else []
    split = one.splitting
    cells += [one.frequency.r, f"{split.share:.1%}", split.single, split.several]
    return [*cells, f"{split.advantage:.3f} ± {split.standard_error:.3f}"]


def _findings(found: Desiderata) -> list[str]:
    """Whether the paper's claims hold of each checkpoint that is here under both rules."""
    results = claims(found)
    if not results:
        return []
    text = (
        "Kauf & Ivanova (2023) compare `pll-original` with `pll-word-l2r`. What they find of the "
        "former, here (95 % bootstrap interval of the difference; undecided where it holds zero):"
    )
    header = ("finding", "original", "word-l2r", "difference", "")
    return [text, markdown_table(header, [_finding(one) for one in results])]


def _finding(one: Claim) -> list[Any]:
    numbers = [f"{value:.4f}" for value in (one.original, one.adapted)]
    interval = f"{one.original - one.adapted:.4f} ({one.low:.4f} to {one.high:.4f})"
    return [one.finding, *numbers, interval, str(one.verdict)]


def _left_out(found: Desiderata) -> str:
    n_sentences, n_words = len({one.sentence for one in found.left_out}), len(found.words_left_out)
    if not n_sentences and not n_words:
        return ""
    left_out = f"{counted(n_sentences, 'sentence')} and {counted(n_words, 'word')}"
    return f"Left out: {left_out} (left_out.csv says why)."


def _correlations(name: str, found: Sequence[Correlation]) -> dict[str, list[Any]]:
    return {
        f"{name}_r": [one.r for one in found],
        f"{name}_low": [one.low for one in found],
        f"{name}_high": [one.high for one in found],
        f"{name}_n": [one.n for one in found],
    }


def _carriers_table(found: Desiderata) -> dict[str, list[Any]]:
    rows = [
        (one.model, carrier.text, r)
        for one in found.models
        for carrier, r in zip(found.carriers, one.by_carrier, strict=True)
    ]
    columns: dict[str, list[Any]] = {"model": [r[0] for r in rows], "carrier": [r[1] for r in rows]}
    return columns | _correlations("frequency", [row[2] for row in rows])


def _claims_table(found: Desiderata) -> dict[str, list[Any]]:
    rows = claims(found)
    return {field.name: [getattr(row, field.name) for row in rows] for field in fields(Claim)}


def _scores_table(found: Desiderata) -> dict[str, Any]:
    table = found.scores
    columns = zip(table.models, table.log_probs.T, strict=True)
    return {"sentence": list(map(str, table.sentences or ())), **dict(columns)}


def _tokens_table(found: Desiderata) -> dict[str, Any]:
    columns = zip((one.model for one in found.models), found.tokens.T, strict=True)
    tokens = {name: column.astype(np.int64) for name, column in columns}
    return {"sentence": list(map(str, found.scores.sentences or ())), **tokens}


def _words_table(found: Desiderata) -> dict[str, Any]:
    columns: dict[str, Any] = {"word": list(found.words), "zipf": found.zipfs}
    for one, own in zip(found.models, found.word_scores, strict=True):
        columns[f"tokens {one.model}"] = own.tokens
        for carrier, scores in zip(found.carriers, own.scores.T, strict=True):
            columns[f"{carrier.text} {one.model}"] = scores
    return columns


def _left_out_table(found: Desiderata) -> dict[str, list[str]]:
    rows = [(one.sentence, f"{one.model}: {one.reason}") for one in found.left_out]
    rows += list(found.words_left_out.items())
    return {"left_out": [row[0] for row in rows], "reason": [row[1] for row in rows]}


def desiderata_figure(found: Desiderata) -> Figure:
    """A column for each model: length, frequency and, where there is one, the reference.

    Of many models, five stand side by side and the next below.
    """
    n, wide = len(found.models), min(len(found.models), _ACROSS)
    rows = 3 if found.reference else 2
    names, titles = found.scores.models, short_names([one.model for one in found.models])
    reference = short_names([found.reference])[0] if found.reference else ""
    across = max(1.9, 0.5 + widest([*titles, reference]))
    down = rows * -(-n // wide)
    figure = new_figure(0.4 + across * wide, 0.4 + 1.8 * down)
    grid = figure.subplots(down, wide, squeeze=False)
    panels = np.hstack(np.split(grid, down // rows))  # (rows, n_models and unused ones)
    for axes in panels[:, n:].flat:
        axes.set_axis_off()
    for column, (one, own) in enumerate(zip(found.models, found.word_scores, strict=True)):
        scores = found.scores.log_probs[:, names.index(one.model)]
        _dots(panels[0, column], found.tokens[:, column], -scores, one.length)
        panels[0, column].set(title=titles[column], xlabel="tokens", ylabel="negative score (nats)")
        _words(panels[1, column], found.zipfs, own.scores.mean(axis=1), own.tokens > 1)
        panels[1, column].text(0.03, 0.97, _label(one.frequency), **_corner(panels[1, column]))
        panels[1, column].set(xlabel="word frequency (Zipf)", ylabel="word score (nats)")
        if found.reference and one.reference:
            known = found.scores.column(found.reference)
            _dots(panels[2, column], known, scores, one.reference)
            panels[2, column].set(xlabel=f"{reference}\n(nats)", ylabel="score (nats)")
        panels[0, column].title.set_fontsize("medium")
    return figure


def _dots(axes: Axes, x: FloatArray, y: FloatArray, correlation: Correlation) -> None:
    axes.plot(x, y, "o", ms=2, color=BLUE, alpha=0.5, mew=0)
    use = np.isfinite(x) & np.isfinite(y)
    if np.isfinite(correlation.r):
        slope, intercept = np.polyfit(x[use], y[use], 1)
        ends = np.array([x[use].min(), x[use].max()])
        axes.plot(ends, slope * ends + intercept, color=BLACK, lw=0.8)
    axes.text(0.03, 0.97, _label(correlation), **_corner(axes))


def _words(axes: Axes, x: FloatArray, y: FloatArray, split: Any) -> None:
    for chosen, colour, label in ((~split, BLUE, "one token"), (split, ORANGE, "several")):
        axes.plot(x[chosen], y[chosen], "o", ms=2, color=colour, alpha=0.5, mew=0, label=label)
    axes.legend(loc="lower right", frameon=False, fontsize="x-small", handletextpad=0.1)


def _corner(axes: Axes) -> dict[str, Any]:
    return {"transform": axes.transAxes, "va": "top"}


def _label(correlation: Correlation) -> str:
    return f"r = {correlation.r:.2f}"
