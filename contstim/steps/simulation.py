"""Simulated participants: power of an experiment, and responses of artificial participants."""

from __future__ import annotations

from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from contstim.errors import InputError, needing
from contstim.experiments.analysis import SMALLEST_EFFECT
from contstim.experiments.design.artificial import (
    artificial_answers,
    artificial_participants,
    simulate_responses,
)
from contstim.experiments.design.calibration import MeasuredPeople, read_measured
from contstim.experiments.design.population import ANSWERS, PUBLISHED_CEILING, PUBLISHED_RATERS
from contstim.experiments.design.power import DesignPower, design_power
from contstim.experiments.design.power_report import (
    ALTERNATIVE,
    power_figure,
    power_report,
    power_table,
    size_table,
)
from contstim.experiments.responses.questionnaire import (
    questions_beside,
    read_questions,
    write_answers,
)
from contstim.experiments.responses.table import write_responses
from contstim.files.files import write_text
from contstim.files.tables import write_table
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import Condition, read_trials
from contstim.models.scoring import require_log_probabilities
from contstim.options import Aside, Help, Reads, Seed, Share, Writes, WritesTable
from contstim.reporting.canvas import write_figure
from contstim.reporting.report import Picture
from contstim.steps.fields import TRIALS, TrialScores
from contstim.steps.step import Outcome, Step
from contstim.wording import quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contstim.experiments.design.artificial import ArtificialParticipants
    from contstim.experiments.responses.table import Response
    from contstim.reporter import Reporter


class SimulatePower(Step[DesignPower], name="power", version=2):
    """Simulate an experiment with new people and items, to estimate its power to compare models.

    Writes a report (`….power.md`) and a figure. The table `….power.csv` shows how often each
    difference between models is significant. The table `….power-sizes.csv` is about experiments of
    other sizes.

    Example: `contstim power --trials trials.csv --scores trial-scores.csv --out trials.csv`
    """

    trials: Annotated[Path, TRIALS]
    scores: TrialScores
    out: Annotated[
        Path,
        Writes(
            "Beginning of the names of output files.",
            beside=(".power.csv", ".power-sizes.csv", ".power.md", ".power.png"),
            stem=True,
            name="trials.csv",
        ),
    ]
    participants: Annotated[int, Help("Participants per group.", at_least=1)] = ANSWERS
    power_groups: Annotated[
        int | None, Help("Number of groups; by default the groups of the trials.", at_least=1)
    ] = None
    ceiling: Annotated[
        float | None,
        Help(
            "Lower noise ceiling: how often a person agrees with the majority of the others. By "
            "default, the ceiling of the 2023 study (Golan et al.); with --pilot, of the pilot.",
            above=0.5,
            below=1,
        ),
    ] = None
    pilot: Annotated[
        Path | None,
        Aside(
            "Folder of `analyze` with the results of a pilot study. Simulated participants are "
            "calibrated to these results.",
            folder=True,
        ),
    ] = None
    smallest_effect: Annotated[
        float, Share("Smallest difference between two accuracies that is of interest.")
    ] = SMALLEST_EFFECT
    simulations: Annotated[
        int,
        Help(
            "Number of simulated experiments for each model. Their participants follow this model.",
            at_least=1,
        ),
    ] = 1000
    seed: Seed = 0

    def check(self) -> None:
        """Check that the folder of `pilot`, if it is set, has the required tables."""
        self.measured()

    def further_reads(self) -> list[Path]:
        """Return the tables of a pilot."""
        if self.pilot is None:
            return []
        return [self.pilot / "tables" / f"{name}.csv" for name in ("models", "groups")]

    def work(self, reporter: Reporter) -> Outcome[DesignPower]:
        """Simulate experiments, and write their power."""
        scores = ScoreTable.from_file(self.scores)
        require_log_probabilities(self.scores, scores.models, "A simulation with noise in nats")
        power = design_power(
            read_trials(self.trials),
            scores,
            measured=self.measured(),
            groups=self.power_groups,
            participants=self.participants,
            simulations=self.simulations,
            smallest_effect=self.smallest_effect,
            seed=self.seed,
            progress=partial(reporter.progress, "simulating"),
        )
        table, sizes, report, figure = self.writes()
        picture = Picture(figure.stem, b"", ALTERNATIVE)
        write_text(report, power_report(power, picture).markdown())
        write_table(table, power_table(power))
        write_table(sizes, size_table(power))
        write_figure(partial(power_figure, power), figure)
        for caution in power.cautions:
            reporter.warn(caution)
        return Outcome(power, {"seed": self.seed})

    def measured(self) -> MeasuredPeople:
        """Return the measurements to which simulated participants are calibrated.

        Raises:
            InputError: if a table in the folder of the pilot is missing or damaged.
        """
        # `ceiling` has priority over the pilot, and the pilot has priority over the 2023 study
        measured = MeasuredPeople() if self.pilot is None else read_measured(self.pilot)
        return measured if self.ceiling is None else measured.with_random(self.ceiling)


# If there are fewer random pairs, a warning says that the calibrated noise is inaccurate. In a
# test, noise was calibrated on 200 random draws of pairs from 343 or 1,485 natural sentences. The
# ratio of the 95th to the 5th percentile of the noise depended on the number of pairs in a draw.
# It was 6 to 7 with 3 pairs, up to 2.8 with 10 pairs, and 2 with 20 pairs
_MIN_PAIRS = 10


class SimulateResponses(Step["Sequence[Response]"], name="simulate"):
    """Simulate the responses of artificial participants, who follow a model with noise and lapses.

    An analysis of the responses should identify this model. Lapses are random answers. With
    `--server`, the artificial participants take part in a running study. Every answer is also saved
    on this machine, so that an interrupted run continues where it stopped.

    Example: `contstim simulate --trials trials.csv --scores trial-scores.csv
    --model kenlm:trigram.arpa --participants 100 --out responses.csv`
    """

    saved_results = "Answers to a served study are saved next to the table."
    trials: Annotated[Path, TRIALS]
    scores: TrialScores
    model: Annotated[
        str,
        Help(
            "Model that participants follow. It must be a column of the scores.",
            metavar="NAME",
            content="model names",
        ),
    ]
    questions: Annotated[
        Path | None,
        Reads(
            "Table of questions that participants also answer; the answers are written to "
            "OUT.questions.csv.",
            kind="questions",
        ),
    ] = None
    out: Annotated[Path, WritesTable("The table to write.", kind="responses", name="responses.csv")]
    participants: Annotated[
        int | None,
        Help(
            "Total number of participants. By default, 10 for each group; in a study, the number "
            "that the section [power] plans.",
            at_least=1,
            kind="planned participants",
        ),
    ] = None
    noise: Annotated[
        float | None,
        Help("Standard deviation of noise, nats; by default calibrated to --ceiling.", at_least=0),
    ] = None
    ceiling: Annotated[
        float,
        Help(
            "Lower noise ceiling: how often one of ten raters agrees with the majority of the "
            "others, on random natural pairs.",
            above=0.5,
            below=1,
        ),
    ] = PUBLISHED_CEILING
    lapses: Annotated[float, Share("Proportion of trials answered at random.")] = 0.02
    server: Annotated[
        str | None, Help("Address of a study of `collect --rehearsal` to take part in.")
    ] = None
    browser: Annotated[bool, Help("With --server: use Chromium (Playwright).")] = False
    at_once: Annotated[int, Aside("With --server: simultaneous participants.", at_least=1)] = 50
    pause: Annotated[float, Aside("With --server: seconds between two answers.", at_least=0)] = 0.0
    patience: Annotated[
        float, Aside("With --server: time limit for a reply of the server, seconds.", at_least=1)
    ] = 300.0
    seed: Seed = 0

    def writes(self) -> tuple[Path, ...]:
        """Return the table, and the table of answers to questions if there are questions."""
        return (self.out, *([questions_beside(self.out)] if self.questions else []))

    def work(self, reporter: Reporter) -> Outcome[Sequence[Response]]:
        """Simulate the answers, and write the table."""
        require_log_probabilities(self.scores, [self.model], "A participant with noise in nats")
        trials = read_trials(self.trials)
        random = sum(trial.condition is Condition.RANDOM_NATURAL for trial in trials)
        if self.noise is None and 0 < random < _MIN_PAIRS:
            times = "a third or three times" if random < 5 else "half or twice"
            reporter.warn(
                f"noise is calibrated on {quantity(random, 'random natural pair')} only. "
                f"With other pairs, the noise may be {times} as large. Use at least {_MIN_PAIRS} "
                "random pairs (`random_per_group` of the design), or set `noise` in nats."
            )
        people = artificial_participants(
            trials,
            ScoreTable.from_file(self.scores),
            self.model,
            noise=self.noise,
            ceiling=self.ceiling,
            lapses=self.lapses,
            seed=self.seed,
        )
        participants = self.participants or len(people.groups) * PUBLISHED_RATERS
        responses = self._answers(people, participants, partial(reporter.progress, "participants"))
        write_responses(self.out, responses)
        if self.questions is not None:
            questions = read_questions(self.questions)
            people_of = enumerate(dict.fromkeys(response.participant for response in responses), 1)
            answers = (
                artificial_answers(questions, who, number=n, seed=self.seed) for n, who in people_of
            )
            write_answers(questions_beside(self.out), [*chain.from_iterable(answers)])
        reporter.say(
            f"{self.out}: {quantity(len(responses), 'response')} of "
            f"{quantity(participants, 'artificial participant')} who follow {self.model} "
            f"with noise of {people.noise:.3g} nats."
        )
        facts = {
            "scale": str(people.scale),
            "participants": participants,
            "noise_nats": people.noise,
            "lapses": self.lapses,
            "model": self.model,
            "seed": self.seed,
            "server": self.server,
            "browser": self.browser,
        }
        # The journal is not needed any more, because the table has all its answers
        if self.server is not None:
            self._journal.unlink(missing_ok=True)
        return Outcome(responses, facts)

    @property
    def _journal(self) -> Path:
        """Path of the file that saves answers to a served study during the run."""
        return Path(f"{self.out}.journal")

    def _answers(
        self, people: ArtificialParticipants, number: int, progress: Callable[[int, int], None]
    ) -> Sequence[Response]:
        if self.server is None:
            if self.browser:
                raise InputError(
                    "`browser` needs `server`, the address of a running study. Set both, or "
                    "neither."
                )
            return simulate_responses(people, number)
        if self.browser:
            from contstim.testing.browser import take_part_in_browser

            return take_part_in_browser(
                people, self.server, number, patience=self.patience, progress=progress
            )
        with needing("collect", "`server`"):
            from contstim.testing.participants import RunSettings, take_part
        run = RunSettings(
            self.server, number, self.at_once, self.pause, self.patience, str(self.trials)
        )
        return take_part(people, run, journal=self._journal, progress=progress)
