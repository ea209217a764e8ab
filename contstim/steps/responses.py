"""Answers of people: read from a platform's data, or simulated."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from contstim.errors import InputError, WorkerError
from contstim.experiments.design.artificial import artificial_participants, simulate_responses
from contstim.experiments.platforms.platform import Reader, platform_named
from contstim.experiments.responses.alignment import keep_one
from contstim.experiments.responses.table import origin_of, scale_of, write_responses
from contstim.models.scoring import require_log_probabilities
from contstim.options import AnswerScale, Aside, Help, Reads, Seed, Writes
from contstim.scale import Scale
from contstim.scores import ScoreTable
from contstim.steps.simulation_settings import SimulationSettings
from contstim.steps.step import Outcome, Step, page_of, variant
from contstim.stimuli import on_scale, read_trials, write_trials
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contstim.experiments.platforms.platform import Platform
    from contstim.experiments.responses.alignment import Imported
    from contstim.experiments.responses.table import Response
    from contstim.reporter import Reporter

_DEFAULTS = SimulationSettings()


class ImportResponses(Step["Imported"], name="import"):
    """Write what people answered on a platform as a table of responses."""

    platform: ClassVar[str]
    reader: ClassVar[Reader[Any]]

    files: Annotated[tuple[Path, ...], Reads("Data of the platform.", argument=True)] = ()
    trials: Annotated[Path | None, Reads("What was shown: trials.csv.")] = None
    out: Annotated[Path, Writes("The table of responses to write.")]
    trials_out: Annotated[Path | None, Writes("The table of trials to write.")] = None
    settings: Any
    duplicates: Annotated[
        Literal["all", "first", "last"],
        Help("Of several ratings of a trial by a person: write all, the first, the last."),
    ] = "all"
    scale: AnswerScale = None

    def work(self, reporter: Reporter) -> Outcome[Imported]:
        """Read the data, and write the responses."""
        reader = self.reader
        if reader.files and not self.files:
            raise InputError(f"`files` names none; there are needed: {reader.files}")
        if len(self.files) > 1 and not reader.several:
            raise InputError(f"`files` names {len(self.files)}; a single one is read.")
        if reader.files and (self.trials is None) == (self.trials_out is None):
            raise InputError("Give either `trials`, what was shown, or `trials_out`.")
        shown = () if self.trials is None else read_trials(self.trials)
        scale = self.scale
        if scale is not None:
            if self.trials is None:
                raise InputError("`scale` is that of the trials that were shown: give `trials`.")
            shown = on_scale(shown, scale)
        imported = reader.read(self.files, shown, self.settings)
        if self.duplicates != "all":
            imported = keep_one(imported, self.duplicates)
        if scale is None:
            # As people saw them: 2 is turned to 5 where sentence_2 stood left
            seen = (
                r.scale.mirrored(r.rating) if r.left == 2 else r.rating for r in imported.responses
            )
            scale = scale_of(f"{self.platform}, from left to right,", imported.trials, seen)
        report, origin = imported.report, origin_of(imported.responses)
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
        if self.trials_out is not None:
            write_trials(self.trials_out, imported.trials)
        write_responses(self.out, imported.responses)
        for note in imported.notes:
            reporter.say(note)
        reporter.warn(origin.warning)
        return Outcome(imported, facts)


def import_step(platform: Platform | str) -> type[ImportResponses] | None:
    """The step that reads the data of a platform; None where they are not read."""
    place = platform_named(platform) if isinstance(platform, str) else platform
    if place is None or place.reader is None:
        return None
    reader = place.reader
    lacking = {
        "files": not reader.files,
        "trials": not reader.files,
        "trials_out": not reader.builds_trials,
        "duplicates": not (reader.files and reader.several),
    }
    step = variant(
        ImportResponses,
        f"import {place.name}",
        page_of(reader.read),
        leave_out=frozenset(name for name, lacks in lacking.items() if lacks),
        settings=reader.settings,
    )
    step.platform, step.reader = place.name, reader
    return step


class SimulateResponses(
    Step["Sequence[Response]"],
    name="simulate",
    kept="Answers to a served study are kept beside the table.",
):
    """Let artificial participants rate an experiment: a model, plus noise and lapses.

    What comes out should name that model. With `--server` they take part in a running study; every
    answer is kept here too until all is done, so that an interrupted run goes on where it stopped.

    Example: `contstim simulate --trials trials.csv --scores trial-scores.csv
    --model kenlm:trigram.arpa --participants 100 --out responses.csv`
    """

    trials: Annotated[Path, Reads("The table of trials, from `design`.")]
    scores: Annotated[Path, Reads("Scores of the trials' sentences, from `score`.")]
    model: Annotated[str, Help("Whom participants follow: a column of the scores.", metavar="NAME")]
    out: Annotated[Path, Writes("The table of responses to write.")]
    settings: SimulationSettings = _DEFAULTS
    server: Annotated[
        str | None, Help("Take part in the study that `collect` serves at this address.")
    ] = None
    browser: Annotated[
        bool, Help("With --server: go through the page itself, in Chromium (Playwright).")
    ] = False
    at_once: Annotated[int, Aside("With --server: participants at the same time.", at_least=1)] = 50
    pause: Annotated[float, Aside("With --server: seconds between two answers.", at_least=0)] = 0.0
    patience: Annotated[
        float, Aside("With --server: seconds of silence before giving up.", at_least=1)
    ] = 300.0
    seed: Seed = 0

    def work(self, reporter: Reporter) -> Outcome[Sequence[Response]]:
        """Let them answer, and write the table."""
        require_log_probabilities(self.scores, [self.model], "A participant with noise in nats")
        # Noise and ceiling say the same in two ways: `people.noise` is the noise in nats
        people = artificial_participants(
            read_trials(self.trials),
            ScoreTable.read(self.scores),
            self.model,
            noise=self.settings.noise,
            ceiling=self.settings.ceiling,
            lapses=self.settings.lapses,
            seed=self.seed,
        )
        answer = self._answer()
        if answer is not None and people.scale is Scale.CHOICE:
            raise InputError(
                "The page that `server` serves asks for confidence, and these trials ask for "
                "choices. "
                "Simulate without `server`, or make the design with `scale` confidence."
            )
        participants = self.settings.in_all(len(people.groups))
        progress = partial(reporter.progress, "participants")
        responses = (
            simulate_responses(people, participants)
            if answer is None
            else answer(people, progress=progress)
        )
        write_responses(self.out, responses)
        reporter.say(
            f"{self.out}: {counted(len(responses), 'response')} of "
            f"{counted(participants, 'artificial participant')} who follow {self.model} "
            f"with noise of {people.noise:.3g} nats."
        )
        facts = {
            "scale": str(people.scale),
            "participants": participants,
            "noise_nats": people.noise,
            "lapses": self.settings.lapses,
            "model": self.model,
            "seed": self.seed,
            "server": self.server,
            "browser": self.browser,
        }
        # Only now: before the table is written, the journal is all there is
        if self.server is not None:
            self._journal.unlink(missing_ok=True)
        return Outcome(responses, facts)

    @property
    def _journal(self) -> Path:
        """File of answers to a served study as they come."""
        return Path(f"{self.out}.journal")

    def _answer(self) -> Callable[..., Sequence[Response]] | None:
        """Function by which participants answer a study that is served; None without a server."""
        if self.server is None:
            if self.browser:
                raise InputError("`browser` opens the page of a running study: give `server`.")
            return None
        groups = {trial.group for trial in read_trials(self.trials)}
        number = self.settings.in_all(len(groups))
        if self.browser:
            from contstim.testing.browser import take_part_in_browser

            return partial(
                take_part_in_browser,
                url=self.server,
                participants=number,
                patience=self.patience,
            )
        try:
            from contstim.testing.participants import RunSettings, take_part
        except ModuleNotFoundError as error:
            raise WorkerError(
                f"`server` needs {error.name}, which is not installed: pip install "
                "'contstim[collect]'."
            ) from error
        run = RunSettings(
            self.server, number, self.at_once, self.pause, self.patience, str(self.trials)
        )
        return partial(take_part, settings=run, journal=self._journal)
