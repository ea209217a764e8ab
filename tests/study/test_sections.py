"""Sections of a study file: names of commands, their options, and default values."""

from functools import cache
from pathlib import Path
from typing import Annotated

import pytest

from contstim.english.minimal_pairs import LabelledPair, generate_pairs, write_pairs
from contstim.english.paradigm import shipped_paradigms
from contstim.errors import InputError
from contstim.options import Help, Reads, WritesTable
from contstim.steps import STEPS, step_named, step_names
from contstim.steps.step import Step
from contstim.study.handing_on.facts import StudyFacts
from contstim.study.states import stage_states
from contstim.study.study import StudyStage
from contstim.study.study_file import new_study, read_study
from tests.study import small

# Required keys without a file or value in the small study
NEEDED = {
    "train acceptability": 'data = "corpus.txt"\nout = "results/acceptability"',
    "synthesize": """accept = "bigram"
reject = ["unigram"]
sentence = "The dog saw the cat."
out = "results/sentence.json\"""",
    "simulate": 'model = "bigram"',
    "compare": 'sentences = "more.txt"',
    "evaluate blimp": 'data = "pairs"',
    "evaluate acceptability": 'data = "corpus.txt"',
    "reproduce golan2023": 'data = "pairs"',
    "reproduce adc": 'data = "pairs"',
    "generate sentences": 'number = 3\nout = "results/generated.txt"',
    "import golan2023": 'data = "pairs"',
    "verdict": 'answers = "corpus.txt"',
    "import qualtrics": 'files = ["more.txt"]\nkey = "corpus.txt"',
    "select minimal-pairs": "per_pair = 6",
}
NAMES = [name for name in step_names() if step_named(name) is not None]
BLIMP = '[evaluate.blimp]\ndata = "pairs"\n'


@cache
def _pairs() -> list[LabelledPair]:
    return generate_pairs(2, seed=1, paradigms=shipped_paradigms()[:1])


def _write(folder: Path, text: str) -> Path:
    for name in ("corpus.txt", "more.txt"):
        (folder / name).write_text("The dog saw the cat.\n" * 400, encoding="utf-8")
    write_pairs(folder / "pairs", _pairs())
    (folder / "study.toml").write_text(text, encoding="utf-8")
    return folder


def _section(name: str) -> str:
    out = f'out = "results/{name.split()[-1]}"' if name.split()[0] == "train" else ""
    out = 'files = ["more.txt"]' if name.split()[0] == "import" else out
    header = name.replace("-", "_").replace(" ", ".")
    return f"[{header}]\n{NEEDED.get(name, out)}\n"


def _study_with(name: str) -> str:
    """Return the small study with a section for a command, without sections of the same output."""
    first, *parts = small.STUDY.split("\n[")
    header = _section(name).partition("]")[0][1:]
    if header in [part.partition("]")[0] for part in parts]:
        return small.STUDY
    omitted = "simulate" if name.startswith("import") else "design" if name == "waves" else ""
    kept_parts = [part for part in parts if part.partition("]")[0] != omitted]
    blimp = BLIMP if name == "select minimal-pairs" else ""
    return "\n[".join((first, *kept_parts)) + blimp + _section(name)


@pytest.mark.parametrize("name", NAMES)
def test_command_is_a_section_after_its_inputs(tmp_path: Path, name: str) -> None:
    stages = read_study(_write(tmp_path, _study_with(name))).stages
    command_stages = [stage for stage in stages if stage.step.name == name]
    assert command_stages
    assert all(getattr(stage.step, "seed", 3) == 3 for stage in command_stages)
    written: set[Path] = set()
    for stage in stages:
        inputs = {path for path in stage.reads if Path("results") in path.parents}
        assert inputs <= written
        written |= {*stage.writes}


@pytest.mark.parametrize(
    ("old", "new_name"),
    [
        ("[scores]", "[score]"),
        ("[pairs]", "[select.natural]"),
        ("[selection]", "[select.triplets]"),
        ("[minimal_pairs]", "[select.minimal_pairs]"),
        ("[responses]", "[simulate]"),
        ("[analysis]", "[analyze]"),
        ('[review]\ndecisions = ["more.txt"]', "[select.natural]"),
        ('[vocabulary]\nfile = "more.txt"', "[triplets]"),
        ('[sentences]\nfile = "more.txt"', "[triplets]"),
        ("[sentences]\nexclude_training = false", "exclude = []"),
    ],
)
def test_error_for_an_old_name_gives_the_new_name(tmp_path: Path, old: str, new_name: str) -> None:
    with pytest.raises(InputError, match="is now") as error:
        read_study(_write(tmp_path, old))
    assert new_name in str(error.value)


def test_section_in_double_brackets_makes_several_stages(tmp_path: Path) -> None:
    text = "".join(
        f'[[train.ngram]]\norder = {order}\nout = "results/{order}.arpa"\n' for order in (1, 2)
    )
    stages = read_study(_write(tmp_path, f'[texts]\ntraining = "corpus.txt"\n{text}')).stages
    assert [(s.name, s.step.order, s.key) for s in stages] == [  # type: ignore[attr-defined]
        ("train ngram 1", 1, ("train", "ngram", "1")),
        ("train ngram 2", 2, ("train", "ngram", "2")),
    ]
    with pytest.raises(InputError, match=r"line 7, \[train\.ngram\] 2\.order: .*at most 6"):
        read_study(_write(tmp_path, f'[texts]\ntraining = "corpus.txt"\n{text.replace("2", "7")}'))


def test_input_without_writer_must_be_named_once(tmp_path: Path) -> None:
    """A file that one section names serves the others too. A written file has priority."""
    models = '[models]\na = { train = "ngram" }\nb = { train = "ngram", order = 1 }\n'
    text = f'[texts]\ntraining = "corpus.txt"\n{models}[triplets]\n[select.natural]\n'

    def read_stages(text: str) -> dict[str, StudyStage]:
        return {stage.name: stage for stage in read_study(_write(tmp_path, text)).stages}

    with pytest.raises(InputError, match="no section writes sentences") as error:
        read_study(_write(tmp_path, text))
    assert "line 6, [triplets]" in str(error.value)
    assert "line 7, [select.natural]" in str(error.value)
    with_path = text.replace("[triplets]", '[triplets]\nsentences = "more.txt"')
    assert Path("more.txt") in read_stages(with_path)["score sentences"].reads
    text = text.replace("[models]", 'natural = "more.txt"\n[models]')
    assert Path("results/natural.txt") in read_stages(text)["triplets"].reads


def test_input_with_two_writers_must_be_named(tmp_path: Path) -> None:
    text = small.STUDY + '[import.jspsych]\nfiles = ["more.txt"]\nout = "results/r.csv"\n'
    paths = r"results/responses\.csv, results/r\.csv"
    with pytest.raises(InputError, match=f"must name one of several files of responses: {paths}"):
        read_study(_write(tmp_path, text))
    with_choice = text.replace("[analyze]", '[analyze]\nresponses = "results/r.csv"')
    stages = {stage.name: stage for stage in read_study(_write(tmp_path, with_choice)).stages}
    assert Path("results/r.csv") in stages["analyze"].reads


class CountTrials(Step[int], name="count trials"):
    """Count the trials of a table."""

    trials: Annotated[Path, Reads("Trials.", kind="trials")]
    out: Annotated[Path, WritesTable("The number.", kind="numbers of trials")]


class ShowNumbers(Step[int], name="show numbers"):
    """Show a number, and seeds."""

    numbers: Annotated[Path, Reads("The numbers.", kind="numbers of trials")]
    out: Annotated[Path, WritesTable("The table.", name="shown/{}.csv")]
    seed: Annotated[int, Help("The seed.")] = 0


def test_declared_step_is_a_section(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STEPS, "show numbers", f"{__name__}:ShowNumbers")
    monkeypatch.setitem(STEPS, "count trials", f"{__name__}:CountTrials")
    text = small.STUDY + "[show.numbers]\n[count.trials]\n"
    stages = read_study(_write(tmp_path, text)).stages
    steps = {stage.name: stage.step for stage in stages}
    names = ["design", "count trials", "show numbers"]
    assert [name for name in steps if name in names] == names
    trials, numbers = Path("results/trials.csv"), Path("results/count-trials.csv")
    assert vars(steps["count trials"]) == {"trials": trials, "out": numbers}
    shown = {"numbers": numbers, "out": Path("results/shown/numbers.csv"), "seed": 3}
    assert vars(steps["show numbers"]) == shown
    with pytest.raises(InputError, match="no section writes numbers of trials"):
        read_study(_write(tmp_path, small.STUDY + "[show.numbers]\n"))


def test_new_study_trains_judge_and_models_on_three_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = read_study(new_study(tmp_path / "first"))
    monkeypatch.chdir(study.folder)
    stages = {stage.name: stage for stage in study.stages}
    names = [*stages]
    judge = Path("results/judge.arpa")
    assert judge in stages["triplets"].reads
    assert judge in stages["train ngram"].writes
    assert names.index("train ngram") < names.index("triplets")
    texts = [stages[name] for name in ("text training", "text natural", "text of second")]
    assert len({vars(stage.step)["seed"] for stage in texts}) == 3
    inputs = [{*stages[f"model {name}"].reads} for name in ("first", "second")]
    assert {*texts[0].writes} & inputs[0]
    assert {*texts[2].writes} & inputs[1]
    # Natural sentences are new to both models
    excluded = {Path("results/training.txt"), Path("results/models/second.arpa.txt")}
    assert {*texts[0].writes, *texts[2].writes} & {*stages["sentences"].reads} == excluded
    assert ["the training of results/judge.arpa, an n-gram model of order 5", "judge.txt"] in [
        [row["use"], row["name"]] for row in StudyFacts(study).texts
    ]


def test_error_gives_line_of_an_unknown_key(tmp_path: Path) -> None:
    text = "".join(f"{_section(name)}unknown_key = 1\n" for name in NAMES)
    with pytest.raises(InputError) as error:
        read_study(_write(tmp_path, text))
    for number, line in enumerate(text.splitlines(), start=1):
        if line == "unknown_key = 1":
            assert f"line {number}, " in str(error.value)


BAD = {
    "an unknown command": ("[evaluate.glue]", "there is no such key"),
    "a result that no stage writes": (
        '[score]\nsentences = "results/no.txt"',
        "there is no file 'results/no.txt', and no stage writes it",
    ),
    "a path outside results": ('[mixed]\nout = "mixed"', "name a path in results/"),
    "a path out of results": ('[mixed]\nout = "results/../.."', "name a path in results/"),
    "a table of another ending": ('[score]\nout = "results/s.xlsx"', "is not a table"),
    "a key in place of a section": ("[evaluate]\nblimp = 3", "write \\[evaluate.blimp\\]"),
    "a missing required option": ("[evaluate.blimp]", "data is missing"),
    "a comparison without sentences": ("[compare]", "sentences must be set"),
    "an option that needs per_word": ('[score]\nby = "token"', "need per_word"),
    "an unknown model": ('[compare]\nsentences = "more.txt"\nmodels = ["x"]', "name a model"),
    "tags of another kind": ('[near_pairs]\ntags = "more.txt"', "more.txt"),
}


@pytest.mark.parametrize(("table", "message"), BAD.values(), ids=BAD)
def test_error_gives_line_of_the_problem(tmp_path: Path, table: str, message: str) -> None:
    line_numbers = [small.STUDY.count("\n") + n for n in range(1, 2 + table.count("\n"))]
    with pytest.raises(InputError, match=message) as error:
        read_study(_write(tmp_path, small.STUDY + table))
    assert any(f"line {number}, " in str(error.value) for number in line_numbers)


@pytest.mark.slow
def test_changed_option_repeats_a_single_step(study: Path) -> None:
    write_pairs(study / "pairs", generate_pairs(8, seed=1, paradigms=shipped_paradigms()[:2]))
    with (study / "study.toml").open("a", encoding="utf-8") as file:
        file.write('[mixed]\npeople = "none"\n[evaluate.blimp]\ndata = "pairs"\n')
        file.write('[evaluate.desiderata]\nsample = 20\nmodels = ["bigram"]\n')
    names = ("mixed", "evaluate blimp", "evaluate desiderata")
    assert small.run(study).done == names
    assert (study / "results/mixed/fits.csv").is_file()
    page = (study / "results/evaluate-blimp/report.md").read_text(encoding="utf-8")
    assert "bigram" in page
    assert "unigram" in page
    assert small.run(study).done == ()
    small.change(study, ('people = "none"', 'people = "intercept"'))
    states = {row.stage.name: row for row in stage_states(read_study(study))}
    assert states["mixed"].because == "people: none → intercept"
    assert states["evaluate blimp"].state == "done"
    assert small.run(study).done == ("mixed",)


def test_step_runs_before_the_step_that_reads_its_output(tmp_path: Path) -> None:
    text = """\
[models]
unigram = { train = "ngram", order = 1 }
[texts]
training = "results/text.txt"
[evaluate.blimp]
data = "results/generate-minimal-pairs"
[generate.minimal_pairs]
per_paradigm = 2
only = ["anaphor_agreement"]
[generate.sentences]
number = 50
out = "results/text.txt"
"""
    folder = _write(tmp_path, text)
    names = ("generate sentences", "model unigram", "generate minimal-pairs", "evaluate blimp")
    assert small.run(folder).done == names
    assert small.run(folder).unchanged == names


def test_step_of_contributing_works_as_a_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    source = page.split("```python\n")[1].split("```")[0]
    (tmp_path / "shown.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(STEPS, "duplicates", "shown:FindDuplicates")
    monkeypatch.chdir(_write(tmp_path, small.STUDY + "[duplicates]\nmin_count = 3\n"))
    step = next(s.step for s in read_study(tmp_path).stages if s.name == "duplicates")
    Path("results").mkdir()
    assert step.run() == {"The dog saw the cat.": 400}
    table = Path("results/duplicates.csv").read_text()
    assert table == '"sentence","count"\n"The dog saw the cat.",400\n'
    # Without the field `prose`, the step would read lines of running prose as sentences
    (tmp_path / "lines.py").write_text(source.replace("    prose: Prose = False\n", ""))
    monkeypatch.setitem(STEPS, "duplicates", "lines:FindDuplicates")
    small.change(tmp_path, ("[texts]", "[texts]\nprose = true"))
    with pytest.raises(InputError, match=r"corpus\.txt is running prose"):
        read_study(tmp_path)


def test_judge_has_a_context(tmp_path: Path) -> None:
    judge = 'judge = [{ model = "j=hf:x", context = "It says:" }, "hf:y"]\n'
    study = read_study(_write(tmp_path, f"{judge}{_study_with('vocabulary')}"))
    assert study.judge == ("j=hf:x?context=It%20says%3A", "hf:y")
