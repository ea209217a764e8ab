"""Answers of people: read from a platform's data, or simulated."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from contstim.errors import InputError
from contstim.experiments.design.artificial import artificial_participants, simulate_responses
from contstim.experiments.platforms.registry import platform_named
from contstim.experiments.responses import origin_of, write_responses
from contstim.experiments.responses.alignment import keep_one
from contstim.experiments.responses.table import scale_of
from contstim.models.scoring import require_log_probabilities
from contstim.records import write_record
from contstim.scale import Scale
from contstim.scores import ScoreTable
from contstim.steps.settings_files import files_of_settings
from contstim.steps.simulation_settings import SimulationSettings
from contstim.steps.watching import SILENT
from contstim.stimuli import on_scale, read_trials, write_trials
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from contstim.experiments.platforms.platform import Platform
    from contstim.experiments.responses import Response
    from contstim.experiments.responses.alignment import Imported
    from contstim.steps.watching import Watcher

_DEFAULTS = SimulationSettings()


def import_responses(
    platform: Platform | str,
    files: Sequence[Path],
    trials: Path | None,
    out: Path,
    *,
    settings: Any = None,
    trials_out: Path | None = None,
    duplicates: Literal["all", "first", "last"] = "all",
    scale: Scale | None = None,
    watch: Watcher = SILENT,
) -> Imported:
    """Write what people answered on a platform as a table of responses.

    Args:
        platform: the platform or its name.
        files: its data; none for a platform whose settings say where they are.
        trials: what was shown; None with `trials_out`.
        out: the table of responses.
        settings: what the platform's reader takes; its defaults where None.
        trials_out: a table of trials to write, which are built from the data.
        duplicates: which of several ratings of a trial by a person are written.
        scale: of the answers, where the trials do not name it.
        watch: told what is done.

    Raises:
        InputError: the platform's data are not read, the trials come from two places or from
            none, a file cannot be read or written, or nothing tells choices from ratings.
    """
    place = platform_named(platform) if isinstance(platform, str) else platform
    if place is None or place.reader is None:
        raise InputError(f"{platform} is not a platform whose data are read.")
    if files and (trials is None) == (trials_out is None):
        raise InputError("Give either --trials, what was shown, or --trials-out, to have it built.")
    if settings is None:
        settings = place.reader.settings()
    shown = () if trials is None else read_trials(trials)
    if scale is not None:
        if trials is None:
            raise InputError("--scale is that of the trials that were shown: give --trials.")
        shown = on_scale(shown, scale)
    imported: Imported = place.reader.read(files, shown, settings)
    if duplicates != "all":
        imported = keep_one(imported, duplicates)
    if scale is None:
        # As people saw them: 2 is turned to 5 where sentence_2 stood left
        seen = (r.scale.mirrored(r.rating) if r.left == 2 else r.rating for r in imported.responses)
        scale = scale_of(f"{place.name}, from left to right,", imported.trials, seen)
    report, origin = imported.report, origin_of(imported.responses)
    read, written = files_of_settings(settings)
    inputs = [*files, trials, *read]
    facts = {
        "responses": report.responses,
        "participants": len(report.participants),
        "simulated_participants": origin.simulated,
        "scale": str(scale),
        "notes": list(imported.notes),
        "problems": [
            {"problem": str(f.problem), "participant": f.participant, "about": list(f.about)}
            for f in report.findings
        ],
    }
    if trials_out is not None:
        write_trials(trials_out, imported.trials)
        write_record(trials_out, inputs, **facts)
    write_responses(out, imported.responses)
    outputs = written if trials_out is None else [trials_out, *written]
    write_record(out, inputs, outputs, **facts)
    for note in imported.notes:
        watch.remark(note)
    watch.warn(origin.warning)
    return imported


def simulate_people(
    trials: Path,
    scores: Path,
    model: str,
    out: Path,
    *,
    settings: SimulationSettings = _DEFAULTS,
    seed: int = 0,
    answer: Callable[..., Sequence[Response]] | None = None,
    place: Mapping[str, object] | None = None,
    watch: Watcher = SILENT,
) -> Sequence[Response]:
    """Write what artificial participants answer, who follow a model with noise and lapses.

    Args:
        trials: of all groups.
        scores: log-probabilities of the trials' sentences, nats.
        model: a column of the scores.
        out: the table of responses.
        settings: how many participants there are, and how well they rate.
        seed: decides everything that is left to chance.
        answer: how participants (`ArtificialParticipants`) answer, with a keyword `progress` to
            tell how many of how many are done; by default without a study that is served.
        place: of the record: the server that they answered, and whether in a browser.
        watch: told what is done.

    Raises:
        InputError: a file cannot be read or written, the scores are not log-probabilities, or
            the noise cannot be calibrated.
    """
    require_log_probabilities(scores, [model], "A participant with noise in nats")
    # Noise and ceiling say the same in two ways: `people.noise` is the noise that was used, in nats
    people = artificial_participants(
        read_trials(trials),
        ScoreTable.read(scores),
        model,
        noise=settings.noise,
        ceiling=settings.ceiling,
        lapses=settings.lapses,
        seed=seed,
    )
    if answer is not None and people.scale is Scale.CHOICE:
        raise InputError(
            "The page that --server serves asks for confidence, and these trials ask for choices. "
            "Simulate without --server, or make the design with --scale confidence."
        )
    participants = settings.in_all(len(people.groups))
    with watch.working("participants") as progress:
        if answer is None:
            responses: Sequence[Response] = simulate_responses(people, participants)
        else:
            responses = answer(people, progress=progress)
    write_responses(out, responses)
    write_record(
        out,
        [trials, scores],
        model=model,
        scale=str(people.scale),
        participants=participants,
        noise_nats=people.noise,
        lapses=settings.lapses,
        seed=seed,
        **(place or {"server": None, "browser": False}),
    )
    watch.remark(
        f"{out}: {counted(len(responses), 'response')} of "
        f"{counted(participants, 'artificial participant')} who follow {model} "
        f"with noise of {people.noise:.3g} nats."
    )
    return responses
