"""The page of a study at every stage of a run.

Witnesses: Python's HTML parser, the linked files, and the content of the study.
"""

import os
import random
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from dataclasses import replace
from html import escape
from html.parser import HTMLParser
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from contstim.english import generate
from contstim.errors import InputError
from contstim.experiments.analysis.page import write_analysis
from contstim.experiments.analysis.run import analyze
from contstim.files.records import record_path
from contstim.files.tables import write_table
from contstim.items.stimuli import read_triplets
from contstim.models.loading import Loading
from contstim.reporter import Reporter
from contstim.reporting.report import Report
from contstim.steps.analysis import AnalyzeResponses
from contstim.steps.platforms import ExportTrials, export_step
from contstim.steps.review import WriteReviewPage
from contstim.steps.simulation import SimulateResponses
from contstim.steps.step import Outcome, Step, perform
from contstim.study.handing_on.facts import StudyFacts
from contstim.study.page import correct_page, next_step, study_page
from contstim.study.page_sections import accuracies
from contstim.study.running import run_study
from contstim.study.states import stage_states
from contstim.study.study import PAGE, Study, StudyStage, TextsSection
from contstim.study.study_file import read_study
from tests.cli.running import succeed
from tests.experiments.analysis.simulation import simulate

STUDY = """\
title = "Frequent <b>words</b>"
seed = 1
[texts]
training = "training.txt"
natural = "more.txt"
[models]
unigram = { train = "ngram", order = 1 }
"a bigram" = { train = "ngram", order = 2 }
[vocabulary]
[sentences]
words = "8"
[select.natural]
per_pair = 3
[triplets]
per_pair = 3
frame = "none"
restarts = 1
max_changes = 1
[review]
[design]
groups = 3
random_per_group = 1
catch_per_group = 1
[power]
simulations = 1
[simulate]
model = "a bigram"
[export.jspsych]
"""


SEARCHING = "nearly all triplets"
_EMPTY = (TextsSection(), (), Loading())


class _Page(HTMLParser):
    """Headings, texts and links of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.headings: list[str] = []
        self.texts: list[str] = []
        self.alerts = 0
        self.folded: list[str] = []
        self._depth = 0
        self._tag = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self._tag = tag
        self.alerts += attributes.get("role") == "alert"
        self._depth += tag == "details"
        if tag == "a":
            self.links.append(attributes["href"] or "")
        assert tag != "script"
        assert not (attributes.get("src") or "").startswith("http")

    def handle_endtag(self, tag: str) -> None:
        self._depth -= tag == "details"

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if self._tag == "summary":
            # Outermost folded parts, except those that begin with a number
            self.folded += [data] * (self._depth == 1 and not data[0].isdigit())
            self._tag = ""
        if self._tag in ("h1", "h2"):
            self.headings.append(data)
            self._tag = ""

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())


WORDS = (
    "old young small large quiet busy happy rich",
    "man woman doctor teacher farmer sailor baker painter dog horse",
    "saw met helped called heard followed thanked painted",
    "today yesterday again often early late twice",
)


def _make_text(number: int, seed: int) -> str:
    """Return sentences of eight words, one per line; faster than the embedded English."""
    rng = random.Random(seed)
    adjectives, nouns, verbs, adverbs = (words.split() for words in WORDS)
    lines = []
    for _ in range(number):
        (old, young), (man, dog) = rng.sample(adjectives, 2), rng.sample(nouns, 2)
        # Frequent word pairs, which the bigram model can learn
        verb = verbs[nouns.index(man) % len(verbs)] if rng.random() < 0.7 else rng.choice(verbs)
        lines.append(f"The {old} {man} {verb} a {young} {dog} {rng.choice(adverbs)}.")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, dict[str, _Page]]:
    """A finished study, and its page at the beginning of each stage."""
    folder = tmp_path_factory.mktemp("study")
    (folder / "training.txt").write_text(_make_text(300, seed=1))
    (folder / "more.txt").write_text(_make_text(100, seed=2))
    (folder / "study.toml").write_text(STUDY)
    study = read_study(folder)
    pages: dict[str, _Page] = {}
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setattr("contstim.study.running.perform", _record_pages(study, pages))
        patch.setattr("contstim.study.running._PAGE_SECONDS", 0.0)
        warnings.simplefilter("ignore")  # the text is small
        run_study(study, reporter=_SearchReporter(pages))
    return study, pages


FinishedRun = tuple[Study, dict[str, _Page]]


@pytest.fixture
def study(finished_run: FinishedRun) -> Study:
    return finished_run[0]


class _SearchReporter(Reporter):
    """Reads the page before the last triplet of a search is found."""

    def __init__(self, pages: dict[str, _Page]) -> None:
        self._pages = pages

    def progress(self, what: str, done: float, total: float | None, _note: str = "") -> None:
        if what == "triplets" and done == total:
            self._pages.setdefault(SEARCHING, _Page(PAGE.read_text()))


def _record_pages(study: Study, pages: dict[str, _Page]) -> Callable[..., Outcome[Any]]:
    """Return a function that reads the page and then performs a step."""
    names = {id(stage.step): stage.name for stage in study.stages}

    def record_and_perform(step: Step[Any], reporter: Reporter) -> Outcome[Any]:
        pages[names[id(step)]] = _Page(PAGE.read_text())
        return perform(step, reporter)

    return record_and_perform


def _make_report(study: Study) -> Report:
    states = stage_states(study)
    with chdir(study.folder):
        return study_page(study, states)


def _make_page(study: Study) -> _Page:
    return _Page(_make_report(study).html())


def _read_page(study: Study) -> _Page:
    return _Page((study.folder / PAGE).read_text())


def test_page_follows_the_run(finished_run: FinishedRun) -> None:
    study, all_pages = finished_run
    pages = {name: page for name, page in all_pages.items() if name != SEARCHING}
    names = [stage.name for stage in study.stages]
    assert list(pages) == names
    for number, (name, page) in enumerate(pages.items()):
        assert f"Running when this page was written: {name} (" in page.text
        assert f" {number} of {len(names)} stages done" in page.text
    last_page = _read_page(study)
    assert "Running" not in last_page.text
    assert f" {len(names)} of {len(names)} stages done." in last_page.text
    assert "Figures of all triplets:" in last_page.text
    # Headings appear with their content and are not removed
    seen_headings: set[str] = set()
    for page in (*pages.values(), last_page):
        assert "cannot be shown" not in page.text
        headings = {*page.headings, *page.folded}
        assert seen_headings <= headings
        seen_headings |= headings
    assert seen_headings == {
        *("Frequent <b>words</b>", "Stages of the study", "Models", "Texts, words and sentences"),
        *("How often the models agree", "Pairs and triplets", "Some items", "Reviews"),
        *("The experiment", "What a participant will see", "What the experiment can show"),
        *("What was left out", "Files"),
    }


def test_page_shows_first_triplets_during_the_search(finished_run: FinishedRun) -> None:
    """Witness: the table of triplets at the end of the search."""
    study, pages = finished_run
    page = pages[SEARCHING]
    assert "Preliminary results of triplets" in page.headings
    triplets = read_triplets(study.folder / "results" / "triplets.csv")
    assert triplets[0].natural.bare in page.text
    assert "Preliminary results of triplets" not in _read_page(study).headings


@pytest.mark.parametrize(
    ("sections", "export", "has_data", "is_done", "text"),
    [
        ([], True, False, False, "run the remaining stages: contstim run study.toml"),
        ([], True, False, True, "review the items: pairs.html, triplets.html, trials.html, and"),
        (["review"], True, False, True, "edit the texts that participants read: consent.md, debri"),
        (["review"], False, False, True, "add a section [export.jspsych] to study.toml and run"),
        (["review"], "qualtrics", False, True, "collect answers: results/export/qualtrics, and na"),
        (["review"], True, True, True, "add a section [analyze] to study.toml and run it again"),
        (["review", "-"], True, True, True, "publish the study: contstim archive study.toml"),
    ],
)
def test_page_names_the_next_step(
    study: Study, sections: list[str], export: bool | str, has_data: bool, is_done: bool, text: str
) -> None:
    """By hand, for studies with fewer and fewer remaining steps."""
    omitted_steps: list[type[Step[Any]]] = [] if export is True else [ExportTrials]
    omitted_steps += [WriteReviewPage] * ("review" in sections)
    omitted_steps += [SimulateResponses] * has_data
    stages = [stage for stage in study.stages if not isinstance(stage.step, tuple(omitted_steps))]
    if isinstance(export, str):
        step = export_step(export)
        assert step is not None
        trials, out = Path("results/trials.csv"), Path(f"results/export/{export}")
        new_step = step(trials=trials, out=out)  # type: ignore[call-arg]
        stages.append(StudyStage(f"export {export}", "", new_step, ("export", export)))
    if "-" in sections:
        table, out = Path("table.csv"), Path("results/analysis")
        analysis = AnalyzeResponses(trials=table, responses=table, scores=table, out=out)
        stages.append(StudyStage("analyze", "", analysis, ("analyze",)))
    facts = StudyFacts(replace(study, stages=tuple(stages)))
    with chdir(study.folder):
        page = _Page(Report("t", [*next_step(facts, is_done)]).html())
    assert f"Next: {text}" in page.text


def test_page_begins_with_next_step_and_three_items(study: Study) -> None:
    """Witness: the table of triplets."""
    page = (study.folder / PAGE).read_text()
    beginning, _ = page.split("<h2>", 1)
    assert beginning.index(" stages done") < beginning.index("Next: ") < beginning.index("<img ")
    triplets = read_triplets(study.folder / "results" / "triplets.csv")
    assert all(escape(triplet.natural.bare) in beginning for triplet in triplets[:3])
    assert beginning.count("<table") == 3
    assert "fingerprint" not in beginning
    assert "fingerprint" in page


CUT_OFF = """[...document.querySelectorAll('SELECTOR')]
    .filter(box => box.checkVisibility() && box.scrollWidth > box.clientWidth)
    .map(box => box.textContent || box.innerHTML.slice(-200))"""
"""Script that returns boxes with content too wide to be seen without scrolling."""


@pytest.mark.slow
@pytest.mark.parametrize("width", [400, 800, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_windows_of_every_width(
    study: Study, chromium: Any, width: int, scheme: str, tmp_path: Path
) -> None:
    """Only folded tables may be wider than the window; they are scrolled in boxes."""
    data = simulate(groups=(3, 3))
    write_analysis(analyze(data.trials, data.responses, data.scores), tmp_path, title="Report")
    paths = {"index": study.folder / PAGE, "report": tmp_path / "report.html"}
    reviews = (study.folder / "results" / "review").glob("*.html")
    paths |= {f"review-{path.stem}": path for path in reviews}
    context = chromium.new_context(
        offline=True, color_scheme=scheme, viewport={"width": width, "height": 800}
    )
    page = context.new_page()
    for name, path in paths.items():
        page.goto(path.as_uri())
        assert page.evaluate(CUT_OFF.replace("SELECTOR", ".wide")) == []
        page.evaluate("document.querySelectorAll('details').forEach(box => box.open = true)")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(CUT_OFF.replace("SELECTOR", ".wide:has(img)")) == []
        if folder := os.environ.get("CONTSTIM_ARTIFACTS"):
            page.screenshot(path=Path(folder) / f"{name}-{width}-{scheme}.png")
    context.close()


def test_links_lead_to_existing_files(finished_run: FinishedRun) -> None:
    study, earlier_pages = finished_run
    pages = [*earlier_pages.values(), _read_page(study)]
    for page in pages:
        assert all(link.startswith("./") for link in page.links)
    links = {unquote(link) for link in pages[-1].links}
    assert all((study.folder / link).exists() for link in links)
    assert "./results/selected.csv" not in links  # this study has no selection
    results = "models/a-bigram.arpa pairs.csv review/triplets.html export/jspsych/index.html "
    results += "trials.csv trials.csv.power.md"
    assert {"./study.toml", "./training.txt", *(f"./results/{n}" for n in results.split())} <= links


def test_artificial_participants_cause_an_alert(finished_run: FinishedRun) -> None:
    """The alert appears after the simulation, before all other content."""
    study, pages = finished_run
    assert pages["simulate"].alerts == 0
    assert pages["export jspsych"].alerts == 1
    page = (study.folder / PAGE).read_text()
    assert page.index('role="alert"') < page.index("<p>")
    assert _make_report(study).warning.startswith(
        "Artificial participants: there are no human participants;"
    )


def test_page_of_unchanged_study_is_not_rewritten(study: Study) -> None:
    page = study.folder / PAGE
    run_study(study)
    os.utime(page, (1, 1))
    run_study(study)
    assert page.stat().st_mtime == 1
    renamed = replace(study, title="Another title")
    study.path.write_text(STUDY.replace("Frequent <b>words</b>", "Another title"))
    run_study(renamed)
    assert "Another title" in _read_page(study).headings
    study.path.write_text(STUDY)
    run_study(study)
    assert "Frequent <b>words</b>" in _read_page(study).headings


@contextmanager
def _restored(*paths: Path) -> Iterator[None]:
    """Write the contents of files again at the end, for other tests of the same study."""
    contents = {path: path.read_bytes() for path in paths}
    try:
        yield
    finally:
        for path, content in contents.items():
            path.write_bytes(content)


def test_page_names_edited_and_damaged_files(study: Study) -> None:
    vocabulary = study.folder / "results" / "vocabulary.txt"
    record = record_path(study.folder / "results" / "natural.txt")
    with _restored(vocabulary, record):
        vocabulary.write_text(vocabulary.read_text() + "zymurgy\n")
        text = _make_page(study).text
        assert "results/vocabulary.txt was changed by hand" in text
        assert "Results of an earlier run: the next run repeats sentences." in text
        record.write_text("{")
        assert "This part cannot be shown: " in _make_page(study).text
        record.write_text('{"left_out": [1]}')
        text = _make_page(study).text
        assert "This part cannot be shown: a file was changed or damaged" in text


def test_page_shows_texts_for_participants(study: Study) -> None:
    """The page shows the exported texts after the user edited them."""
    labels = study.folder / "results" / "export" / "jspsych" / "labels.csv"
    with _restored(labels):
        labels.write_text(labels.read_text().replace("very confident", "absolutely sure"))
        text = _make_page(study).text
    for part in ("1 absolutely sure", "6 absolutely sure", "instructions.md"):
        assert part in text


def test_other_pages_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text('[models]\na = "kenlm:a.arpa"\n')
    (tmp_path / "a.arpa").write_text("")
    (tmp_path / PAGE).write_text("<p>My own page.</p>")
    study = Study(tmp_path / "study.toml", "t", 0, *_EMPTY)
    with pytest.raises(InputError, match=r"index\.html, and the page of study\.toml"):
        run_study(study)
    assert (tmp_path / PAGE).read_text() == "<p>My own page.</p>"


def test_page_of_a_study_without_results(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    text = STUDY.replace('"training.txt"', '"english:50"').replace('"more.txt"', '"english:90"')
    path.write_text(text)
    assert "0 of 17 stages done, 17 not done." in _make_page(read_study(path)).text
    assert not (tmp_path / PAGE).exists()


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (InputError("Set `frame`."), "Stopped at text training: Set frame."),
        (KeyboardInterrupt(), "Stopped at text training: it was interrupted."),
        (ZeroDivisionError(), "Stopped at text training: ZeroDivisionError"),
    ],
)
def test_page_says_why_a_run_stopped(
    error: BaseException, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "study.toml"
    path.write_text('[texts]\ntraining = "english:20"\n')

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("contstim.steps.generation.generate", fail)
    study = read_study(path)
    with pytest.raises(type(error)):
        run_study(study)
    assert expected in _read_page(study).text

    monkeypatch.setattr("contstim.steps.generation.generate", generate)
    run_study(study)
    assert "1 of 1 stage done." in _read_page(study).text


_WAITING = """
import sys, time
from unittest import mock
from contstim.study.running import run_study
from contstim.study.study_file import read_study

def wait(*_, **__):
    print("waits", flush=True)
    time.sleep(600)

with mock.patch("contstim.steps.generation.generate", wait):
    run_study(read_study(sys.argv[1]))
"""


def test_killed_run_is_reported_as_interrupted(tmp_path: Path) -> None:
    """Witness: whether the process runs."""
    path = tmp_path / "study.toml"
    path.write_text('[texts]\ntraining = "english:20"\nnatural = "english:30"\n[sentences]\n')
    study = read_study(path)
    command = [sys.executable, "-c", _WAITING, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        try:
            assert run.stdout is not None
            assert run.stdout.readline() == "waits\n"
            states = stage_states(study)
            assert [s.state for s in states] == ["running", "not done", "not done"]
            assert states[0].because == f"process {run.pid}"
            correct_page(study)
            assert "Running when this page was written: text training" in _read_page(study).text
        finally:
            run.kill()
    states = stage_states(study)
    assert [s.state for s in states] == ["interrupted", "not done", "not done"]
    assert states[0].because == "a run ended before the stage was done"
    assert succeed(tmp_path, "status").count("interrupted") == 1
    text = _read_page(study).text
    assert "Stopped at text training: the run was killed, or" in text
    assert "0 of 3 stages done, 1 interrupted, 2 not done." in text
    assert "running" not in text.lower()
    # The state names the changed setting too; a corrected page is not rewritten
    path.write_text('[texts]\ntraining = "english:40"\nnatural = "english:30"\n[sentences]\n')
    state, *_ = stage_states(read_study(path))
    assert state.because == "a run ended before the stage was done; number: 20 → 40"
    content = (tmp_path / PAGE).read_bytes()
    correct_page(study)
    assert (tmp_path / PAGE).read_bytes() == content


def test_unreadable_record_is_the_reason_for_a_stage(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text('[texts]\ntraining = "english:20"\n')
    study = read_study(tmp_path)
    run_study(study)
    (tmp_path / "results" / "training.txt.meta.json").write_text("{")
    (state,) = stage_states(study)
    assert state.state == "not done"
    assert state.because == "results/training.txt.meta.json cannot be read"


def test_best_model_of_each_kind_of_trial_is_bold(tmp_path: Path) -> None:
    rows = [*product(("accuracy", "signed-rank-cosine"), ("catch", "overall"), range(9))]
    measures, scopes, numbers = zip(*rows, strict=True)
    columns = {"scope": scopes, "measure": measures, "model": [f"model {n}" for n in numbers]}
    path = tmp_path / "models.csv"
    write_table(path, columns | {"value": [0.5 + n / 100 for n in numbers]})
    html = Report("t", [accuracies(path)]).html()
    assert "".join(re.findall("<th.*?>(.*?)</th>", html)) == "modelcatchoverall"
    assert html.count("<strong>") == html.count("<strong>0.58</strong>") == 2


@pytest.mark.slow
def test_page_does_not_import_torch(study: Study) -> None:
    program = (
        "import sys; from contstim.study.study_file import read_study; "
        "from contstim.study.page import study_page; "
        "from contstim.study.states import stage_states; "
        "import contstim.study.verification; "
        "study = read_study('.'); study_page(study, stage_states(study)).html(); "
        "print({'torch', 'transformers', 'ortools'} & sys.modules.keys())"
    )
    command = [sys.executable, "-c", program]
    process = subprocess.run(command, cwd=study.folder, capture_output=True, text=True, check=True)
    assert process.stdout == "set()\n"
