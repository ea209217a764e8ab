"""`contstim import …`: from a platform's data to responses.csv."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from contstim.cli.options import Quiet
from contstim.cli.output import remark
from contstim.errors import InputError

if TYPE_CHECKING:
    from contstim.experiments.responses.alignment import Imported

app = typer.Typer(help="Make responses.csv from the data of a platform.", no_args_is_help=True)

Out = Annotated[Path, typer.Option(help="The table of responses to write.")]
TrialsOut = Annotated[Path | None, typer.Option(help="The table of trials to write.")]
Duplicates = Annotated[
    Literal["all", "first", "last"],
    typer.Option(help="Of several ratings of a trial by a person: write all, the first, the last."),
]
_PUBLISHED = "The folder with `contstimlang` and `contstimlang-fork`."


@app.callback()
def _import() -> None:
    """Make responses.csv from the data of a platform."""


@app.command("gorilla")
def gorilla(
    files: Annotated[list[Path], typer.Argument(help="CSV exports of one experiment.")],
    out: Out,
    trials: Annotated[Path | None, typer.Option(help="What was shown: trials.csv.")] = None,
    trials_out: TrialsOut = None,
    scores: Annotated[
        Path | None,
        typer.Option(help="With --trials-out: scores, to tell which sentence a model rejects."),
    ] = None,
    options: Annotated[
        Path | None, typer.Option(help="Which columns hold what: TOML or JSON, see the docs.")
    ] = None,
    duplicates: Duplicates = "all",
    quiet: Quiet = False,
) -> None:
    """Read exports of Gorilla's task builders: a row for each event, ratings by button.

    With `--trials`, ratings are matched with the trials and brought into their canonical order.
    Without, `--trials-out` writes the trials that the export itself describes. What does not fit is
    listed by name; nothing is dropped in silence.

    Example: `contstim import gorilla data_exp_1-v2_task-ab12.csv --trials trials.csv
    --out responses.csv`
    """
    from contstim.experiments.platforms.gorilla.columns import GorillaOptions
    from contstim.experiments.platforms.gorilla.reading import import_gorilla
    from contstim.scores import ScoreTable
    from contstim.stimuli import read_trials

    if (trials is None) == (trials_out is None):
        raise InputError("Give either --trials, what was shown, or --trials-out, to have it built.")
    found = import_gorilla(
        files,
        trials=None if trials is None else read_trials(trials),
        scores=None if scores is None else ScoreTable.read(scores),
        options=None if options is None else GorillaOptions.read(options),
    )
    _write(found, out, trials_out, duplicates, quiet=quiet)


@app.command("jspsych")
def jspsych(
    files: Annotated[list[Path], typer.Argument(help="CSV, JSON, or JSON lines.")],
    trials: Annotated[Path, typer.Option(help="What was shown: trials.csv.")],
    out: Out,
    duplicates: Duplicates = "all",
    quiet: Quiet = False,
) -> None:
    """Read data of a jsPsych page: trials with trial_id, left, rating (or response) and rt.

    A file that names no participant is one participant.

    Example: `contstim import jspsych data/*.json --trials trials.csv --out responses.csv`
    """
    from contstim.experiments.platforms.jspsych.reading import import_jspsych
    from contstim.stimuli import read_trials

    _write(import_jspsych(files, read_trials(trials)), out, None, duplicates, quiet=quiet)


@app.command("pcibex")
def pcibex(
    files: Annotated[list[Path], typer.Argument(help="Results as downloaded.")],
    trials: Annotated[Path, typer.Option(help="What was exported: trials.csv.")],
    out: Out,
    selector: Annotated[str, typer.Option(help="The Selector that took the rating.")] = "rating",
    duplicates: Duplicates = "all",
    quiet: Quiet = False,
) -> None:
    """Read results of PCIbex: those of the script that `contstim export pcibex` wrote.

    Example: `contstim import pcibex results.csv --trials trials.csv --out responses.csv`
    """
    from contstim.experiments.platforms.pcibex.reading import import_pcibex
    from contstim.stimuli import read_trials

    found = import_pcibex(files, read_trials(trials), selector=selector)
    _write(found, out, None, duplicates, quiet=quiet)


@app.command("psychopy")
def psychopy(
    files: Annotated[list[Path], typer.Argument(help="CSV files, one for each participant.")],
    trials: Annotated[Path, typer.Option(help="What was exported: trials.csv.")],
    out: Out,
    component: Annotated[
        str, typer.Option(help="The Keyboard, Mouse or Slider that took the rating.")
    ] = "rating",
    duplicates: Duplicates = "all",
    quiet: Quiet = False,
) -> None:
    """Read data of PsychoPy or Pavlovia, collected with exported conditions files.

    Example: `contstim import psychopy data/*.csv --trials trials.csv --out responses.csv`
    """
    from contstim.experiments.platforms.psychopy.reading import import_psychopy
    from contstim.stimuli import read_trials

    found = import_psychopy(files, read_trials(trials), component=component)
    _write(found, out, None, duplicates, quiet=quiet)


@app.command("qualtrics")
def qualtrics(
    files: Annotated[list[Path], typer.Argument(help="CSV exports with numeric values.")],
    trials: Annotated[Path, typer.Option(help="What was exported: trials.csv.")],
    key: Annotated[Path, typer.Option(help="key.csv of the export.")],
    out: Out,
    participant: Annotated[str, typer.Option(help="The column that names people.")] = "ResponseId",
    duplicates: Duplicates = "all",
    quiet: Quiet = False,
) -> None:
    """Read data of Qualtrics, collected with an exported survey.

    Example: `contstim import qualtrics data.csv --key qualtrics/key.csv --trials trials.csv
    --out responses.csv`
    """
    from contstim.experiments.platforms.qualtrics.reading import import_qualtrics
    from contstim.stimuli import read_trials

    found = import_qualtrics(files, read_trials(trials), key, participant=participant)
    _write(found, out, None, duplicates, quiet=quiet)


@app.command("collected")
def collected(
    database: Annotated[Path, typer.Argument(help="The database of `collect`, or a backup.")],
    trials: Annotated[Path, typer.Option(help="What was shown: trials.csv.")],
    out: Out,
    quiet: Quiet = False,
) -> None:
    """Read the database of `contstim collect`, whether its server runs or not.

    Example: `contstim import collected experiment.sqlite --trials trials.csv --out responses.csv`
    """
    from contstim.experiments.collection.exports import collected_responses
    from contstim.experiments.responses.alignment import Imported
    from contstim.stimuli import read_trials

    found = Imported(read_trials(trials), collected_responses(database), (), ())
    _write(found, out, None, "all", quiet=quiet)


@app.command("golan2023")
def golan2023(
    data: Annotated[Path, typer.Option(help=_PUBLISHED)],
    out: Out,
    trials_out: TrialsOut = None,
    scores_out: Annotated[
        Path | None, typer.Option(help="The published scores of its sentences, to write.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Rebuild experiment 1 of the 2023 study: 16,500 ratings of 100 participants.

    Example: `contstim import golan2023 --data data --out responses.csv --trials-out trials.csv
    --scores-out scores.csv`
    """
    from contstim.experiments.reproduce.golan2023_data import read_experiment
    from contstim.experiments.reproduce.published.scores import read_stimulus_scores
    from contstim.experiments.responses.alignment import Imported

    folder = data / "contstimlang"
    trials, responses = read_experiment(folder, data / "contstimlang-fork" / "data")
    if scores_out is not None:
        read_stimulus_scores(folder).write(scores_out)
    _write(Imported(trials, responses, (), ()), out, trials_out, "all", quiet=quiet)


def _write(
    found: Imported,
    out: Path,
    trials_out: Path | None,
    duplicates: Literal["all", "first", "last"],
    *,
    quiet: bool,
) -> None:
    """Write what was found with its record, and print every problem."""
    from contstim.experiments.responses import origin_of, write_responses
    from contstim.experiments.responses.alignment import keep_one
    from contstim.records import write_record
    from contstim.stimuli import write_trials

    if duplicates != "all":
        found = keep_one(found, duplicates)
    report, origin = found.report, origin_of(found.responses)
    facts = {
        "responses": report.responses,
        "participants": len(report.participants),
        "simulated_participants": origin.simulated,
        "notes": list(found.notes),
        "problems": [
            {"problem": str(f.problem), "participant": f.participant, "about": list(f.about)}
            for f in report.findings
        ],
    }
    if trials_out is not None:
        write_trials(trials_out, found.trials)
        write_record(trials_out, **facts)
    write_responses(out, found.responses)
    write_record(out, **facts)
    for note in found.notes:
        remark(note, quiet=quiet)
    if origin.warning:
        remark(f"warning: {origin.warning}")
    print(report)
