"""`contstim plausibility`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from contstim.cli.options import Model, Quiet, Seed, Words
from contstim.cli.output import remark, results_table, terminal
from contstim.cli.progress import search_progress
from contstim.errors import InputError
from contstim.steps.constraints import AllowUnknown, WordSettings
from contstim.steps.loading import Loading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.jobs.executors import Executor
    from contstim.optimization.jobs.plausibility_curve import FloorPoint


def plausibility(
    *,
    model: Model,
    judge: Annotated[
        str | None,
        typer.Option(
            metavar="[NAME=]MODEL",
            help="The model that finds sentences plausible or not; by default each model, of the "
            "sentences that it accepts.",
        ),
    ] = None,
    sentences: Annotated[Path, typer.Option(help="Natural sentences, one a line, or a table.")],
    out: Annotated[Path, typer.Option(help="The table to write; figure and report stand beside.")],
    vocabulary: Words = None,
    floors: Annotated[
        str, typer.Option(help="Quantiles of natural sentences, set apart by commas.")
    ] = "none,.05,.1,.25,.5",
    per_pair: Annotated[
        int, typer.Option(help="Natural sentences for each pair of models at each floor.")
    ] = 10,
    recipe: Annotated[str, typer.Option(help="How to search: default or golan2023.")] = "default",
    allow_unknown: AllowUnknown = False,
    word_settings: WordSettings,
    executor: Annotated[
        Literal["local", "processes"], typer.Option(help="Search in this process or in several.")
    ] = "local",
    workers: Annotated[int | None, typer.Option(help="With processes: how many.")] = None,
    loading: Loading,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Show what a floor of plausibility costs, so that one can be chosen for `triplets`.

    The same searches at several floors: the mean drop and controversiality (Eq. 4, nats) that are
    left, and the plausibility that is reached, with 95 % intervals over triplets. Writes the table,
    and beside it a figure (PNG and PDF) and a report. Every triplet is kept in OUT.searches as it
    is found: what was killed goes on from there. With a judge the highest floor decides the
    sentences of all floors, so that another highest floor needs another OUT.

    Example: `contstim plausibility --model kenlm:bigram.arpa --model kenlm:trigram.arpa
    --judge kenlm:fourgram.arpa --sentences natural.txt --vocabulary vocab.txt --out curve.csv`
    """
    from contstim.jobs.executors import LocalExecutor, ProcessExecutor
    from contstim.models.origins import model_origins
    from contstim.models.specifications import parse_models
    from contstim.optimization.jobs.plan import SynthesisPlan
    from contstim.optimization.jobs.plausibility import Plausibility
    from contstim.optimization.jobs.plausibility_curve import FloorPoint, plausibility_curve
    from contstim.optimization.search.recipes import recipe_named
    from contstim.records import write_record
    from contstim.stimuli import read_stimuli
    from contstim.tables import columns_of, table_kind, write_table
    from contstim.vocabulary import Vocabulary

    table_kind(out)  # a name that no table can have is refused before any search
    quantiles = [Plausibility.parse(text.strip()).quantile for text in floors.split(",")]
    given = parse_models(model)
    judging = "" if judge is None else parse_models([judge])[0].specification
    study = SynthesisPlan(
        models=tuple(named.specification for named in given),
        sentences=tuple(read_stimuli(sentences)),
        vocabulary=None if vocabulary is None else Vocabulary.load(vocabulary),
        per_pair=per_pair,
        recipe=recipe,
        seed=seed,
        allow_unknown=allow_unknown,
        limits=word_settings.limits(),
        capitals=recipe_named(recipe).capitals,
    )
    context = loading.worker_context(study)

    def new_executor() -> Executor:
        if executor == "processes":
            return ProcessExecutor(workers)
        if workers not in (None, 1):
            raise InputError("--executor local has one worker; use processes for more.")
        return LocalExecutor()

    new_executor()  # refused now, not after the models are loaded
    with search_progress(quiet=quiet) as (say, progress):
        points = plausibility_curve(
            study,
            quantiles,
            judging,
            out.with_name(f"{out.stem}.searches"),
            new_executor,
            context,
            say=say,
            note=(lambda _text: None) if quiet else say,
            progress=progress,
        )
    write_table(out, columns_of(FloorPoint, points))
    facts = {
        "models": {named.name: named.specification for named in given},
        "judge": judging or "the model that accepts",
        "recipe": recipe,
        "seed": seed,
        "per_pair": per_pair,
    }
    _write_page(out, points, judge)
    origins = model_origins([*study.models, judging])
    facts["commits"] = origins.commits
    inputs = [sentences, vocabulary, *word_settings.files, *origins.files]
    write_record(out, inputs, **facts, points=[asdict(point) for point in points])
    remark(f"{out}: {len(points)} floors.", quiet=quiet)
    if not quiet:
        table = results_table("floor", "triplets", "Eq. 4", "drop", "plausibility", texts=1)
        for point in points:
            numbers = (point.controversiality, point.drop, point.plausibility)
            table.add_row(
                _name(point), f"{point.triplets:,}", *(f"{number:.2f}" for number in numbers)
            )
        terminal().print(table)


_ENOUGH = 10
_FEW = (
    f"Some floors have fewer than {_ENOUGH} triplets, so that their intervals are too narrow: give "
    "a larger --per-pair before you choose."
)
_ADVICE = (
    "In the 2023 study people agreed about synthetic pairs whose better sentence strong language "
    "models find plausible, up to the first quartile of natural sentences, and not about the most "
    "controversial ones. Between models of which neither is strong no such difference was seen: "
    "what an n-gram model finds plausible need not be a sentence. Read some of the results before "
    "you choose."
)
_OTHER_SENTENCES = (
    "Without --judge each floor starts from other natural sentences, those above it: a curve that "
    "rises says that these have more room to fall, not that the floor makes models disagree more."
)


def _name(point: FloorPoint) -> str:
    return f"{point.floor:g}" if point.floor else "none"


def _write_page(out: Path, points: Sequence[FloorPoint], judge: str | None) -> None:
    """The figure, and a report that says how to read it."""
    from contstim.files import write_text
    from contstim.reporting.canvas import BLUE, ORANGE, new_figure, save, styled
    from contstim.reporting.report import Heading, Paragraph, Picture, Report, Table

    by_floor = sorted(points, key=lambda point: point.floor)
    places = range(len(by_floor))
    with styled():
        figure = new_figure(5.0, 2.2)
        for axes, name, color, label in (
            (figure.add_subplot(1, 2, 1), "controversiality", BLUE, "controversiality (nats)"),
            (figure.add_subplot(1, 2, 2), "plausibility", ORANGE, "plausibility reached"),
        ):
            means, lows, highs = (
                [getattr(point, name + end) for point in by_floor] for end in ("", "_low", "_high")
            )
            below = [mean - low for mean, low in zip(means, lows, strict=True)]
            above = [high - mean for mean, high in zip(means, highs, strict=True)]
            axes.errorbar(places, means, yerr=[below, above], color=color, marker="o", capsize=2)
            axes.set_xticks(places, [_name(point) for point in by_floor])
            axes.set_xlabel("floor (quantile of natural sentences)")
            axes.set_ylabel(label)
            axes.set_ylim(bottom=0)
        image = save(figure, out.with_suffix(""))
    rows = [
        (
            _name(point),
            str(point.triplets),
            str(point.passed_over),
            *(
                f"{getattr(point, name):.2f} [{getattr(point, name + '_low'):.2f}, "
                f"{getattr(point, name + '_high'):.2f}]"
                for name in ("controversiality", "drop", "plausibility")
            ),
        )
        for point in by_floor
    ]
    by = judge or "the model that accepts a sentence"
    header = ("floor", "triplets", "passed over", "Eq. 4, nats", "drop, nats", "plausibility")
    report = Report(
        "What a floor of plausibility costs",
        (
            Paragraph(
                f"Plausibility is judged by {by}: the share of natural sentences with as many "
                f"words that are no likelier than a synthetic one. Means over triplets with 95 % "
                f"intervals; drop is for one sentence, and half of Eq. 4."
            ),
            Picture(out.stem, image, "Controversiality and plausibility against the floor"),
            Heading("Numbers"),
            Table(header, rows, texts=1),
            Paragraph(_ADVICE),
            *((Paragraph(_FEW),) if min(point.triplets for point in points) < _ENOUGH else ()),
            *(() if judge else (Paragraph(_OTHER_SENTENCES),)),
        ),
    )
    write_text(out.with_suffix(".html"), report.html())
