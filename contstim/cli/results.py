"""Results of steps on standard output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from contstim.cli.output import names_for_tables, print_rows, print_sentences, remark, terminal
from contstim.wording import counted

if TYPE_CHECKING:
    from contstim.optimization.search.synthesize import SymmetricPair, Synthesis
    from contstim.steps.step import Outcome


def show_result(step: Any, outcome: Outcome[Any], *, quiet: bool) -> None:
    """Print what a step found, and say where the page is that it wrote."""
    if step.name == "synthesize" and not step.as_json:
        _synthesis(outcome.value)
    for part in outcome.shown:
        if isinstance(part, str):
            print(part)
        else:
            print_rows(part.header, part.rows, texts=part.texts)
    record = step.record_path()
    page = record.with_name("report.html") if record else None
    if page and page.is_file():
        remark(f"Everything is in {page.parent}/; open {page} in a browser.", quiet=quiet)
    # After everything is written and printed: the status is for scripts
    if step.name.startswith("reproduce") and any(
        said != ours for _, said, ours in outcome.value[1]
    ):
        raise typer.Exit(1)


def _synthesis(result: Synthesis | SymmetricPair) -> None:
    """A table of sentences and log-probabilities, why the search ended, and what it cost."""
    from contstim.optimization.search.synthesize import SymmetricPair

    names = names_for_tables(result.models)
    columns = [*names.values()]
    roles: tuple[str, ...] = ()
    if isinstance(result, SymmetricPair):
        climbs, about = result.climbs, f"Disagreement {result.disagreement:.2f} nats. "
        # Log-probabilities are models × sentences; a row of the table is a sentence. The first
        # climb scores model_2, which is to accept, before model_1.
        of_1, of_2 = zip(*result.log_probs, strict=True)
        second, first, *others = climbs[0].start.log_probs.tolist()
        rows = [
            ("natural", result.natural, (first, second, *others)),
            (f"{columns[0]} rejects", result.sentence_1, of_1),
            (f"{columns[1]} rejects", result.sentence_2, of_2),
        ]
    else:
        roles = result.roles
        climbs, about = (result.climb,), ""
        rows = [
            ("natural", result.natural, result.natural_log_probs),
            ("synthetic", result.synthetic, result.log_probs),
        ]
    print_sentences(result.natural, rows, names, roles)
    n_steps = sum(len(climb.steps) for climb in climbs)
    # A later start counts if a word was replaced from there; the first one counts always.
    starts = sum(len({0, *(step.round for step in climb.steps)}) for climb in climbs)
    visits = sum(climb.visits for climb in climbs)
    lines = [
        f"{about}Log-probabilities in nats. {counted(n_steps, 'word')} replaced in "
        f"{counted(visits, 'visit')} from {counted(starts, 'start')}; ended because "
        f"{climbs[-1].end}."
    ]
    if len(result.searches) > 1:
        vain = f", the last {result.in_vain} of which gained next to nothing"
        lines.append(
            f"This is the best of {len(result.searches)} searches{vain if result.in_vain else ''}; "
            f"{result.end_of_searches}."
        )
    lines += [
        f"{name} read {counted(cost.rows, 'sequence')} of {counted(cost.tokens, 'token')}."
        for name, cost in result.costs.items()
        if cost.rows
    ]
    for line in lines:
        terminal().print(line)
