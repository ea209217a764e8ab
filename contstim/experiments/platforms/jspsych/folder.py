"""The export: a folder that holds a whole experiment, with texts that the researcher edits."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from contextlib import contextmanager, suppress
from html import escape
from importlib import resources
from io import StringIO
from itertools import product
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.experiments.platforms.folder import refuse_others, staged
from contstim.experiments.platforms.jspsych.library import fetch_library, library_tags
from contstim.experiments.platforms.jspsych.study import (
    PageSettings,
    PageStudy,
    build_study,
)
from contstim.experiments.platforms.platform import Exported
from contstim.experiments.platforms.texts import LANGUAGES, has_texts, labels, text_of
from contstim.experiments.responses.questionnaire import read_questions
from contstim.files.documents import read_text, shortened
from contstim.files.files import write_text
from contstim.files.tables import needed_columns, parsed, read_csv, whole_number
from contstim.items.scale import Scale
from contstim.reporting.report import Report
from contstim.wording import counted
from contstim.words.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from contstim.experiments.responses.questionnaire import Question
    from contstim.items.stimuli import Trial

_ROOM = "contstim.experiments.platforms.jspsych"

TEXTS = ("consent.md", "instructions.md", "debrief.md", "labels.csv", "examples.csv")
PRACTICE, QUESTIONS = "practice.csv", "questions.csv"

_LATER_LABELS = ("withdrawn", "preview")
"""Labels that tables of earlier versions lack; an export adds them."""

_COLUMNS = {
    "labels.csv": ("name", "text"),
    "examples.csv": ("sentence_1", "sentence_2", "rating", "explanation"),
    PRACTICE: ("sentence_1", "sentence_2"),
}

_PART = re.compile(r'<script src="(parts/[\w/]+\.js)"')

# In the order in which they are loaded.
_PARTS = "address markdown tables texts order watching keeping sending screens questions timeline"
_SCRIPTS = ("parts/escape.js", "study.js", *(f"parts/{name}.js" for name in _PARTS.split()))


def export_jspsych(
    trials: Sequence[Trial], folder: Path | str, settings: PageSettings | None = None
) -> Exported:
    """Write a page on which people compare the sentences of each trial, and say how sure they are.

    The folder holds everything: the page, consent, instructions, examples and debriefing to edit,
    and a README that says what to do. Exported again, it keeps the texts.

    Example: `contstim export jspsych --trials trials.csv --out experiment --vendor`

    Args:
        trials: of all groups.
        folder: made if need be; an existing one must be empty or an earlier export. All is written
            at once: where something is wrong, the folder stays as it was.
        settings: what the researcher decides; defaults where None.

    Raises:
        InputError: the folder holds something else, a text or table in it is not usable, jsPsych
            cannot be had, or there are no trials.
        SentenceError: a sentence of the trials has no words.
    """
    settings, folder = settings or PageSettings(), Path(folder)
    with new_page(trials, folder, settings) as (_, study, _):
        groups = study.groups.values()
    return Exported(
        folder,
        f"{folder}: {counted(sum(map(len, groups)), 'pair')} in {counted(len(groups), 'group')}. "
        f"Edit the texts there; {folder / 'README.md'} says how to go on.",
        warning=unfilled_warning(folder),
        facts={"study": study.id},
        private=settings.has_secret,
    )


@contextmanager
def new_page(
    trials: Sequence[Trial], folder: Path, settings: PageSettings, *, inside: str = ""
) -> Iterator[tuple[Path, PageStudy, set[str]]]:
    """A page in a new folder, whose files move into the target when the block ends.

    Args:
        trials: of all groups.
        folder: the target, new or of an earlier export, whose texts are kept.
        settings: what the researcher decides.
        inside: the folder in it that holds the page; empty where it is the page itself.

    Yields:
        The new folder; the content of study.json; and scripts of the earlier page that the new one
        does not load, which will be removed.

    Raises:
        InputError: the folder holds something else, a text or table is not usable, or jsPsych
            cannot be had.
    """
    page = folder / inside
    try:
        PageStudy.model_validate_json((page / "study.json").read_bytes())
    except (OSError, ValueError):  # no earlier export
        refuse_others(page, ours=(*TEXTS, PRACTICE, QUESTIONS))
        if inside:
            refuse_others(folder, ours=(inside,))
    build_study(trials, settings, {})  # what is wrong with the trials is said before all else
    with staged(folder) as work:
        study = _write_page(trials, work / inside, settings, earlier=page)
        stale = _stale_scripts(page, work / inside)
        yield work, study, stale
    for name in stale:
        (page / name).unlink(missing_ok=True)
        with suppress(OSError):  # other files are in it
            (page / name).parent.rmdir()


def _write_page(
    trials: Sequence[Trial], work: Path, settings: PageSettings, *, earlier: Path
) -> PageStudy:
    asked, marks = _asked(earlier, settings), (trials[0].scale, *settings.marks)
    if any(question.when == "check" for question in asked):
        marks += ("check",)
    texts = keep_texts(earlier, settings, into=work, marks=marks)
    study = build_study(trials, settings, texts, asked)
    vendored = settings.vendor or settings.library is not None
    if vendored:
        fetch_library(work / "vendor", settings.library, earlier=earlier / "vendor")
    _copy_page(work, settings, vendored=vendored)
    write_text(work / "study.js", study.script)
    readme = "\n".join(
        (resources.files(_ROOM) / "readme" / name).read_text(encoding="utf-8")
        for name in (f"{settings.save}.md", "texts.md")
    )
    filled = Template(readme).substitute(
        folder=earlier.resolve().name,
        heading=Report(settings.heading, ()).markdown().strip(),
        groups=len(study.groups),
        pairs=max(map(len, study.groups.values())),
        first=next(iter(study.groups)),
        scale=study.scale.meaning,
    )
    write_text(work / "README.md", filled)
    content = json.dumps(study.model_dump(), indent=1, ensure_ascii=False)
    write_text(work / "study.json", content + "\n")
    return study


def _stale_scripts(earlier: Path, page: Path) -> set[str]:
    """Our scripts that an earlier export of a page loads and the new one does not.

    They are of another version, or send the answers elsewhere. The earlier index.html names them,
    so that no file of the researcher's is meant.

    Args:
        earlier: the folder of the earlier export, or none.
        page: the folder of the new one.
    """
    index = earlier / "index.html"
    if not index.is_file():
        return set()
    names = set(_PART.findall(index.read_text(encoding="utf-8", errors="replace")))
    return {name for name in names if not (page / name).is_file()}


def _copy_page(folder: Path, settings: PageSettings, *, vendored: bool) -> None:
    page = resources.files(_ROOM) / "page"
    # No file of ours may be called jatos.js: that is the name of JATOS's own.
    backend = f"parts/backends/{settings.save}_backend.js"
    scripts = [*_SCRIPTS, "parts/backends/no_server.js", backend, "experiment.js"]
    # study.js is written out of the trials, not copied.
    for name in {*scripts, "style.css"} - {"study.js"}:
        write_text(folder / name, page.joinpath(name).read_text(encoding="utf-8"))
    # Deferred scripts run in the order in which they stand, when the page has been read.
    elements = "\n".join(f'  <script src="{name}" defer></script>' for name in scripts)
    jatos = '  <script src="jatos.js"></script>\n' if settings.save == "jatos" else ""
    index = page.joinpath("index.html").read_text(encoding="utf-8")
    filled = Template(index).substitute(
        language=settings.language,
        title=escape(settings.heading),
        scripts=f"{jatos}{library_tags(vendored=vendored)}\n{elements}",
    )
    write_text(folder / "index.html", filled)


def keep_texts(
    folder: Path,
    settings: PageSettings,
    *,
    into: Path,
    marks: tuple[str, ...] = (Scale.CONFIDENCE,),
) -> dict[str, str]:
    """Write the texts that a folder lacks, and read those that the page reads as they stand.

    Those that nobody edited are written anew: scale or language may be others now. Nothing is
    written before all that is there has been read.

    Args:
        folder: of an earlier export, or none.
        settings: tables of practice and questions to take their places; None: what is there.
        into: where texts are written that the folder lacks.
        marks: of what they speak of: the scale, and what else the page has.

    Raises:
        InputError: a text cannot be read, or a table lacks a column or holds what it cannot.
    """
    # Labels last, since other tables decide which are needed
    every = sorted((*TEXTS, PRACTICE, QUESTIONS), key="labels.csv".__eq__)
    there = [name for name in every if (folder / name).exists()]
    stale = _unedited(folder, there, marks[0])
    there = [name for name in there if name not in stale]
    given = {PRACTICE: settings.practice, QUESTIONS: settings.questions}
    added = {
        n: path for n, path in given.items() if path and path.resolve() != (folder / n).resolve()
    }
    if PRACTICE in {*there, *added}:
        marks += ("practice",)
    language = settings.language
    texts = {name: _read_text(folder / name, name, marks, language) for name in there}
    lacking = {name: text_of(name, language, marks) for name in TEXTS if name not in texts}
    # A table that is in its place already is not copied onto itself.
    lacking |= {name: _read_text(path, name, marks, language) for name, path in added.items()}
    if rows := _later_labels(texts.get("labels.csv", ""), language):
        lacking["labels.csv"] = texts["labels.csv"].rstrip("\n") + "\n" + rows
    for name, text in lacking.items():
        write_text(into / name, text)
    texts |= lacking
    # Questions stand in study.json: the page could not say what is wrong with their table
    return {name: texts[name] for name in (*TEXTS, PRACTICE) if name in texts}


def _later_labels(table: str, language: str) -> str:
    """Rows of labels that a table of an earlier version lacks."""
    if not table:
        return ""
    header, *rows = table.splitlines()
    delimiter = ";" if ";" in header else ","
    names = {row.partition(delimiter)[0].strip('"') for row in rows}
    texts, lines = labels(language if has_texts(language) else LANGUAGES[0]), StringIO()
    missing = [(name, texts[name]) for name in _LATER_LABELS if name not in names]
    csv.writer(lines, delimiter=delimiter, lineterminator="\n").writerows(missing)
    return lines.getvalue()


def _asked(folder: Path, settings: PageSettings) -> tuple[Question, ...]:
    """The questions of the settings, or else of an earlier export."""
    path = settings.questions or folder / QUESTIONS
    there = settings.questions or path.exists()
    return read_questions(path, settings.language) if there else ()


def _unedited(folder: Path, there: Collection[str], scale: str) -> set[str]:
    """Texts that stand as an earlier export wrote them.

    Raises:
        InputError: others tell of another scale than this one.
    """
    try:
        before = PageStudy.model_validate_json((folder / "study.json").read_bytes())
    except (OSError, ValueError):  # no earlier export
        return set()
    has = {"break": before.break_every, "deadline": before.deadline, "practice": PRACTICE in there}
    known = (before.scale, *(mark for mark, is_there in has.items() if is_there))
    # What else it had, study.json does not say
    others = product(LANGUAGES, ("personal_code", "no_code"), ((), ("check",)))
    pages = [(language, (*known, code, *check)) for language, code, check in others]
    ours = {name: {text_of(name, *page) for page in pages} for name in TEXTS}
    texts = {name: read_text(folder / name) for name in ours if name in there}
    unedited = {name for name, text in texts.items() if text in ours[name]}
    edited = sorted(texts.keys() - unedited - {"debrief.md"})
    if edited and before.scale != scale:
        raise InputError(
            f"{folder} asks for answers on the scale {before.scale}, and its texts were edited: "
            f"{', '.join(edited)}. Move these away, or export into another folder."
        )
    return unedited


def _read_text(path: Path, name: str, marks: tuple[str, ...], language: str) -> str:
    if name in _COLUMNS:
        _check_table(path, name, marks, language)
    text = read_text(path)
    if "\0" in text:
        raise InputError(f"{path} holds null characters: save it as a text in UTF-8.")
    if name.endswith(".csv") and "\t" in text.partition("\n")[0]:
        raise InputError(
            f"{path} has tabs between cells: save it as CSV, with commas or semicolons."
        )
    return text


def check_practice(path: Path) -> None:
    """Refuse what is no table of pairs to practise on.

    Raises:
        InputError: it cannot be read, or lacks a column, or a cell is something else.
    """
    _check_table(path, PRACTICE, (), LANGUAGES[0])


def _check_table(path: Path, name: str, marks: tuple[str, ...], language: str) -> None:
    # A page may go without examples, but neither without labels nor with empty practice.
    table = read_csv(path, may_be_empty=name == "examples.csv")
    needed_columns(path, table, _COLUMNS[name])
    # Labels have no sentences, so that nothing is parsed there.
    for sentence in ("sentence_1", "sentence_2"):
        parsed(path, sentence, table.get(sentence, ()), Sentence.parse, "sentence")
    if name == "examples.csv":
        scale = Scale(marks[0])

        def answer(cell: str) -> int:
            return scale.answers.index(whole_number(cell))  # a ValueError where it is none

        parsed(path, "rating", table["rating"], answer, f"answer; give {scale.meaning}")
    parsed(path, "expected", table.get("expected", ()), ("", "1", "2").index, "1, 2 or nothing")
    if name == "labels.csv":
        spoken = language if has_texts(language) else LANGUAGES[0]
        ours = text_of(name, spoken, marks).splitlines()[1:]
        needed = {line.partition(",")[0]: line for line in ours}
        if missing := sorted(needed.keys() - {*table["name"], *_LATER_LABELS}):
            rows = "\n".join(needed[each] for each in missing)
            raise InputError(f"{path} lacks the labels {', '.join(missing)}. Add rows:\n{rows}")
        if len(set(table["name"])) < len(table["name"]):
            twice = Counter(table["name"]).most_common(1)[0][0]
            raise InputError(f"{path} has the label {shortened(twice)} twice; leave one out.")


# Square brackets, but not those of a link, which an address in round brackets follows.
_BRACKETS = re.compile(r"\[[^\]\n]+\](?!\()")


def unfilled_warning(folder: Path) -> str:
    """Warning, before people come, of placeholders of our texts; empty where all are filled in."""
    # Brackets that the researcher writes are the researcher's own; only those of our texts count.
    defaults = "".join(text_of(name, each) for name in TEXTS for each in LANGUAGES)
    left = []
    for name in TEXTS:
        with suppress(OSError, UnicodeDecodeError):
            text = (folder / name).read_text(encoding="utf-8-sig")
            found = [each for each in dict.fromkeys(_BRACKETS.findall(defaults)) if each in text]
            left += [f"{name}: {', '.join(found)}"] if found else []
    if not left:
        return ""
    return (
        f"the texts of {folder} still hold placeholders, which participants would read. Edit them "
        f"before anybody takes part. {'; '.join(left)}"
    )
