"""`contstim train acceptability`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contstim.cli.options import Device, Quiet, TrustRemoteCode
from contstim.cli.output import print_table, remark, results_table
from contstim.cli.progress import training_progress
from contstim.models.training.settings import FINE_TUNING, ClassifierSettings, TrainingSettings
from contstim.steps.training import Precision
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.evaluation.acceptability.restarts import Spread


def acceptability(
    data: Annotated[
        Path,
        typer.Option(
            help="Labelled sentences: CoLA's .tsv (source, label, mark, sentence), or a table with "
            "the columns label (1 or 0) and sentence."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The folder of the classifiers and their report.")],
    base: Annotated[
        str, typer.Option(help="What to fine-tune: a folder, or a name on the hub.")
    ] = ClassifierSettings.base,
    restarts: Annotated[
        int, typer.Option(min=1, help="How many classifiers to train, each from a new head.")
    ] = 1,
    evaluate: Annotated[
        list[Path] | None,
        typer.Option(
            help="Labelled sentences to judge, such as CoLA's development sets; repeatable. By "
            "default those that --validation kept apart."
        ),
    ] = None,
    annotations: Annotated[
        Path | None,
        typer.Option(
            help="Labelled sentences with a column of 1 and 0 for each feature, such as CoLA's "
            "grammatical annotations: results by feature."
        ),
    ] = None,
    epochs: Annotated[int, typer.Option(help="Passes over the text.")] = FINE_TUNING.epochs,
    batch_size: Annotated[int, typer.Option(help="Sentences a step.")] = FINE_TUNING.batch_size,
    learning_rate: Annotated[
        float, typer.Option(help="Its peak, after the warm-up.")
    ] = FINE_TUNING.learning_rate,
    warmup: Annotated[
        float, typer.Option(help="Share of the steps in which the learning rate rises.")
    ] = FINE_TUNING.warmup,
    validation: Annotated[
        float, typer.Option(help="Share of the sentences kept apart, the same for all restarts.")
    ] = FINE_TUNING.validation,
    patience: Annotated[
        int, typer.Option(help="Epochs in a row that may bring no better validation loss.")
    ] = FINE_TUNING.patience,
    seed: Annotated[
        int, typer.Option(help="Of the first restart, and of what is kept apart; counts up.")
    ] = FINE_TUNING.seed,
    device: Device = "auto",
    precision: Precision = "auto",
    trust_remote_code: TrustRemoteCode = False,
    quiet: Quiet = False,
) -> None:
    """Fine-tune classifiers of acceptability, whose confidence scores sentences.

    Each restart is a folder (`restart-1`, …) with training.json and curve.png that loads as
    `classifier:DIR`. Beside them: mean, standard deviation, maximum and majority of the restarts'
    Matthews correlation, every prediction, and a page (report.html, report.md). A training that
    was interrupted goes on by the same command.

    Example: `contstim train acceptability --data in_domain_train.tsv --evaluate in_domain_dev.tsv
    --base bert-base-cased --restarts 20 --out cola`
    """
    from contstim.evaluation.acceptability.restarts import (
        feature_spreads,
        judge,
        set_spreads,
        write_restarts,
    )
    from contstim.models.classifier.adapter import load_classifier
    from contstim.models.loading import Loading
    from contstim.models.training.acceptability import train_acceptability
    from contstim.models.training.cola import read_annotations, read_cola

    sentences = read_cola(data)
    test_sets = [(path.name, read_cola(path)) for path in evaluate or ()]
    annotated = None if annotations is None else read_annotations(annotations)
    settings = TrainingSettings(
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        warmup=warmup,
        validation=validation,
        patience=patience,
        seed=seed,
    )
    with training_progress(quiet=quiet) as progress:
        done = train_acceptability(
            sentences,
            out,
            restarts,
            ClassifierSettings(base=base),
            settings,
            device=device,
            precision=precision,
            trust_remote_code=trust_remote_code,
            on_progress=lambda number, now: progress(now, f"restart {number}"),
        )
    # The classifiers are read back from their folders: results are those of what users will load.
    folders = [training.out for training in done.trainings]
    loading = Loading(device=device, trust_remote_code=trust_remote_code)
    models = [
        load_classifier(str(folder), name=f"classifier:{folder}", loading=loading)
        for folder in folders
    ]
    sets = [
        judge(name, judged, models)
        for name, judged in test_sets or [("kept apart", [*done.validation])]
    ]
    if annotations is not None and annotated is not None:
        sets.append(judge(annotations.name, annotated.sentences, models, annotated.features))
    files = [path for path in (data, *(evaluate or ()), annotations) if path is not None]
    write_restarts(out, sets, models, files, base=base, seeds=list(done.seeds))
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
