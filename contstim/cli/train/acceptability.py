"""`contstim train acceptability`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contstim.cli.commands import as_command, field_options, option, settings_from
from contstim.cli.options import Quiet
from contstim.cli.output import print_table, remark, results_table
from contstim.cli.progress import training_progress
from contstim.models.training.settings import FINE_TUNING, AcceptabilitySettings, TrainingSettings
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.evaluation.acceptability.restarts import Spread


_OUT = Annotated[Path, typer.Option(help="The folder of the classifiers and their report.")]


def _command(*, out: Path, quiet: bool, **given: Any) -> None:
    """Fine-tune classifiers of acceptability, whose confidence scores sentences.

    Each restart is a folder (`restart-1`, …) with training.json and curve.png that loads as
    `classifier:DIR`. All have the same sentences; their seeds count up from --seed. Beside them:
    mean, standard deviation, maximum and majority of the restarts' Matthews correlation, every
    prediction, and a page (report.html, report.md). A training that was interrupted goes on by the
    same command.

    Example: `contstim train acceptability --data in_domain_train.tsv --evaluate in_domain_dev.tsv
    --base bert-base-cased --restarts 20 --out cola`
    """
    from contstim.evaluation.acceptability.restarts import (
        feature_spreads,
        judge,
        set_spreads,
        write_restarts,
    )
    from contstim.models.training.acceptability import train_classifiers

    settings = AcceptabilitySettings(
        training=replace(FINE_TUNING, **settings_from(TrainingSettings, given)),
        **settings_from(AcceptabilitySettings, given),
    )
    with training_progress(quiet=quiet) as progress:
        done, models, labelled = train_classifiers(
            settings, out, lambda number, now: progress(now, f"restart {number}")
        )
    sets = [judge(each.name, each.sentences, models, each.features) for each in labelled]
    seeds = list(done.seeds)
    write_restarts(out, sets, models, settings.files, base=settings.base, seeds=seeds)
    _show(set_spreads(sets), feature_spreads(sets))
    left_out = {missing.sentence for judged in sets for missing in judged.left_out}
    if left_out:
        remark(f"Too long: {counted(len(left_out), 'sentence')}; see left_out.csv.", quiet=quiet)
    remark(f"Load a classifier as {models[0].name}; read {out / 'report.html'}.", quiet=quiet)


def _show(rows: Sequence[Spread], features: Sequence[Spread]) -> None:
    """Print how well the restarts do in all, then by feature where there are features."""
    for about, spread in (("set", rows), ("feature", features)):
        names = ("sentences", "mean", "sd", "maximum", "majority")
        table = results_table(about, *names, title="Matthews correlation")
        for row in spread:
            values = (getattr(row, name) for name in names[1:])
            table.add_row(row.about, f"{row.sentences:,}", *(f"{value:.3f}" for value in values))
        if spread:
            print_table(table)


acceptability = as_command(
    _command,
    [
        *field_options(AcceptabilitySettings),
        *field_options(FINE_TUNING, leave_out=["weight_decay", "clip"]),
        option(
            "out",
            Annotated[Path, typer.Option(help="The folder of the classifiers and their report.")],
        ),
        option("quiet", Quiet, False),
    ],
    _command.__doc__ or "",
)
