"""Waves of participants: verdict so far, and trials of the next wave with new items.

A match is a comparison of two models; it is open if the verdict needs more answers to it. A list is
a set of trials: all participants of a list answer the same trials.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, replace
from functools import cached_property
from itertools import chain, combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from contstim.errors import InfeasibleError, InputError
from contstim.experiments.analysis.e_values import (
    Answer,
    Verdict,
    answers_of,
    e_value,
    further_people,
    matches_of,
    matches_of_best,
    read_answers,
    verdict_of,
)
from contstim.experiments.design.waves import (
    TooFewItemsError,
    Wave,
    WaveRules,
    design_wave,
    read_waves,
    trials_checksum,
)
from contstim.experiments.platforms.platform import platform_names
from contstim.experiments.responses.admission import Exclusions, admit, read_excluded
from contstim.experiments.responses.alignment import Imported, keep_one
from contstim.experiments.responses.questionnaire import QUESTIONS_ENDING
from contstim.experiments.responses.table import origin_of, read_responses, write_responses
from contstim.files.records import Record, record_path
from contstim.files.tables import columns_of, write_table
from contstim.items.reviews import read_reviews
from contstim.items.stimuli import (
    Condition,
    read_stimuli,
    read_trials,
    read_triplets,
    trial_columns,
)
from contstim.options import Help, Reads, WritesTable, reads_kind
from contstim.reporter import SILENT, Reporter
from contstim.steps.design import TrialsStep
from contstim.steps.platforms import data_files, import_step
from contstim.steps.step import Outcome
from contstim.steps.verdict import write_matches
from contstim.wording import grouped, quantity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contstim.experiments.responses.table import Response
    from contstim.items.stimuli import Trial, Triplet


class DesignWaves(TrialsStep[Verdict], name="waves"):
    """Design the next wave of participants, with new items for the models that are not beaten yet.

    Without answers, the command designs wave 1. When all participants of a wave have finished, the
    same command computes the verdict from all answers (see `contstim verdict`), and adds the trials
    of the next wave to the table. Trials of earlier waves do not change.

    The command also writes tables next to the table of trials: `….waves.csv` lists the waves,
    `….wave.csv` the trials of the last wave, `….verdict.csv` the comparisons of two models, and
    `….answers.csv` the answers in the format of `contstim verdict`.

    Examples: `contstim waves --triplets triplets.csv --sentences natural.txt --out trials.csv`

    `contstim waves --triplets triplets.csv --sentences natural.txt --data responses.csv
    --out trials.csv`
    """

    out: Annotated[
        Path,
        WritesTable(
            "The table of trials of all waves.",
            beside=(".waves.csv", ".wave.csv", ".answers.csv", ".verdict.csv", ".verdict.csv.png"),
            kind="trials",
            name="waves/trials.csv",
        ),
    ]
    responses_out: Annotated[
        Path | None, WritesTable("The table of all responses to write.", kind="responses")
    ] = None
    triplets: Annotated[
        Path, reads_kind("Triplets; they are used in the order of the table.", "triplets")
    ]
    first: Annotated[
        Path | None,
        Reads("Trials of wave 1, made by `design`; by default with new items.", content="trials"),
    ] = None
    data: Annotated[
        tuple[Path, ...], Reads("Answers so far: files, or folders of files.", folder=True)
    ] = ()
    platform: Annotated[
        str,
        Help("Platform that wrote the answers, named as in `import`; by default they are a table."),
    ] = ""
    rules: WaveRules = WaveRules()
    exclusions: Exclusions = Exclusions()
    catch_per_group: Annotated[int, Help("Catch trials for each participant.", at_least=0)] = 4

    leave_out = frozenset({"partial"})

    def check(self) -> None:
        """Check rules and platform, and that the files for catch trials and `require` are set."""
        self.rules.check()
        record = Record.from_file(record_path(self.out))
        facts = record.facts if record and record.facts.get("history") else {}
        for name in ("alpha", "margin"):
            if facts and facts[name] != getattr(self.rules, name):
                raise InputError(
                    f"{name} must be {facts[name]:g}, because an earlier verdict used this value, "
                    f"got {getattr(self.rules, name):g}."
                )
        if self.exclusions.require and self.exclusions.participants is None:
            raise InputError("`require` needs `participants`. Set both, or neither.")
        if self.catch_per_group and self.sentences is None:
            raise InputError(
                "Catch trials need natural sentences. Set `sentences`, or set `catch_per_group` "
                "to 0."
            )
        if self.platform and import_step(self.platform) is None:
            raise InputError(
                f"`platform` must be one of {', '.join(platform_names())}, got {self.platform}."
            )

    def work(self, reporter: Reporter) -> Outcome[Verdict]:
        """Compute the verdict, and design the next wave if the last one is complete."""
        names = [*dict.fromkeys(m for t in self._triplets for m in (t.model_1, t.model_2))]
        waves, trials, counted = self._stored()
        responses = self._responses(trials, reporter) if waves else ()
        # Without answers, design wave 1 again, because the settings may have changed
        if len(waves) < 2 and not (responses or counted):
            waves, trials = self._first(names)
            responses = self._responses(trials, reporter)
            # If the process is killed before the table of trials is written, the next run must not
            # compare trials with another wave 1
            self.out.unlink(missing_ok=True)
        sizes = Counter(trial.group for trial in trials)
        answered = Counter((response.participant, response.group) for response in responses)
        # Participant → list, for participants who have answered all trials of the list
        finished = {who: number for (who, number), n in answered.items() if n >= sizes[number]}
        answers, n_excluded = self._answers(counted, waves, trials, responses, finished, reporter)
        matches = matches_of(answers, names)
        verdict = verdict_of(matches, self.rules.alpha, self.rules.margin)
        history = history_of(answers, names, self.rules.alpha, self.rules.margin)
        last_wave, in_list = waves[-1], Counter(finished.values())
        n_done = sum(min(in_list[number], last_wave.people_per_list) for number in last_wave.lists)
        n_required = min(last_wave.people, self.rules.people_per_wave)
        n_more_lists = self.rules.lists(sum(wave.people for wave in waves))
        is_over = not verdict.open or (n_done >= n_required and not n_more_lists)
        problem, n_triplets = "", 0
        if n_done >= n_required and not is_over:
            try:
                waves, trials = self._design(verdict.open, waves, trials)
            except InfeasibleError as error:
                problem, n_triplets = str(error), getattr(error, "needed", 0)
        write_table(self._beside("answers"), columns_of(Answer, answers))
        # If the process is killed between the next two tables, the next run designs the new wave
        # again, because it ignores waves whose trials are not in the table of trials
        write_table(self._beside("waves"), columns_of(Wave, waves))
        write_table(self.out, trial_columns(trials))
        write_table(self._beside("wave"), trial_columns(waves[-1].trials_of(trials)))
        if self.responses_out is not None:
            write_responses(self.responses_out, responses)
        parts = write_matches(matches, verdict, self.rules.alpha, self._beside("verdict"))
        task = problem or _next_task(waves[-1], verdict, n_done, n_required, is_over=is_over)
        known = verdict.text if history else ""
        status = f"{known} {task}".strip()
        reporter.say(f"{self.out}: {status}")
        triplets_by_pair = Counter((t.model_1, t.model_2) for t in self._triplets)
        facts: dict[str, Any] = {
            **asdict(self.rules),
            "compared_models": names,
            "waves": [asdict(wave) for wave in waves],
            "history": history,
            "finished": len(finished),
            "excluded": n_excluded,
            "simulated": origin_of(r for r in responses if r.participant in finished).simulated,
            "further_people": further_people(matches, verdict, self.rules.alpha),
            "verdict": known,
            "matches_of_best": [
                {"rival": m.model_b, "e_value": e_value(m.log_e[-1]), "share": m.share}
                for m in matches_of_best(matches, verdict)
                if verdict.winner
            ],
            "status": status,
            "is_over": is_over,
            "triplets_per_pair": n_triplets or max(triplets_by_pair.values()),
            "seed": self.seed,
        }
        if waves[-1] != last_wave:
            # If a study is run again from the start, its data already contain answers to this wave
            rows = self._responses(trials, SILENT)
            if any(row.group in waves[-1].lists for row in rows):
                return self.work(reporter)
        return Outcome(verdict, facts, complete=not problem, parts=parts if history else [])

    @cached_property
    def _triplets(self) -> Sequence[Triplet]:
        return read_triplets(self.triplets)

    def _beside(self, name: str) -> Path:
        """Return the path of a table next to the trials."""
        return Path(f"{self.out}.{name}.csv")

    def _stored(self) -> tuple[list[Wave], list[Trial], Sequence[Answer]]:
        """Return the waves that an earlier run designed, their trials, and the counted answers."""
        table, answers = self._beside("waves"), self._beside("answers")
        if not (table.is_file() and self.out.is_file()):
            return [], [], ()
        counted = read_answers(answers, may_be_empty=True) if answers.is_file() else ()
        trials = [*read_trials(self.out)]
        last = max(trial.group for trial in trials)
        waves = [wave for wave in read_waves(table) if wave.last_list <= last]
        for wave in waves:
            if trials_checksum(wave.trials_of(trials)) != wave.sha256:
                raise InputError(
                    f"{self.out} was changed: its trials of wave {wave.wave} do not match {table}. "
                    "Restore both files."
                )
        return waves, trials, counted

    def _first(self, names: Sequence[str]) -> tuple[list[Wave], list[Trial]]:
        """Return wave 1, and its trials."""
        if self.first is None:
            return self._design([*combinations(names, 2)], [], [])
        trials = [*read_trials(self.first)]
        is_twin = any(trial.condition is Condition.NATURAL_SYNTHETIC for trial in trials)
        if is_twin or {trial.model_1 for trial in trials} - {*names, ""}:
            raise InputError(
                f"{self.first} cannot be wave 1: each triplet must have one trial (without "
                "`twins`), and all models of the trials must also have triplets."
            )
        n_lists = len({trial.group for trial in trials})
        people_per_list, n_more = divmod(self.rules.people_per_wave, n_lists)
        if n_more:
            raise InputError(
                f"people_per_wave must be a multiple of {n_lists}, the number of groups of "
                f"{self.first}, got {self.rules.people_per_wave}."
            )
        return [Wave.of(1, trials, people_per_list)], trials

    def _design(
        self, matches: Sequence[tuple[str, str]], waves: Sequence[Wave], earlier: Sequence[Trial]
    ) -> tuple[list[Wave], list[Trial]]:
        """Return the waves and trials with those of the next wave."""
        review = read_reviews(self.review)
        decisions = chain.from_iterable(review.last_decisions.values())
        decided = {name for item in decisions for name in (item.item_id, item.source_id)}
        undecided = {t.triplet_id for t in self._triplets if self.review} - decided
        people = sum(wave.people for wave in waves)
        try:
            trials = design_wave(
                self.rules,
                matches,
                self._triplets,
                earlier,
                people,
                natural=[] if self.sentences is None else read_stimuli(self.sentences),
                catch_per_group=self.catch_per_group,
                rejected=review.rejected | undecided,
                seed=self.seed,
            )
        except TooFewItemsError as error:
            if not undecided:
                raise
            raise InfeasibleError(
                f"The next wave waits for decisions about {quantity(len(undecided), 'triplet')}: "
                "review them, and name the file of decisions in `review`."
            ) from error
        scale = earlier[0].scale if earlier else self.scale
        wave = Wave.of(len(waves) + 1, trials, self.rules.people_per_list)
        return [*waves, wave], [*earlier, *(replace(trial, scale=scale) for trial in trials)]

    def _answers(
        self,
        counted: Sequence[Answer],
        waves: Sequence[Wave],
        trials: Sequence[Trial],
        responses: Sequence[Response],
        finished: Mapping[str, int],
        reporter: Reporter,
    ) -> tuple[list[Answer], int]:
        """Return the answers that count, and the number of finished but excluded participants.

        A list is counted when enough participants have finished it. No participant is added to a
        counted list. Otherwise, answers to a list could decide whether further participants see
        this list, and the e-values (evidence for a model) would not be valid.
        """
        exclude = self.exclusions.exclude
        listed = {} if exclude is None else read_excluded(exclude)
        missing = {answer.participant for answer in counted} - finished.keys()
        if unlisted := missing - listed.keys():
            raise InputError(
                f"The data lack {quantity(len(unlisted), 'participant')} (for example, "
                f"{min(unlisted)}) whose answers an earlier verdict counted. Name the data of all "
                "waves. If participants withdrew, list them in `exclude`."
            )
        counted = [answer for answer in counted if answer.participant not in missing]
        if not finished:
            return counted, 0
        closed_lists, known = {a.list for a in counted}, {a.participant for a in counted}
        members = grouped((number, who) for who, number in finished.items() if who not in known)
        new_people: set[str] = set()
        for wave in waves:
            for number in wave.lists:
                people = members.get(number, [])
                if str(number) not in closed_lists and len(people) >= wave.people_per_list:
                    new_people.update(people[: wave.people_per_list])
        rows = [r for r in responses if r.participant in finished.keys() - listed.keys()]
        exclusions = replace(self.exclusions, exclude=None)
        admission = admit(trials, rows, exclusions=exclusions, may_be_empty=True)
        reporter.warn(admission.origin.warning)
        admitted = (row for row in admission.responses if row.participant in new_people)
        added = [replace(a, wave=waves[-1].wave) for a in answers_of(trials, admitted)]
        current = {*answers_of(trials, (row for row in rows if row.participant in known))}
        changed = {a.participant for a in counted if replace(a, wave=0) not in current}
        if changed:
            reporter.warn(
                f"Counted answers of {quantity(len(changed), 'participant')} (for example, "
                f"{min(changed)}) are changed in the data, or excluded by `exclude`. The verdict "
                "still uses the counted answers. If a person withdrew, list the person in "
                "`exclude`, and delete the answers from the data."
            )
        return [*counted, *added], len(finished.keys() - {*admission.participants} - known)

    def _responses(self, trials: Sequence[Trial], reporter: Reporter) -> Sequence[Response]:
        """Return the answers so far: each participant's first answer to each trial.

        If a participant answered trials of two lists, only answers to the first list are returned.

        Raises:
            InputError: if the data cannot be read.
        """
        files = [f for f in data_files(self.data) if not f.name.endswith(QUESTIONS_ENDING)]
        if not files:
            return ()
        step = import_step(self.platform) if self.platform else None
        if step is None:
            scale, known = trials[0].scale, {trial.trial_id for trial in trials}
            read = [row for file in files for row in read_responses(file, trials, scale=scale)]
            imported = Imported((), tuple(row for row in read if row.trial_id in known))
            if n_unknown := len(read) - len(imported.responses):
                answers = quantity(n_unknown, "answer")
                reporter.say(f"Ignored {answers} to trials that are in no designed wave.")
        else:
            imported = step.reader.read(files, trials, **vars(step.settings))
        for error in imported.unreadable:
            reporter.warn(f"skipped: {error}")
        first = {row.participant: row.group for row in reversed(imported.responses)}
        if any(row.group != first[row.participant] for row in imported.responses):
            reporter.warn("Some participants answered trials of two lists: only the first counts.")
        rows = keep_one(imported, "first").responses
        return [row for row in rows if row.group == first[row.participant]]


def _next_task(wave: Wave, verdict: Verdict, n_done: int, n_required: int, *, is_over: bool) -> str:
    """Return a sentence on the next task; empty if the verdict is complete."""
    if is_over:
        return "The maximum number of participants is reached." if verdict.open else ""
    if 0 < n_done < n_required:
        return f"{n_done:,} of {n_required:,} participants of wave {wave.wave} have finished."
    return (
        f"Wave {wave.wave} is designed: {quantity(wave.people, 'participant')}, "
        f"{quantity(len(wave.lists), 'list')} ({wave.first_list} to {wave.last_list}), "
        f"{quantity(wave.items, 'item')} of {quantity(wave.matches, 'match', 'matches')}."
    )


def history_of(
    answers: Sequence[Answer], names: Sequence[str], alpha: float, margin: float
) -> list[dict[str, Any]]:
    """Return the verdict after each wave with answers, as it is stored in the record."""
    history = []
    for number in sorted({answer.wave for answer in answers}):
        so_far = [answer for answer in answers if answer.wave <= number]
        verdict = verdict_of(matches_of(so_far, names), alpha, margin)
        history.append({"wave": number, "verdict": verdict.text, **asdict(verdict)})
    # A record contains lists instead of tuples
    stored: list[dict[str, Any]] = json.loads(json.dumps(history))
    return stored
