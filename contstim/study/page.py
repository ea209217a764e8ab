"""The page of a study, `index.html` beside its file: what was done, and what came of it.

    stage records, results/… --> sections --> Report --> index.html
                                   |
                                   +-- page_materials: models, texts, pairs, triplets, reviews
                                   +-- page_experiment: design, participants, power, analysis

It is written anew whenever a stage begins or ends, so that a person who reloads it follows a run.
"""

from __future__ import annotations

import hashlib
import json
import re
from contextlib import chdir, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING

from contstim.corpus import read_lines
from contstim.errors import ContstimError, InputError
from contstim.files import lock_holder, write_text
from contstim.records import now
from contstim.reporting.report import (
    Bullets,
    Details,
    Heading,
    Paragraph,
    Report,
    Table,
    code,
    strong,
)
from contstim.study import page_experiment as experiment
from contstim.study import page_materials as materials
from contstim.study.places import LOCK, PAIRS, TRIALS, StudyFiles
from contstim.study.stage_records import (
    Examination,
    State,
    begun_with,
    record_of,
    size_of,
)
from contstim.study.stages import stages_of
from contstim.study.status import (
    RUNNING,
    WAITS,
    StageState,
    size_text,
    stage_states,
    state_of,
)
from contstim.version import __version__
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from contstim.records import Record
    from contstim.reporting.report import Part, Text, Value
    from contstim.study.stage import StudyStage
    from contstim.study.study import Study

PAGE = Path("index.html")
GENERATOR = "contstim run"
_DIGEST = "contstim-study"
_RUNNING = "contstim-running"
_KILLED = "the run ended without a word: it was killed, or the machine stopped."
_LONGEST = 600  # characters of a message; the terminal has all of it

# Heading, what stands under it, and the stages that it is made of
_SECTIONS: tuple[tuple[str, Callable[[StudyFiles], Iterator[Part]], frozenset[str]], ...] = (
    ("Models", materials.models_part, frozenset({"model", "scores"})),
    (
        "Texts, words and sentences",
        materials.materials_part,
        frozenset({"text", "vocabulary", "sentences"}),
    ),
    ("How often the models agree", materials.agreement_part, frozenset({"scores"})),
    ("Pairs and triplets", materials.numbers_part, frozenset({"pairs", "triplets", "selection"})),
    ("Some items", materials.items_part, frozenset({"pairs", "triplets", "selection"})),
    ("Reviews", materials.review_part, frozenset({"review"})),
    ("The experiment", experiment.design_part, frozenset({"design"})),
    (
        "What a participant will see",
        experiment.participant_part,
        frozenset({"design", "export"}),
    ),
    ("What the experiment can show", experiment.power_part, frozenset({"power"})),
    ("Who agrees with people", experiment.analysis_part, frozenset({"responses", "analysis"})),
)


@dataclass(frozen=True)
class Moment:
    """State of a run while the page is written.

    Attributes:
        running: the stage that is being done; None: none is.
        since: when it began, UTC.
        stopped: why it ended before it was done; empty: it goes on.
    """

    running: StudyStage | None = None
    since: str = ""
    stopped: str = ""


def study_page(
    study: Study, states: Sequence[StageState] | None = None, moment: Moment | None = None
) -> Report:
    """Page on the progress and results of a study, with links relative to its folder.

    Args:
        study: as `read_study` reads it.
        states: of its stages, in order; by default as files are now.
        moment: where a run is; by default none is under way.
    """
    if states is None:
        states = stage_states(study)
    with chdir(study.folder):
        return _report(study, states, moment or Moment())


def _report(study: Study, states: Sequence[StageState], moment: Moment) -> Report:
    """The page; the current folder is the study's."""
    files = StudyFiles(study)
    stages = stages_of(study)
    records = {stage.name: record for stage in stages if (record := record_of(stage))}
    warning = ""
    with suppress(ContstimError):  # of responses that cannot be read there are no results
        warning = experiment.simulated_warning(files)
    parts: list[Part] = [
        *_progress(study, states, moment),
        *_guarded(_overview(files)),
        *_stage_table(states, records, moment),
        *_warnings(stages),
    ]
    for title, section, kinds in _SECTIONS:
        parts += _section(title, _guarded(section(files)), _unsettled(states, kinds))
    parts += _all_files(study, stages)
    return Report(study.title, parts, warning=warning, meta={"generator": GENERATOR})


def _progress(study: Study, states: Sequence[StageState], moment: Moment) -> Iterator[Part]:
    """Progress of the study, in a few sentences."""
    done = sum(state.state == State.DONE for state in states)
    text: list[Text | str] = []
    if moment.stopped and moment.running is not None:
        yield Paragraph(
            (
                strong(f"Stopped at {moment.running.name}: "),
                f"{shorten(moment.stopped, _LONGEST)} What was done stands below; ",
                code(f"contstim run {study.path.name}"),
                " goes on from there.",
            )
        )
    elif moment.running is not None:
        yield Paragraph(
            (
                strong(f"Running when this page was written: {moment.running.name}"),
                f" ({moment.running.about}), begun {_moment_text(moment.since)} UTC. Reload this "
                "page to see how far it is. A run that was killed cannot say so here: ",
                code(f"contstim status {study.path.name}"),
                " says whether it goes on, and corrects this page.",
            )
        )
    text.append(f"{done:,} of {counted(len(states), 'stage')} done")
    for name in (State.STALE, State.INTERRUPTED, State.NOT_DONE, WAITS):
        number = sum(state.state == name for state in states)
        text.append(f", {number:,} {name}" if number else "")
    # What stands here is that of the last change: a page that says nothing new is not written
    text.append(
        f". Seed {study.seed}; contstim {__version__}; page written {_moment_text(now())} UTC."
    )
    yield Paragraph("".join(map(str, text)))


def _moment_text(moment: str) -> str:
    return moment.replace("T", " ").removesuffix("Z")


def _overview(files: StudyFiles) -> Iterator[Part]:
    """The numbers that a reader asks for first."""
    models = len(files.study.models)
    items: list[Text] = [counted(models, "model")] if models else []
    for what, path in (
        ("natural sentence", files.natural),
        ("natural pair", PAIRS if "pairs" in files.study.sections else None),
        ("triplet", files.triplets),
        ("trial", TRIALS if "design" in files.study.sections else None),
    ):
        if path is not None and path.is_file():
            # A header, and no line break inside a cell of these
            number = sum(1 for _ in read_lines(path)) - (path.suffix == ".csv")
            items.append((counted(number, what), ": ", materials.link(path)))
    yield Bullets(items)


def _stage_table(
    states: Sequence[StageState], records: Mapping[str, Record], moment: Moment
) -> Iterator[Part]:
    """A row for each stage."""
    yield Heading("What was done")
    rows: list[tuple[Value, ...]] = []
    for state in states:
        what, because = state.state, state.because
        if moment.running is not None and moment.running.name == state.stage:
            what = "stopped" if moment.stopped else RUNNING
        record = records.get(state.stage)
        if record is not None and record.warnings:
            because = "; ".join(
                filter(None, (because, counted(len(set(record.warnings)), "warning")))
            )
        is_usual = what in (State.DONE, State.NOT_DONE, WAITS)
        shown: Value = what if is_usual else strong(what)
        rows.append((state.stage, shown, state.date, state.seconds, state.size, because))
    header = ("stage", "state", "done (UTC)", "seconds", "size", "notes")
    table = Table(header, rows, texts=3, notes=1, is_wide=True)
    # What is done is folded away, so that a finished page begins with its results
    is_done = all(state.state == State.DONE for state in states)
    yield Details(counted(len(rows), "stage"), [table]) if is_done else table


def _warnings(stages: Sequence[StudyStage]) -> Iterator[Part]:
    """Warnings of stages, each text once, and files that were changed by hand."""
    by_text: dict[str, list[str]] = {}
    for stage in stages:
        record = record_of(stage)
        for text in record.warnings if record else ():
            by_text.setdefault(text, []).append(stage.name)
    items: list[Text] = [
        (strong(", ".join(dict.fromkeys(names))), f": {text}") for text, names in by_text.items()
    ]
    if items:
        yield Details(counted(len(items), "warning"), [Bullets(items)], is_open=len(items) < 4)


def _unsettled(states: Sequence[StageState], kinds: frozenset[str]) -> list[str]:
    """Stages of some kinds whose results stand there, but no longer hold."""
    return [
        state.stage
        for state in states
        if state.stage.partition(" ")[0] in kinds and state.date and state.state != State.DONE
    ]


def _section(title: str, parts: Sequence[Part], unsettled: Sequence[str]) -> list[Part]:
    """A heading and what belongs under it; nothing where nothing is there yet."""
    if not parts:
        return []
    if unsettled:
        names = ", ".join(unsettled)
        note = Paragraph((strong("Of an earlier run: "), f"to be done again: {names}."))
        return [Heading(title), note, *parts]
    return [Heading(title), *parts]


def _guarded(parts: Iterator[Part]) -> list[Part]:
    """The parts, or why they cannot be shown.

    A run must not end because a file that the page would show was changed by hand.
    """
    try:
        return list(parts)
    except ContstimError as error:
        return [Paragraph(f"This part cannot be shown: {error}")]
    except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
        what = f"{type(error).__name__}: {error}"
        return [Paragraph(f"This part cannot be shown: a file is not as it was written ({what}).")]


def _all_files(study: Study, stages: Sequence[StudyStage]) -> Iterator[Part]:
    """A link to every file and folder of the study."""
    rows: list[tuple[Value, ...]] = []
    inputs = sorted({path for stage in stages for path in stage.reads if path.exists()})
    written = {path for stage in stages for path in stage.writes}
    rows.append(("the study", materials.link(Path(study.path.name)), ""))
    rows += [
        ("given", materials.link(path, path.as_posix()), size_text(size_of([path])))
        for path in inputs
        if path not in written
    ]
    for stage in stages:
        there = [path for path in stage.writes if path.exists()]
        name = stage.name
        for path in there:
            rows.append((name, materials.link(path, path.as_posix()), size_text(size_of([path]))))
            name = ""  # of the row above
    yield Heading("Files")
    yield Paragraph(
        (
            "Links lead to files beside this page: it is complete in its folder. Beside each file "
            "a record (",
            code(".meta.json"),
            ") says how it came about; ",
            code("contstim verify"),
            " checks all of them.",
        ),
        note=True,
    )
    yield Details("All files", [Table(("stage", "file", "size"), rows, texts=2)])


class LivePage:
    """The page of a study while it is run: written anew whenever something changes.

    The current folder is the study's.
    """

    def __init__(self, study: Study, stages: Sequence[StudyStage]) -> None:
        """Look at what stands there.

        Raises:
            InputError: `index.html` is a page that contstim did not write.
        """
        self._study = study
        self._stages = stages
        self._reached: dict[str, StageState] = {}
        self._before = _meta_of(PAGE)
        if PAGE.exists() and self._before.get("generator") != GENERATOR:
            raise InputError(
                f"{PAGE} stands beside {study.path.name}, and contstim did not write it: the page "
                f"of the study would take its place. Move it, or give it another name."
            )

    def reach(self, examination: Examination) -> None:
        """Take note of what is to be done about a stage."""
        self._reached[examination.stage.name] = state_of(examination)

    @contextmanager
    def doing(self, stage: StudyStage) -> Iterator[None]:
        """Say that a stage is being done, and, if it fails, why it stopped."""
        moment = Moment(stage, now())
        self.write(moment)
        try:
            yield
        except BaseException as error:
            why = str(error) if isinstance(error, ContstimError) else type(error).__name__
            why = "it was interrupted." if isinstance(error, KeyboardInterrupt) else why
            with suppress(ContstimError):  # the first error is what a user has to read
                self.write(replace(moment, stopped=why))
            raise
        record = record_of(stage)
        self._reached[stage.name] = state_of(Examination(stage, State.DONE, record=record))
        self.write(Moment())

    def close(self) -> None:
        """Write the page once more, if it does not say already what stands now."""
        if self._before.get(_DIGEST) != self._digest():
            states = None if len(self._reached) < len(self._stages) else self._states()
            self.write(Moment(), states)

    def _states(self) -> list[StageState]:
        """Of stages that a run has not reached it is not yet known whether they still hold."""
        states = []
        for stage in self._stages:
            state = self._reached.get(stage.name)
            if state is None:
                record = record_of(stage)
                begun = begun_with(stage) is not None
                state = state_of(
                    Examination(
                        stage, State.INTERRUPTED if begun else State.NOT_DONE, record=record
                    )
                )
                if record is not None:
                    state = replace(state, state=WAITS, because="those before it first")
            states.append(state)
        return states

    def _digest(self) -> str:
        """Of all that the page says but for times: what it was written of."""
        records = [record_of(stage) for stage in self._stages]
        basis = [
            __version__,
            self._study.path.name and Path(self._study.path.name).read_text("utf-8"),
            [{**asdict(r), "date": "", "seconds": 0} if r else None for r in records],
            [asdict(state) for state in self._reached.values()],
        ]
        text = json.dumps(basis, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def write(self, moment: Moment, states: Sequence[StageState] | None = None) -> None:
        """Write the page of a moment, with the states of stages where they are known."""
        # What runs or has stopped is of this moment: such a page is always written anew
        digest = "" if moment.running else self._digest()
        report = _report(self._study, states or self._states(), moment)
        running = moment.running is not None and not moment.stopped
        meta = {**report.meta, _DIGEST: digest, **({_RUNNING: "yes"} if running else {})}
        write_text(PAGE, replace(report, meta=meta).html())
        self._before = meta


def correct_page(study: Study) -> None:
    """Say on the page of a study that its run ended, where it was killed and could not say so.

    A page that cannot be written stays as it is.
    """
    with chdir(study.folder):
        if _RUNNING not in _meta_of(PAGE) or lock_holder(LOCK) is not None:
            return
    states = stage_states(study)
    with chdir(study.folder):
        stages = stages_of(study)
        at = next((s for s in stages if begun_with(s) is not None), None)
        moment = Moment() if at is None else Moment(at, stopped=_KILLED)
        with suppress(InputError):
            LivePage(study, stages).write(moment, states)


_META = re.compile(r'<meta name="([\w-]+)" content="([^"]*)">')


def _meta_of(path: Path) -> dict[str, str]:
    """The meta tags at the beginning of a page; none where there is no page."""
    if not path.is_file():
        return {}
    with path.open(encoding="utf-8", errors="replace") as file:
        return dict(_META.findall(file.read(4096)))
