"""Models named with formulas, markup, HTML and table signs, from scores to figures."""

import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

from contstim.items.scores import ScoreTable
from contstim.models.vocabularies import counts_path
from contstim.words.sentence import Sentence
from tests.cli.running import invoke, model_options, run

NAMES = (
    r"$\frac$ [v2] [bold] <b> &amp; a|b `x`.arpa",
    "[/v2] $ [link=x] %s {0} :smile: " + "long" * 40 + ".arpa",
)
PAIRS = """sentence_good,sentence_bad,UID,linguistics_term,pairID
A man walks.,A man walk.,one,agreement,1
The dog sees her.,The dog see her.,two,agreement,2
The cats see her.,The cats sees her.,three,agreement,3
"""


@pytest.fixture
def folder(
    tmp_path: Path, trained: Path, unseen: list[Sentence], monkeypatch: pytest.MonkeyPatch
) -> Path:
    texts = list(dict.fromkeys(sentence.text for sentence in unseen))[:30]
    (tmp_path / "natural.txt").write_text("".join(f"{text}\n" for text in texts))
    (tmp_path / "pairs-to-judge.csv").write_text(PAIRS)
    for n, name in zip((2, 3), NAMES, strict=True):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(trained / f"{n}gram.arpa", tmp_path / name)
        shutil.copy(counts_path(trained / f"{n}gram.arpa"), counts_path(tmp_path / name))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


class _PageReader(HTMLParser):
    """Collect the tags and texts of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.texts: set[str] = set()

    def handle_starttag(self, tag: str, _attrs: object) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.texts.add(data)


@pytest.mark.usefixtures("empty_design_figures")
def test_hostile_names_survive_from_scores_to_figures(folder: Path) -> None:
    """Witnesses: every command succeeds; the page, read back, holds the names letter by letter."""
    names = [f"kenlm:{name}" for name in NAMES]
    models = model_options(names)
    invoke("score --sentences natural.txt --out scores.csv", *models)
    assert ScoreTable.from_file(folder / "scores.csv").models == tuple(names)
    invoke("select natural --scores scores.csv --per-pair 2 --out pairs.csv")
    counts = "--groups 1 --random-per-group 2 --catch-per-group 2"
    invoke(f"design --pairs pairs.csv --sentences natural.txt {counts} --out trials.csv")
    invoke("score --sentences trials.csv --out trial-scores.csv -q", *models)
    invoke(
        "simulate --trials trials.csv --scores trial-scores.csv --participants 4 --noise 1 "
        "--out responses.csv --model",
        names[0],
    )
    inputs = "--trials trials.csv --responses responses.csv --scores trial-scores.csv"
    output = invoke(f"analyze {inputs} --min-catch 0 --out results").output
    for name in names:
        assert f": {name}\n" in output
    page = _PageReader()
    page.feed((folder / "results" / "report.html").read_text())
    assert set(names) <= page.texts
    assert not page.tags & {"b", "bold"}
    assert {path.stem for path in (folder / "results" / "figures").glob("*.png")} >= {"ranks"}
    invoke(f"controls {inputs} --text natural.txt --min-catch 0 --out controls", *models)
    invoke("evaluate blimp --data pairs-to-judge.csv --out blimp", *models)
    assert (folder / "blimp" / "profile.png").is_file()
    lines = (folder / "blimp" / "report.md").read_text().splitlines()
    rows = [line for line in lines if line.startswith("| kenlm:")]
    assert [row.count("|") - row.count("\\|") for row in rows] == [6, 6]


@pytest.mark.parametrize("option", ["--sentences", "--model", "--out"])
def test_too_long_file_name_is_one_error(folder: Path, option: str) -> None:
    """One message, status 2, and no output."""
    values = {"--model": f"kenlm:{NAMES[0]}", "--sentences": "natural.txt", "--out": "out.csv"}
    values[option] = "x" * 300 + ".arpa" * (option == "--model") + ".csv" * (option == "--out")
    names_before = {path.name for path in folder.iterdir()}
    options = [part for item in values.items() for part in item]
    result = run(folder, "score", *options, "--store", "s.sqlite", status=2)
    assert result.stderr.splitlines()[-1].startswith("error: ")
    assert "Traceback" not in result.stderr
    new_names = {path.name for path in folder.iterdir()} - names_before
    assert new_names <= {"s.sqlite", "s.sqlite.times.json"}
