"""The page of a study, `index.html` next to the study file: states of stages, and results.

    states of stages ---------------------+--> Report --> index.html
    results/… --> facts --> page_sections --+

A run writes the page when a stage begins and when the run ends. During searches for triplets, the
run also writes the page about every half minute. (A triplet is a natural sentence and two synthetic
sentences.) Reload the page to follow the run.
"""

from __future__ import annotations

import re
from contextlib import chdir, suppress
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING

from contstim.errors import ContstimError, InputError
from contstim.experiments.platforms.jspsych import unfilled_warning
from contstim.files.files import lock_holder, write_text
from contstim.files.records import now
from contstim.reporting.report import (
    Bullets,
    Details,
    Heading,
    Paragraph,
    Report,
    Table,
    code,
    strong,
    with_code,
)
from contstim.reporting.templates import passages
from contstim.steps.analysis import AnalyzeResponses
from contstim.steps.design import TrialsStep
from contstim.steps.platforms import ExportTrials
from contstim.steps.review import WriteReviewPage
from contstim.steps.simulation import SimulateResponses
from contstim.study.handing_on.facts import StudyFacts
from contstim.study.page_sections import SECTIONS, at_a_glance, link
from contstim.study.states import size_of, stage_states, stored_basis
from contstim.study.study import LOCK, PAGE
from contstim.version import __version__
from contstim.wording import grouped, quantity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from contstim.reporting.report import Part, Span, Text, Value
    from contstim.study.states import StageState
    from contstim.study.study import Study, StudyStage

_GENERATOR, _RUNNING = "contstim run", "contstim-running"
_KILLED = "the run was killed, or the machine stopped."
_LONGEST = 600  # maximum number of characters of a message; the terminal shows the whole message
_META = re.compile(r'<meta name="([\w-]+)" content="([^"]*)">')
_WRITTEN = re.compile(r"page written [-\d]+ [:\d]+ UTC")
# Errors that damaged files cause
_DAMAGED = (OSError, ValueError, TypeError, LookupError, AttributeError)


def write_page(
    study: Study,
    states: Sequence[StageState],
    running: StudyStage | None = None,
    stopped: BaseException | str = "",
    so_far: Sequence[Part] = (),
) -> None:
    """Write the page into the current folder, if it differs from the existing page.

    Args:
        study: study whose folder is the current folder.
        states: states of all stages of the study, in order.
        running: stage that runs, or at which a run stopped; None if there is no such stage.
        stopped: reason why the stage `running` stopped; empty if it runs.
        so_far: preliminary results of the stage `running`.

    Raises:
        InputError: if the page cannot be written.
    """
    if isinstance(stopped, KeyboardInterrupt):
        stopped = "it was interrupted."
    elif isinstance(stopped, BaseException):
        stopped = str(stopped) if isinstance(stopped, ContstimError) else type(stopped).__name__
    text = study_page(study, states, running, stopped, so_far).html()
    written = PAGE.read_text("utf-8", errors="replace") if PAGE.is_file() else ""
    if _WRITTEN.sub("", text) != _WRITTEN.sub("", written):
        write_text(PAGE, text)


def refuse_foreign_page(study: Study) -> None:
    """Check that `write_page` would not replace a file of another program.

    Raises:
        InputError: if contstim did not write the existing file.
    """
    if PAGE.exists() and _meta().get("generator") != _GENERATOR:
        raise InputError(
            f"contstim did not write {PAGE}, and the page of {study.path.name} would replace it. "
            f"Move or rename {PAGE}."
        )


def correct_page(study: Study) -> None:
    """Correct the page if it shows a killed run as running; skip a page that cannot be written."""
    with chdir(study.folder):
        if _RUNNING not in _meta() or lock_holder(LOCK) is not None:
            return
    states = stage_states(study)
    with chdir(study.folder), suppress(InputError):
        at = next((state.stage for state in states if stored_basis(state.stage) is not None), None)
        write_page(study, states, at, "" if at is None else _KILLED)


def _meta() -> dict[str, str]:
    if not PAGE.is_file():
        return {}
    with PAGE.open(encoding="utf-8", errors="replace") as file:
        return dict(_META.findall(file.read(4096)))


def study_page(
    study: Study,
    states: Sequence[StageState],
    running: StudyStage | None = None,
    stopped: str = "",
    so_far: Sequence[Part] = (),
) -> Report:
    """Return the page on the progress and results of a study; see `write_page`."""
    from contstim.experiments.responses.table import origin_of

    facts, warning, measured = StudyFacts(study), "", False
    # The page is written even if a file is damaged
    with suppress(ContstimError, *_DAMAGED):
        warning = origin_of(facts.responses).warning
    with suppress(ContstimError, *_DAMAGED):
        measured = bool(facts.simulation.get("as_measured"))
    notes = passages("contstim.study", "page.md.jinja", as_measured=measured)
    parts = [*_progress(study, states, running, stopped)]
    if running is None:
        parts += _guarded(next_step(facts, all(state.state == "done" for state in states)))
    if running is not None and so_far:
        parts += [Heading(f"Preliminary results of {running.name}"), *so_far]
    parts += [*_guarded(at_a_glance(facts)), Heading("Stages of the study")]
    parts += _stages(states, running, stopped)
    for title, (section, kinds) in SECTIONS.items():
        if under := _guarded(section(facts)):
            earlier = [
                state.stage.name
                for state in states
                if state.stage.kind in kinds and state.record is not None and state.state != "done"
            ]
            if earlier:
                which = "the next" if running is None else "this"
                again = f"{which} run repeats {', '.join(earlier)}."
                under.insert(0, Paragraph((strong("Results of an earlier run: "), again)))
            under += [Paragraph(notes[title], note=True)] if title in notes else []
            parts.append(Details(title, under))
    parts.append(Details("Files", [Paragraph(notes["Files"], note=True), _files(study, states)]))
    meta = {"generator": _GENERATOR}
    meta |= {_RUNNING: "yes"} if running is not None and not stopped else {}
    return Report(study.title, parts, warning=warning, meta=meta)


def next_step(facts: StudyFacts, is_done: bool) -> Iterator[Part]:
    """Yield the next task of the user, with the command or file for this task."""
    study, design = facts.study, facts.study.step(TrialsStep)
    file = link(Path(study.path.name))
    pages = [step.out for step in study.steps(WriteReviewPage) if step.out.is_file()]
    exporting = study.step(ExportTrials)
    export = exporting and exporting.out
    texts = export if export and (export / "consent.md").is_file() else None
    of_people = facts.path("responses") and study.step(SimulateResponses) is None
    step: tuple[str | Span, ...]
    if not is_done:
        step = ("run the remaining stages: ", code(f"contstim run {study.path.name}"))
    elif pages and not facts.decisions:
        links = [run for page in pages for run in (link(page), ", ")]
        step = ("review the items: ", *links, "and name the saved file under review in ", file)
    elif texts and not of_people and unfilled_warning(texts):
        step = ("edit the texts that participants read: ", link(texts / "consent.md"))
        step += (", ", link(texts / "debrief.md"))
    elif export and facts.waves and not facts.waves["is_over"]:
        step = (facts.waves["status"], " Name the files of answers in the key data of [waves] in ")
        step += (file, ", and run the study again")
    elif export and not of_people and not facts.waves:
        how = code(f"contstim collect {export}") if texts else link(export, export.as_posix())
        step = (
            "collect answers: ",
            how,
            ", and name the file of answers in a section import.NAME of ",
            file,
        )
    elif study.step(AnalyzeResponses) is None and not facts.waves:
        missing = "analyze" if of_people else "export.jspsych" if design else "design"
        step = (f"add a section [{missing}] to ", file, " and run it again")
    else:
        step = ("publish the study: ", code(f"contstim archive {study.path.name}"))
    yield Paragraph((strong("Next: "), *step))


def _progress(
    study: Study, states: Sequence[StageState], running: StudyStage | None, stopped: str
) -> Iterator[Part]:
    if running is not None and stopped:
        yield Paragraph(
            (
                strong(f"Stopped at {running.name}: "),
                *with_code(shorten(stopped, _LONGEST)),
                " Results so far are below. To continue: ",
                code(f"contstim run {study.path.name}"),
            )
        )
    elif running is not None:
        yield Paragraph(
            (
                strong(f"Running when this page was written: {running.name}"),
                f" ({running.about}). Reload this page to see the progress. If the run is killed, "
                "this page still shows the stage as running, until ",
                code(f"contstim status {study.path.name}"),
                " corrects the page.",
            )
        )
    numbers = {name: sum(s.state == name for s in states) for name in _STATES}
    done = f"{numbers.pop('done'):,} of {quantity(len(states), 'stage')} done"
    counts = "".join(f", {number:,} {name}" for name, number in numbers.items() if number)
    written = now().replace("T", " ").removesuffix("Z")
    about = f"Seed {study.seed}; contstim {__version__}; page written {written} UTC."
    yield Paragraph(f"{done}{counts}. {about}")


_STATES = ("done", "stale", "interrupted", "not done", "waits")


def _stages(
    states: Sequence[StageState], running: StudyStage | None, stopped: str
) -> Iterator[Part]:
    rows: list[tuple[Value, ...]] = []
    for stage_state in states:
        name, state, date, seconds, size, because = stage_state.row
        if running is not None and running.name == name:
            state = "stopped" if stopped else "running"
        cell: Value = state if state in ("done", "not done", "waits") else strong(state)
        rows.append((name, cell, date, seconds, size, because))
    header = ("stage", "state", "done (UTC)", "seconds", "size", "notes")
    table = Table(header, rows, texts=3, notes=1, is_wide=True)
    # The table is visible only during a run. Afterwards, the page begins with the results
    yield Details(quantity(len(rows), "stage"), [table], is_open=running is not None)
    recorded = ((state.stage.name, state.record) for state in states if state.record is not None)
    warnings = grouped((text, name) for name, record in recorded for text in record.warnings)
    if warnings:
        items: list[Text] = [
            (strong(", ".join(dict.fromkeys(names))), ": ", *with_code(text))
            for text, names in warnings.items()
        ]
        yield Details(quantity(len(items), "warning"), [Bullets(items)], is_open=len(items) < 4)


def _guarded(parts: Iterator[Part]) -> list[Part]:
    """Return the parts, or a paragraph that says why the parts cannot be shown.

    If a file that the page shows was changed or damaged, the run continues.
    """
    try:
        return list(parts)
    except ContstimError as error:
        return [Paragraph(f"This part cannot be shown: {error}")]
    except _DAMAGED as error:
        problem = f"{type(error).__name__}: {error}"
        return [Paragraph(f"This part cannot be shown: a file was changed or damaged ({problem}).")]


def _files(study: Study, states: Iterable[StageState]) -> Part:
    stages = [state.stage for state in states]
    written = {path for stage in stages for path in stage.writes}
    inputs = sorted({path for stage in stages for path in stage.reads})
    names = [("the study", Path(study.path.name))]
    names += [("given", path) for path in inputs if written.isdisjoint((path, *path.parents))]
    names += [(stage.name, path) for stage in stages for path in stage.writes]
    rows = [
        (name, link(path, path.as_posix()), size_of([path]))
        for name, path in names
        if path.exists()
    ]
    return Table(("stage", "file", "size"), rows, texts=2)
