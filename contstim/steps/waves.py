"""Trials of waves of participants: verdict so far, and new items for the open matches."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from contstim.errors import InputError
from contstim.experiments.analysis.e_values import (
    Answer,
    Verdict,
    answers_of,
    further_people,
    matches_of,
    read_answers,
    verdict_of,
)
from contstim.experiments.design.waves import (
    TooFewItemsError,
    Wave,
    WaveRules,
    design_wave,
    read_waves,
)
from contstim.experiments.responses.admission import Exclusions, admit
from contstim.experiments.responses.alignment import Imported, keep_one
from contstim.experiments.responses.table import read_responses, write_responses
from contstim.files.tables import columns_of, write_table
from contstim.items.reviews import read_reviews
from contstim.items.stimuli import read_stimuli, read_trials, read_triplets, trial_columns
from contstim.options import Help, Reads, Seed, WritesTable, reads_kind
from contstim.steps.design import TrialsStep
from contstim.steps.fields import Reviews
from contstim.steps.platforms import data_files, import_step
from contstim.steps.step import Outcome
from contstim.steps.verdict import write_matches
from contstim.wording import quantity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contstim.experiments.responses.table import Response
    from contstim.items.stimuli import Trial, Triplet
    from contstim.reporter import Reporter


TRIALS_OF_WAVES = "waves/trials.csv"
"""Path of the table in the results of a study."""


class DesignWaves(TrialsStep[Verdict], name="waves"):
    """Design the next wave of participants, with new items for the models that are not beaten yet.

    Without answers, this is wave 1. When all participants of a wave have finished, the same command
    computes the verdict from all answers (see `contstim verdict`), and adds the trials of the next
    wave to the table. Designed waves do not change any more. `….waves.csv` lists the waves,
    `….wave.csv` has the trials of the last wave alone, `….verdict.csv` the matches, and
    `….answers.csv` the answers in the format of `contstim verdict`.

    Examples: `contstim waves --triplets triplets.csv --sentences natural.txt --out trials.csv`

    `contstim waves --triplets triplets.csv --sentences natural.txt --data responses.csv
    --out trials.csv`
    """

    out: Annotated[
        Path,
        WritesTable(
            "The table of trials of all waves.",
            beside=(
                ".waves.csv",
                ".wave.csv",
                ".answers.csv",
                ".verdict.csv",
                ".verdict.csv.png",
            ),
            kind="trials",
            name=TRIALS_OF_WAVES,
        ),
    ]
    responses_out: Annotated[
        Path | None, WritesTable("The table of all responses to write.", kind="responses")
    ] = None
    triplets: Annotated[Path, reads_kind("Triplets, in an order of their own.", "triplets")]
    sentences: Annotated[
        Path | None, reads_kind("Natural sentences for catch trials.", "sentences")
    ] = None
    first: Annotated[
        Path | None, reads_kind("Trials of wave 1, from `design`; by default new items.", "trials")
    ] = None
    data: Annotated[
        tuple[Path, ...], Reads("Answers so far: files, or folders of files.", folder=True)
    ] = ()
    platform: Annotated[
        str, Help("Platform that wrote the answers, as in `import`; by default a table.")
    ] = ""
    rules: WaveRules = WaveRules()
    exclusions: Exclusions = Exclusions()
    catch_per_group: Annotated[int, Help("Catch trials for each participant.", at_least=0)] = 4
    seed: Seed = 0
    review: Reviews = ()

    leave_out = frozenset({"partial"})

    def check(self) -> None:
        """Check the platform, and that catch trials and rules have their files."""
        if self.exclusions.require and self.exclusions.participants is None:
            raise InputError("`require` needs `participants`. Set both, or neither.")
        if self.catch_per_group and self.sentences is None:
            raise InputError(
                "Catch trials need natural sentences. Set `sentences`, or set `catch_per_group` "
                "to 0."
            )
        if self.platform and import_step(self.platform) is None:
            raise InputError(f"`platform`: {self.platform} has no `import`.")

    def work(self, reporter: Reporter) -> Outcome[Verdict]:
        """Compute the verdict, and design the next wave if the last one is complete."""
        names = [*dict.fromkeys(m for t in self._triplets for m in (t.model_1, t.model_2))]
        waves, trials = self._stored()
        if not waves:
            waves, trials = self._first(names)
        responses = self._responses(trials, reporter)
        if not responses and len(waves) == 1:
            waves, trials = self._first(names)
        admission = admit(trials, responses, exclusions=self.exclusions) if responses else None
        admitted = () if admission is None else admission.responses
        answers = [*answers_of(trials, admitted)]
        matches = matches_of(answers, names)
        verdict = verdict_of(matches, self.rules.alpha, self.rules.margin)
        further = further_people(matches, verdict, self.rules.alpha)
        finished = _finished(trials, responses)
        last = waves[-1]
        of_last = [g for g in finished.values() if last.first_list <= g <= last.last_list]
        wanted = min(last.people, self.rules.people_per_wave)
        people = max(sum(wave.people for wave in waves), len(finished))
        is_over = not verdict.open or not self.rules.lists(people)
        missing, needed = "", 0
        if len(of_last) >= wanted and not is_over:
            try:
                new = self._design(verdict.open, trials, people)
                waves.append(Wave.of(last.wave + 1, new, self._people(people)))
                trials += new
            except TooFewItemsError as error:
                missing, needed = str(error), error.needed
        # The waves come first: a wave without trials is ignored if the process is killed here
        write_table(Path(f"{self.out}.waves.csv"), columns_of(Wave, waves))
        write_table(self.out, trial_columns(trials))
        write_table(Path(f"{self.out}.wave.csv"), trial_columns(waves[-1].trials_of(trials)))
        write_table(Path(f"{self.out}.answers.csv"), columns_of(Answer, answers))
        if self.responses_out is not None:
            write_responses(self.responses_out, responses)
        parts = write_matches(matches, verdict, self.rules.alpha, Path(f"{self.out}.verdict.csv"))
        status = missing or self._status(waves[-1], verdict, len(of_last), wanted, is_over)
        reporter.say(f"{self.out}: {status}")
        excluded = {} if admission is None else admission.excluded
        if admission is not None:
            reporter.warn(admission.origin.warning)
        found = Counter((t.model_1, t.model_2) for t in self._triplets)
        facts: dict[str, Any] = {
            **asdict(self.rules),
            "compared_models": names,
            "waves": [asdict(wave) for wave in waves],
            "history": history_of(waves, answers, names, self.rules),
            "finished": len(finished),
            "excluded": len(excluded.keys() & finished.keys()),
            "further_people": further,
            "verdict": verdict.text if responses else "",
            "status": status,
            "is_over": is_over,
            "triplets_per_pair": needed or max(found.values()),
            "seed": self.seed,
        }
        parts = parts if responses else []
        return Outcome(verdict, facts, complete=not missing, parts=parts)

    @cached_property
    def _triplets(self) -> Sequence[Triplet]:
        return read_triplets(self.triplets)

    @cached_property
    def _is_rejected(self) -> Mapping[str, bool]:
        """Triplet → whether it was rejected; without triplets that await a decision."""
        if not self.review:
            return {}
        review = read_reviews(self.review)
        items = (item for last in review.last_decisions.values() for item in last)
        names = {name for item in items for name in (item.item_id, item.source_id)}
        return {name: name in review.rejected for name in names}

    @property
    def _undecided_ids(self) -> list[str]:
        """Identifiers of triplets that await a reviewer's decision."""
        names = (triplet.triplet_id for triplet in self._triplets)
        return [name for name in names if self.review and name not in self._is_rejected]

    def _people(self, people: int) -> int:
        return min(self.rules.people_per_wave, self.rules.max_people - people)

    def _stored(self) -> tuple[list[Wave], list[Trial]]:
        """Return the waves that an earlier run designed, and their trials."""
        table = Path(f"{self.out}.waves.csv")
        if not (table.is_file() and self.out.is_file()):
            return [], []
        trials = list(read_trials(self.out))
        last = max(trial.group for trial in trials)
        waves = [wave for wave in read_waves(table) if wave.last_list <= last]
        for wave in waves:
            if Wave.of(wave.wave, wave.trials_of(trials), wave.people) != wave:
                raise InputError(
                    f"{self.out} was changed: wave {wave.wave} has other trials than {table} "
                    "records. Restore both files."
                )
        return waves, trials

    def _first(self, names: Sequence[str]) -> tuple[list[Wave], list[Trial]]:
        """Return wave 1 with its trials."""
        if self.first is not None:
            trials = list(read_trials(self.first))
        else:
            trials = self._design([*combinations(names, 2)], [], 0)
        return [Wave.of(1, trials, self._people(0))], trials

    def _design(
        self, matches: Sequence[tuple[str, str]], earlier: Sequence[Trial], people: int
    ) -> list[Trial]:
        """Return the trials of the next wave."""
        undecided = self._undecided_ids
        rejected = [name for name, is_rejected in self._is_rejected.items() if is_rejected]
        try:
            trials = design_wave(
                self.rules,
                matches,
                self._triplets,
                earlier,
                people,
                natural=[] if self.sentences is None else read_stimuli(self.sentences),
                catch_per_group=self.catch_per_group,
                rejected={*undecided, *rejected},
                seed=self.seed,
            )
        except TooFewItemsError as error:
            if not undecided:
                raise
            raise TooFewItemsError(
                f"The next wave waits for decisions about {quantity(len(undecided), 'triplet')}: "
                "review them, and name the file of decisions in `review`.",
                0,
            ) from error
        return [replace(trial, scale=self.scale) for trial in trials]

    def _responses(self, trials: Sequence[Trial], reporter: Reporter) -> Sequence[Response]:
        """Return the answers so far; of several answers to a trial, the first.

        Raises:
            InputError: if the data cannot be read, or a participant is in several lists.
        """
        files = data_files(self.data)
        if not files:
            return ()
        step = import_step(self.platform) if self.platform else None
        if step is None:
            rows = [row for file in files for row in read_responses(file, trials)]
            imported = Imported(tuple(trials), tuple(rows))
        else:
            imported = step.reader.read(files, trials, **vars(step.settings))
        for row in imported.unreadable:
            reporter.warn(f"skipped: {row}")
        groups: dict[str, int] = {}
        for response in imported.responses:
            if groups.setdefault(response.participant, response.group) != response.group:
                raise InputError(
                    f"{response.participant} answered trials of two lists, "
                    f"{groups[response.participant]} and {response.group}."
                )
        return keep_one(imported, "first").responses

    def _status(
        self, wave: Wave, verdict: Verdict, finished: int, wanted: int, is_over: bool
    ) -> str:
        """Return a sentence on the next task."""
        if not verdict.open:
            return verdict.text
        if is_over and finished >= wanted:
            return f"No verdict after the largest number of people. {verdict.text}"
        if finished and finished < wanted:
            return f"{finished:,} of {wanted:,} participants of wave {wave.wave} have finished."
        lists = quantity(wave.last_list - wave.first_list + 1, "list")
        return (
            f"wave {wave.wave} is designed: {quantity(wave.people, 'participant')}, {lists} "
            f"({wave.first_list} to {wave.last_list}), {quantity(wave.items, 'item')} of "
            f"{quantity(wave.matches, 'match', 'matches')}."
        )


def history_of(
    waves: Sequence[Wave], answers: Sequence[Answer], names: Sequence[str], rules: WaveRules
) -> list[dict[str, Any]]:
    """Return the verdict after each wave with answers, for the record."""
    history = []
    for wave in waves:
        so_far = [answer for answer in answers if int(answer.list) <= wave.last_list]
        if not any(int(answer.list) >= wave.first_list for answer in so_far):
            continue
        verdict = verdict_of(matches_of(so_far, names), rules.alpha, rules.margin)
        facts = {"wave": wave.wave, "verdict": verdict.text, "winner": verdict.winner}
        alike = [[*pair] for pair in verdict.alike]
        sets = {"surviving": [*verdict.surviving], "beaten": {**verdict.beaten}, "alike": alike}
        history.append(facts | sets)
    return history


def recomputed_history(out: Path, record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Compute the verdict after each wave again, from the answers next to the table of trials."""
    rules = WaveRules(**{name: record[name] for name in vars(WaveRules())})
    answers = read_answers(Path(f"{out}.answers.csv"), may_be_empty=True)
    return history_of(
        read_waves(Path(f"{out}.waves.csv")), answers, record["compared_models"], rules
    )


def _finished(trials: Sequence[Trial], responses: Sequence[Response]) -> dict[str, int]:
    """Return participant → list, for participants who have answered all trials of their list."""
    sizes = Counter(trial.group for trial in trials)
    answered = Counter((response.participant, response.group) for response in responses)
    return {who: group for (who, group), n in answered.items() if n >= sizes[group]}
