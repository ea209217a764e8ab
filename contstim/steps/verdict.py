"""A verdict on models from any table of pairwise judgements."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np

from contstim.experiments.analysis.e_values import (
    Verdict,
    e_value,
    matches_of,
    matches_of_best,
    read_answers,
    verdict_of,
)
from contstim.files.tables import write_table
from contstim.options import Help, Reads, WritesTable
from contstim.reporting.canvas import BLUE, GREY, new_figure, write_figure
from contstim.reporting.report import Table
from contstim.steps.step import Outcome, Step
from contstim.wording import quantity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from contstim.experiments.analysis.e_values import Match
    from contstim.reporter import Reporter


class FindVerdict(Step[Verdict], name="verdict"):
    """Decide from pairwise judgements which model is the best, as often as you like.

    The judgements are a table with the columns participant, model_a, model_b and preferred (a
    model's name, or tie). The optional column list is equal for participants who saw the same
    items. You may add lists and repeat the command: the decision is valid after every list. If one
    model is better than every other one, the probability that this model is ever called beaten is
    at most --alpha. Lists must be complete, and the first look must include all models. If no
    decision is possible yet, the exit status is 3.

    A match is a comparison of two models. The command writes a row for each match: the evidence for
    both models (E, the present worth of a bet of one euro), the share of answers for model_a, and
    an interval of the difference of both shares. A figure shows E by number of participants.

    Example: `contstim verdict answers.csv --out verdict.csv`
    """

    answers: Annotated[Path, Reads("The table of judgements.", argument=True)]
    out: Annotated[Path, WritesTable("The table of matches to write.", beside=(".png",))] = Path(
        "verdict.csv"
    )
    alpha: Annotated[float, Help("Error rate.", above=0, below=1)] = 0.05

    def work(self, reporter: Reporter) -> Outcome[Verdict]:
        """Compute all e-values, and write them."""
        matches = matches_of(read_answers(self.answers))
        verdict = verdict_of(matches, self.alpha)
        parts = write_matches(matches, verdict, self.alpha, self.out)
        reporter.say(f"{self.out}: {quantity(len(matches), 'match', 'matches')}.")
        facts = {"alpha": self.alpha, "winner": verdict.winner, "beaten": dict(verdict.beaten)}
        return Outcome(verdict, facts, complete=not verdict.open, parts=parts)


def write_matches(
    matches: Sequence[Match], verdict: Verdict, alpha: float, out: Path
) -> list[Table | str]:
    """Write a table of all matches and a figure (`….png`), and return parts to print.

    A match is a comparison of two models.
    """
    rows, shown = [], []
    for match in matches:
        e_a, e_b = (e_value(m.log_e[-1]) for m in (match, match.reversed))
        people = int(match.people.sum())
        low, high = match.interval(alpha)
        rows.append((*match.models, e_a, e_b, match.share, low, high, people, len(match.x)))
        cells = (f"{e_a:.3g}", f"{e_b:.3g}", f"{match.share:.0%}", f"{people:,}")
        shown.append((*match.models, *cells))
    names = (
        *("model_a", "model_b", "e_a_beats_b", "e_b_beats_a", "share_a"),
        *("difference_low", "difference_high", "participants", "lists"),
    )
    write_table(out, dict(zip(names, zip(*rows, strict=True), strict=True)))
    write_figure(partial(evidence_figure, matches, verdict, alpha), f"{out}.png")
    header = ("a", "b", "E a beats b", "E b beats a", "share of a", "participants")
    beaten = [f"{other} beats {model}." for model, other in verdict.beaten.items()]
    return [Table(header, shown, texts=2), *beaten, verdict.text]


def evidence_figure(matches: Sequence[Match], verdict: Verdict, alpha: float) -> Figure:
    """Draw the evidence E by number of participants, with a line for each match of the best model.

    A match is a comparison of two models. E is the present worth of a bet of one euro.
    """
    of_best = matches_of_best(matches, verdict)
    figure = new_figure(4.2, 2.6)
    axes = figure.subplots()
    for match in of_best:
        people = np.concatenate([[0], np.cumsum(match.people)])
        euros = np.exp(np.minimum(match.log_e, 700))
        axes.step(people, euros, where="post", color=BLUE, lw=1)
        end = (people[-1], euros[-1])
        axes.annotate(match.model_b, end, xytext=(3, 0), textcoords="offset points", va="center")
    needed = (len(of_best) + 1) / alpha
    axes.axhline(needed, color=GREY, lw=0.8, ls="--")
    axes.annotate(f"{needed:g}", (0, needed), xytext=(0, 2), textcoords="offset points")
    label = f"E, euros: {of_best[0].model_a} beats …"
    axes.set(yscale="log", xlabel="participants", ylabel=label)
    axes.yaxis.set_major_formatter(lambda euros, _: f"{euros:g}")
    return figure
