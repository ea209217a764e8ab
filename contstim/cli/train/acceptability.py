"""`contstim train acceptability`."""

from __future__ import annotations

from dataclasses import replace
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any

import typer

from contstim.cli.commands import as_command, option
from contstim.cli.options import Quiet
from contstim.cli.output import print_summary, remark
from contstim.cli.progress import training_progress
from contstim.models.training.settings import FINE_TUNING, AcceptabilitySettings
from contstim.steps.step import fields_of
from contstim.wording import counted

_OUT = Annotated[Path, typer.Option(help="The folder of the classifiers and their report.")]
_FIELDS = [
    each for each in fields_of(AcceptabilitySettings) if each.name not in ("weight_decay", "clip")
]


def _train(*, out: Path, quiet: bool, **given: Any) -> None:
    """Fine-tune classifiers of acceptability, whose confidence scores sentences.

    Each restart is a folder (`restart-1`, …) with training.json and curve.png that loads as
    `classifier:DIR`. All have the same sentences; their seeds count up from --seed. Beside them:
    mean, standard deviation, maximum and majority of the restarts' Matthews correlation, every
    prediction, and a page (report.html, report.md). A training that was interrupted goes on by the
    same command.

    Example: `contstim train acceptability --data in_domain_train.tsv --evaluate in_domain_dev.tsv
    --base bert-base-cased --restarts 20 --out cola`
    """
    from contstim.evaluation.folder import page_table, write_findings
    from contstim.evaluation.restarts import judge, restart_findings
    from contstim.models.training.acceptability import train_classifiers

    training = {each.name: given.pop(each.name) for each in _FIELDS if each.group}
    given["evaluate"] = tuple(given["evaluate"] or ())
    settings = AcceptabilitySettings(training=replace(FINE_TUNING, **training), **given)
    with training_progress(quiet=quiet) as progress:
        done, models, labelled = train_classifiers(
            settings, out, lambda number, now: progress(now, f"restart {number}")
        )
    sets = [judge(each.name, each.sentences, models, each.features) for each in labelled]
    findings = restart_findings(sets, models)
    facts = {"data_files": [path.name for path in settings.files], "base": settings.base}
    write_findings(findings, out, models=models, data=settings.files, seeds=[*done.seeds], **facts)
    for name in ("summary", "features"):
        if findings.tables[name]:
            print_summary("Matthews correlation", page_table(findings.tables[name]), ())
    left_out = {missing.sentence for judged in sets for missing in judged.left_out}
    if left_out:
        remark(f"Too long: {counted(len(left_out), 'sentence')}; see left_out.csv.", quiet=quiet)
    remark(f"Load a classifier as {models[0].name}; read {out / 'report.html'}.", quiet=quiet)


acceptability = as_command(
    _train,
    [
        *map(option, _FIELDS),
        Parameter("out", Parameter.KEYWORD_ONLY, annotation=_OUT),
        Parameter("quiet", Parameter.KEYWORD_ONLY, default=False, annotation=Quiet),
    ],
    _train.__doc__ or "",
)
