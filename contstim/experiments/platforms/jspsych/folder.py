"""The export: a folder with a complete experiment, whose texts the researcher can edit."""

from __future__ import annotations

import csv
import json
import re
from contextlib import contextmanager, suppress
from html import escape
from importlib import resources
from io import StringIO
from itertools import product
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.experiments.platforms.folder import refuse_others, staging_folder
from contstim.experiments.platforms.jspsych.library import fetch_library, library_tags
from contstim.experiments.platforms.jspsych.study import PageSettings, PageStudy, build_study
from contstim.experiments.platforms.platform import Exported
from contstim.experiments.platforms.texts import LANGUAGES, has_texts, labels, text_of
from contstim.experiments.responses.questionnaire import read_questions
from contstim.files.documents import read_text, shortened
from contstim.files.files import write_text
from contstim.files.tables import needed_columns, parsed, read_csv, whole_number
from contstim.items.scale import Scale
from contstim.reporting.report import Report
from contstim.wording import find_duplicates, quantity
from contstim.words.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from contstim.items.stimuli import Trial

TEXTS = ("consent.md", "instructions.md", "debrief.md", "labels.csv", "examples.csv")
PRACTICE, QUESTIONS = "practice.csv", "questions.csv"

# Labels that earlier versions of contstim did not write to labels.csv; an export adds them
_LATER_LABELS = ("withdrawn", "preview")

_COLUMNS = {
    "labels.csv": ("name", "text"),
    "examples.csv": ("sentence_1", "sentence_2", "rating", "explanation"),
    PRACTICE: ("sentence_1", "sentence_2"),
}

_PART = re.compile(r'<script src="(parts/[\w/]+\.js)"')

# Names of scripts, in the order in which the page loads the scripts
_PARTS = "address markdown tables texts order watching keeping sending screens questions timeline"
_SCRIPTS = ("parts/escape.js", "study.js", *(f"parts/{name}.js" for name in _PARTS.split()))


def export_jspsych(
    trials: Sequence[Trial], folder: Path | str, settings: PageSettings | None = None
) -> Exported:
    """Write a web page on which people compare the two sentences of each trial.

    The folder contains the page, and a README that describes the next steps. You can edit the
    consent form, instructions, examples and debriefing in the folder. A later export into the same
    folder keeps edited texts.

    Example: `contstim export jspsych --trials trials.csv --out experiment --vendor`

    Args:
        trials: trials of all groups.
        folder: output folder, created when missing. An existing folder must be empty, be an earlier
            export, or contain only texts and tables for the page. After an error, the folder is
            unchanged.
        settings: the researcher's settings; None for the defaults.

    Raises:
        InputError: if the folder contains other files, or an invalid text or table; if jsPsych is
            not available; or if `check_trial_ids` refuses the trials.
        SentenceError: if a sentence of the trials has no words.
    """
    settings, folder = settings or PageSettings(), Path(folder)
    with new_page(trials, folder, settings) as (_, study, _):
        groups = study.groups.values()
    return Exported(
        folder,
        f"{folder}: {quantity(sum(map(len, groups)), 'pair')} in {quantity(len(groups), 'group')}. "
        f"Edit the texts there; {folder / 'README.md'} describes the next steps.",
        warning=unfilled_warning(folder),
        facts={"study": study.id},
        private=settings.has_secret,
    )


@contextmanager
def new_page(
    trials: Sequence[Trial], folder: Path, settings: PageSettings, *, inside: str = ""
) -> Iterator[tuple[Path, PageStudy, set[str]]]:
    """Write a page to a temporary folder; the files move to the target when the `with` block ends.

    Args:
        trials: trials of all groups.
        folder: target folder, as for `export_jspsych`; texts in it are kept.
        settings: the researcher's settings.
        inside: subfolder for the page; empty if the page is in the target folder itself.

    Yields:
        The temporary folder; the content of study.json; and the scripts of the earlier page that
        the new page does not load. These scripts are removed when the `with` block ends.

    Raises:
        InputError: if the folder contains other files; if a text or table is invalid; if jsPsych is
            not available; or if `check_trial_ids` refuses the trials.
    """
    page = folder / inside
    if _earlier_study(page) is None:
        refuse_others(page, ours=(*TEXTS, PRACTICE, QUESTIONS))
        if inside:
            refuse_others(folder, ours=(inside,))
    build_study(trials, settings, {})  # raises errors about the trials before all other errors
    with staging_folder(folder) as work:
        study = _write_page(trials, work / inside, settings, earlier=page)
        stale = _stale_scripts(page, work / inside)
        yield work, study, stale
    for name in stale:
        (page / name).unlink(missing_ok=True)
        with suppress(OSError):  # the folder contains other files
            (page / name).parent.rmdir()


def _earlier_study(page: Path) -> PageStudy | None:
    """Return the study of an earlier export; None without an earlier export."""
    with suppress(OSError, ValueError):
        return PageStudy.model_validate_json((page / "study.json").read_bytes())
    return None


def _write_page(
    trials: Sequence[Trial], work: Path, settings: PageSettings, *, earlier: Path
) -> PageStudy:
    # If the settings name no table of questions, the table of an earlier export is read
    path, marks = settings.questions or earlier / QUESTIONS, (trials[0].scale, *settings.marks)
    has_table = settings.questions or path.exists()
    questions = read_questions(path, settings.language) if has_table else ()
    if any(question.when == "check" for question in questions):
        marks += ("check",)
    texts = keep_texts(earlier, settings, into=work, marks=marks)
    study = build_study(trials, settings, texts, questions)
    vendored = settings.vendor or settings.library is not None
    if vendored:
        fetch_library(work / "vendor", settings.library, earlier=earlier / "vendor")
    _copy_page(work, settings, vendored=vendored)
    write_text(work / "study.js", study.script)
    readme = "\n".join(
        (resources.files(__package__) / "readme" / name).read_text(encoding="utf-8")
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
    """Return the scripts that an earlier page loads, and that the new page does not load.

    Such scripts belong to another version of contstim, or to another destination of the answers.
    The researcher's files are not returned, because the earlier index.html does not name them.
    """
    index = earlier / "index.html"
    if not index.is_file():
        return set()
    names = set(_PART.findall(index.read_text(encoding="utf-8", errors="replace")))
    return {name for name in names if not (page / name).is_file()}


def _copy_page(folder: Path, settings: PageSettings, *, vendored: bool) -> None:
    page = resources.files(__package__) / "page"
    # Names of these scripts end in `_backend`, because jatos.js is the name of JATOS's own script
    backend = f"parts/backends/{settings.save}_backend.js"
    scripts = [*_SCRIPTS, "parts/backends/no_server.js", backend, "experiment.js"]
    for name in {*scripts, "style.css"} - {"study.js"}:
        write_text(folder / name, page.joinpath(name).read_text(encoding="utf-8"))
    # Deferred scripts run in document order, after the page is parsed
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
    """Write missing and unedited texts, and return the texts that the page reads.

    Edited texts are kept. Unedited texts are written again, because scale or language may have
    changed. All existing texts are read before any text is written.

    Args:
        folder: folder of an earlier export; may be missing.
        settings: settings of the page. If the settings name no table of practice pairs or
            questions, existing tables are kept.
        into: destination of new texts.
        marks: names of properties of the page; the first is the scale of answers. Some lines of the
            default texts are only for pages with a certain property. Such a line is marked with the
            name of the property, and is included if `marks` contains this name.

    Raises:
        InputError: if a text cannot be read, or a table lacks a column or has an invalid cell.
    """
    names = sorted((*TEXTS, PRACTICE, QUESTIONS), key="labels.csv".__eq__)
    existing = [name for name in names if (folder / name).exists()]
    stale = _find_unedited(folder, existing, marks[0])
    existing = [name for name in existing if name not in stale]
    tables = {PRACTICE: settings.practice, QUESTIONS: settings.questions}
    added = {
        n: path for n, path in tables.items() if path and path.resolve() != (folder / n).resolve()
    }
    if PRACTICE in {*existing, *added}:
        marks += ("practice",)
    language = settings.language
    texts = {name: _read_text(folder / name, name, marks, language) for name in existing}
    new_texts = {name: text_of(name, language, marks) for name in TEXTS if name not in texts}
    new_texts |= {name: _read_text(path, name, marks, language) for name, path in added.items()}
    if rows := _missing_labels(texts.get("labels.csv", ""), language):
        new_texts["labels.csv"] = texts["labels.csv"].rstrip("\n") + "\n" + rows
    for name, text in new_texts.items():
        write_text(into / name, text)
    texts |= new_texts
    # Questions are not returned, because study.json contains them
    return {name: texts[name] for name in (*TEXTS, PRACTICE) if name in texts}


def _missing_labels(table: str, language: str) -> str:
    """Return CSV rows of the labels that a table of an earlier version lacks."""
    if not table:
        return ""
    header, *rows = table.splitlines()
    delimiter = ";" if ";" in header else ","
    names = {row.partition(delimiter)[0].strip('"') for row in rows}
    texts, lines = labels(language if has_texts(language) else LANGUAGES[0]), StringIO()
    missing = [(name, texts[name]) for name in _LATER_LABELS if name not in names]
    csv.writer(lines, delimiter=delimiter, lineterminator="\n").writerows(missing)
    return lines.getvalue()


def _find_unedited(folder: Path, existing: Collection[str], scale: str) -> set[str]:
    """Return the names of texts of an earlier export that equal a default text.

    Raises:
        InputError: if texts other than debrief.md were edited and the earlier export has another
            scale.
    """
    study = _earlier_study(folder)
    if study is None:
        return set()
    has = {"break": study.break_every, "deadline": study.deadline, "practice": PRACTICE in existing}
    known_marks = (study.scale, *(mark for mark, value in has.items() if value))
    # study.json lacks the language and some marks, so texts are compared with the default texts for
    # all combinations of these unknown values
    unknown_marks = product(LANGUAGES, ("personal_code", "no_code"), ((), ("check",)))
    pages = [(language, (*known_marks, code, *check)) for language, code, check in unknown_marks]
    defaults = {name: {text_of(name, *page) for page in pages} for name in TEXTS}
    texts = {name: read_text(folder / name) for name in defaults if name in existing}
    unedited = {name for name, text in texts.items() if text in defaults[name]}
    edited = sorted(texts.keys() - unedited - {"debrief.md"})
    if edited and study.scale != scale:
        raise InputError(
            f"{folder} has edited texts ({', '.join(edited)}) for the scale {study.scale}, but the "
            f"trials have the scale {scale}. Move these texts to another folder, or export to "
            "another folder."
        )
    return unedited


def _read_text(path: Path, name: str, marks: tuple[str, ...], language: str) -> str:
    if name in _COLUMNS:
        _check_table(path, name, marks, language)
    text = read_text(path)
    if "\0" in text:
        raise InputError(f"{path} contains null characters. Save it as UTF-8 text.")
    if name.endswith(".csv") and "\t" in text.partition("\n")[0]:
        raise InputError(
            f"{path} has cells separated by tabs. Save it as CSV, with commas or semicolons."
        )
    return text


def check_practice(path: Path) -> None:
    """Check a table of practice pairs.

    Raises:
        InputError: if the table cannot be read, lacks a column, or has an invalid cell.
    """
    _check_table(path, PRACTICE, (), LANGUAGES[0])


def _check_table(path: Path, name: str, marks: tuple[str, ...], language: str) -> None:
    table = read_csv(path, may_be_empty=name == "examples.csv")
    needed_columns(path, table, _COLUMNS[name])
    for sentence in ("sentence_1", "sentence_2"):
        parsed(path, sentence, table.get(sentence, ()), Sentence.parse, "sentence")
    if name == "examples.csv":
        scale = Scale(marks[0])

        def answer(cell: str) -> int:
            return scale.answers.index(whole_number(cell))  # ValueError if not on the scale

        parsed(path, "rating", table["rating"], answer, f"answer; give {scale.meaning}")
    parsed(path, "expected", table.get("expected", ()), ("", "1", "2").index, "1, 2 or nothing")
    if name == "labels.csv":
        text_language = language if has_texts(language) else LANGUAGES[0]
        default_rows = text_of(name, text_language, marks).splitlines()[1:]
        needed = {line.partition(",")[0]: line for line in default_rows}
        if missing := sorted(needed.keys() - {*table["name"], *_LATER_LABELS}):
            rows = "\n".join(needed[name] for name in missing)
            raise InputError(f"{path} lacks the labels {', '.join(missing)}. Add rows:\n{rows}")
        if duplicates := find_duplicates(table["name"]):
            raise InputError(f"{path} has the label {shortened(duplicates[0])} twice. Remove one.")


# Text in square brackets, unless an address in round brackets follows (a Markdown link)
_BRACKETS = re.compile(r"\[[^\]\n]+\](?!\()")


def unfilled_warning(folder: Path) -> str:
    """Return a warning about placeholders in square brackets; empty if the texts have none."""
    # Only the placeholders of the default texts count; researchers may write other brackets
    defaults = "".join(text_of(name, language) for name in TEXTS for language in LANGUAGES)
    unfilled = []
    for name in TEXTS:
        with suppress(OSError, UnicodeDecodeError):
            text = (folder / name).read_text(encoding="utf-8-sig")
            remaining = [b for b in dict.fromkeys(_BRACKETS.findall(defaults)) if b in text]
            unfilled += [f"{name}: {', '.join(remaining)}"] if remaining else []
    if not unfilled:
        return ""
    return (
        f"the texts of {folder} still contain placeholders, which participants would see. "
        f"Replace these before the study starts. {'; '.join(unfilled)}"
    )
