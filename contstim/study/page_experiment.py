"""The page of a study, from trials to results: the design, what people see, power and analysis.

Everything is read from the files and records that stages wrote; nothing is computed anew.
"""

from __future__ import annotations

import re
from collections import Counter
from importlib import resources
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from contstim.documents import read_text
from contstim.records import Record, record_path
from contstim.reporting.report import (
    Bullets,
    Details,
    Heading,
    Paragraph,
    Picture,
    Table,
    button,
    emphasis,
    strong,
)
from contstim.stimuli import Condition, read_trials
from contstim.study.page_materials import facts_of, link
from contstim.study.places import ANALYSIS, POWER, TRIALS
from contstim.study.study import RESULTS
from contstim.tables import read_table
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contstim.reporting.report import Part, Span, Text, Value
    from contstim.stimuli import Trial
    from contstim.study.places import StudyFiles

_EXPORTS = RESULTS / "export"
_ACROSS = 4  # models that stand beside one another in a table


def design_part(files: StudyFiles) -> Iterator[Part]:
    """Number of trials of each group, their duration, and the figure of the design."""
    if not TRIALS.is_file():
        return
    trials = read_trials(TRIALS)
    settings = files.study.sections["design"]
    groups: dict[int, list[Trial]] = {}
    for trial in trials:
        groups.setdefault(trial.group, []).append(trial)
    longest = max(map(len, groups.values()), default=0)
    minutes = longest * settings.seconds_per_trial / 60
    conditions = Counter(trial.condition for trial in trials)
    yield Table(
        ("", "number"),
        [
            ("trials", f"{len(trials):,}"),
            ("groups of participants", f"{len(groups):,}"),
            ("trials for each participant", f"{longest:,}"),
            ("minutes, without instructions and pauses", f"{minutes:.0f}"),
            *((f"trials: {name}", f"{number:,}") for name, number in conditions.items()),
        ],
    )
    if changed := facts_of(TRIALS).get("changed"):
        rows = [(f"{c['row']:,}", f"{c['group']}", c["before"], c["now"]) for c in changed]
        title = f"{len(changed):,} of {counted(len(trials), 'trial')} changed after the review"
        yield Details(title, [Table(("row", "group", "before", "now"), rows, texts=4)])
    yield from _cautions(TRIALS, POWER, ANALYSIS / "report.html")
    figure = Path(f"{TRIALS}.summary.png")
    if figure.is_file():
        yield Picture("design", figure.read_bytes(), "trials by group, sources, and balance")
    yield Paragraph(
        (
            link(TRIALS, "All trials"),
            "; ",
            link(Path(f"{TRIALS}.summary.md"), "the summary of the design"),
            ".",
        )
    )


def _cautions(output: Path, *later: Path) -> Iterator[Part]:
    """Warnings about an output, to be read before its numbers; none that later ones repeat."""
    texts, *repeated = (
        record.warnings if (record := Record.read(record_path(path))) else ()
        for path in (output, *later)
    )
    for text in dict.fromkeys(texts):
        if not any(text in of_later for of_later in repeated):
            yield Paragraph((strong("Mind: "), text))


def participant_part(files: StudyFiles) -> Iterator[Part]:
    """A trial as on the page, the instructions, and links to what was exported."""
    if not TRIALS.is_file():
        return
    exports = [_EXPORTS / name for name in files.study.exports if (_EXPORTS / name).is_dir()]
    page = next((folder for folder in exports if (folder / "labels.csv").is_file()), None)
    default = resources.files("contstim.experiments.platforms.jspsych") / "defaults" / "labels.csv"
    with resources.as_file(default) as path:
        table = read_table(path if page is None else page / "labels.csv")
    labels = dict(zip(table["name"], table["text"], strict=True))
    trials = [trial for trial in read_trials(TRIALS) if trial.group == 1]
    # A trial with a synthetic sentence shows best what is asked of people
    trial = next((t for t in trials if t.condition is Condition.NATURAL_SYNTHETIC), trials[0])
    words = [labels[name] for name in ("very_confident", "confident", "somewhat_confident")]
    buttons = [f"{n} {word}" for n, word in enumerate((*words, *reversed(words)), start=1)]
    left, right = (tuple(map(button, half)) for half in (buttons[:3], buttons[3:]))
    yield Paragraph(("A trial of group 1. ", strong(labels["question"])))
    yield Table(
        (trial.sentence_1.bare, trial.sentence_2.bare), [(left, right)], texts=2, is_wide=True
    )
    yield Paragraph(
        "Which sentence stands left is drawn for each participant and balanced.", note=True
    )
    if page is not None:
        instructions = page / "instructions.md"
        if instructions.is_file():
            text = read_text(instructions).replace("{pairs}", f"{len(trials):,}")
            yield Details("The instructions", list(_instructions(text)))
    for folder in exports:
        runs: list[Any] = [f"{folder.name}: "]
        for name, what in (
            ("index.html", "the experiment"),
            ("consent.md", "consent"),
            ("instructions.md", "instructions"),
            ("debrief.md", "debriefing"),
            ("README.md", "how to go on"),
        ):
            if (folder / name).is_file():
                runs += [link(folder / name, what), ", "]
        yield Paragraph((*runs, link(folder, "all files")))
        yield from _cautions(folder)


_MARKS = re.compile(r"\{(\w+)\}\s*")
_STYLES = re.compile(r"(\*\*.+?\*\*|\*.+?\*)")


def _instructions(text: str) -> Iterator[Part]:
    """The Markdown of instructions as on a wide screen with a keyboard."""
    for block in re.split(r"\n\s*\n", text.strip()):
        if set(block) == {"-"}:
            continue  # where a new page begins
        heading, _, rest = block.partition("\n") if block.startswith("#") else ("", "", block)
        if heading:
            yield Paragraph((strong(heading.lstrip("# ")),))
        items = re.split(r"(?m)^\s*[-*]\s+", rest)
        if len(items) > 1:
            yield Bullets([_inline(item) for item in items[1:] if _on_a_wide_screen(item)])
        elif rest.strip() and _on_a_wide_screen(rest):
            yield Paragraph(_inline(rest))


def _on_a_wide_screen(text: str) -> bool:
    return not {"narrow", "touch"} & set(_MARKS.findall(text))


def _inline(text: str) -> Text:
    """A line with its **bold** and *italic* runs."""
    runs: list[str | Span] = []
    for run in _STYLES.split(_MARKS.sub("", " ".join(text.split()))):
        if run.startswith("**") and len(run) > 4:
            runs.append(strong(run[2:-2]))
        elif run.startswith("*") and len(run) > 2:
            runs.append(emphasis(run[1:-1]))
        else:
            runs.append(run)
    return tuple(runs)


def power_part(files: StudyFiles) -> Iterator[Part]:
    """Findings to expect of the design, and the gain from more people or more items."""
    from contstim.experiments.design.population import AS_MEASURED
    from contstim.experiments.design.power_report import ALTERNATIVE

    del files
    path, sizes = Path(f"{TRIALS}.power.csv"), Path(f"{TRIALS}.power-sizes.csv")
    if not path.is_file() or not sizes.is_file():
        return
    yield from _cautions(POWER, ANALYSIS / "report.html")
    accuracies: dict[str, list[float]] = {}  # of the models that people follow most, by scope
    table = read_table(path)
    for scope, accuracy, first in zip(
        *(table[name] for name in ("scope", "expected_accuracy", "first")), strict=True
    ):
        if first != "":
            accuracies.setdefault(scope, []).append(float(accuracy))
    table = read_table(sizes)
    names = (
        *("scope", "first_low", "first_high"),
        *("significantly_better_low", "significantly_better_high", "detectable_difference"),
    )
    columns = zip(*(table[name] for name in names), strict=True)
    planned: dict[str, tuple[Value, ...]] = {}  # the first row of a scope is that of the design
    for scope, *rates, least in columns:
        ends = [f"{float(rate):.0%}" for rate in rates]
        shares = [" to ".join(dict.fromkeys(ends[place : place + 2])) for place in (0, 2)]
        accuracy = f"{fmean(accuracies[scope]):.3f}"
        difference = f"{float(least):.3f}" if least != "" else "–"
        planned.setdefault(scope, (scope, *shares, accuracy, difference))
    header = ("trials", "comes first", "significantly better", "its expected accuracy")
    yield Table((*header, "smallest difference found"), list(planned.values()))
    followed = dict.fromkeys(read_table(path)["people"])
    whom = (
        "People follow all models, as in the pilot"
        if AS_MEASURED in followed
        else "Each model in turn is planted as the one that people follow most, and ranges are for "
        "close and for distant rivals"
    )
    yield Paragraph(
        f"{whom}, in experiments with new people and new items: how often the model that predicts "
        "them best has the highest accuracy, how many of its comparisons with other models become "
        "significant in its favour, how many choices it predicts, and from which difference on one "
        "test finds two models different in 80 % of experiments.",
        note=True,
    )
    figure = Path(f"{TRIALS}.power.png")
    if figure.is_file():
        yield Picture(figure.stem, figure.read_bytes(), ALTERNATIVE)
    report = Path(f"{TRIALS}.power.md")
    yield Paragraph(
        (
            link(report, "Assumptions, how many trials suffice, and what more would buy"),
            "; ",
            link(path, "all comparisons"),
            ", ",
            link(sizes, "all sizes"),
            ".",
        )
    )


def analysis_part(files: StudyFiles) -> Iterator[Part]:
    """Who agrees with people: the figure over all trials, and a table by kind of trial."""
    del files
    report, table_path = ANALYSIS / "report.html", ANALYSIS / "tables" / "models.csv"
    if not report.is_file():
        return
    facts = facts_of(report)
    people, left_out = facts.get("participants"), facts.get("left_out", {})
    if people is not None:
        yield Paragraph(
            (
                f"{counted(people, 'participant')} compared with models, "
                f"{len(left_out) or 'none'} left out. ",
                link(report, "The whole report"),
                " has all figures and tests.",
            )
        )
    if left_out:
        rows: list[tuple[Value, ...]] = list(left_out.items())
        yield Details("Who was left out", [Table(("participant", "why"), rows, texts=2)])
    yield from _cautions(ANALYSIS / "report.html")
    figures = sorted((ANALYSIS / "figures").glob("*overall*.png"))
    figures += sorted((ANALYSIS / "figures").glob("accuracy-*.png"))
    for figure in figures[:1]:
        yield Picture(figure.stem, figure.read_bytes(), f"models and people: {figure.stem}")
    if table_path.is_file():
        yield from _accuracies(table_path)


def _accuracies(path: Path) -> Iterator[Part]:
    """Accuracy of each model by kind of trial, the best in bold."""
    table = read_table(path)
    columns = (table[name] for name in ("scope", "measure", "model", "value"))
    values: dict[str, dict[str, str]] = {}
    for scope, measure, model, value in zip(*columns, strict=True):
        if measure == "accuracy":
            values.setdefault(model, {})[scope] = value
    scopes = list(dict.fromkeys(scope for of_model in values.values() for scope in of_model))
    best = {
        scope: max(float(numbers[scope]) for numbers in values.values() if scope in numbers)
        for scope in scopes
    }

    def cell(model: str, scope: str) -> Value:
        number = float(values[model].get(scope, "nan"))
        return strong(f"{number:.3f}") if number == best[scope] else f"{number:.3f}"

    yield Heading("Share of people's choices that each model predicts", 3)
    if len(values) <= _ACROSS:
        rows = [(scope, *(cell(model, scope) for model in values)) for scope in scopes]
        yield Table(("trials", *values), rows)
    else:
        rows = [(model, *(cell(model, scope) for scope in scopes)) for model in values]
        yield Table(("model", *scopes), rows)
    yield Paragraph(
        "Chance is 0.5. Bold: the highest of each kind of trial, which need not be significantly "
        "higher than the next. The report has the tests, and how high a model could come at most.",
        note=True,
    )


def simulated_warning(files: StudyFiles) -> str:
    """Warning above everything where answers are artificial; empty where people gave all."""
    from contstim.experiments.responses.table import origin_of
    from contstim.study.stages import responses_of

    return origin_of(responses_of(files)).warning
