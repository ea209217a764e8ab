"""All code blocks on all documentation pages run and print as shown, page by page."""

import csv
import importlib.util
import re
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from unittest import mock
from urllib.parse import urlsplit

import numpy as np
import pytest
import torch

from contstim.experiments.collection.tables import participants_csv
from contstim.experiments.design.artificial import artificial_participants
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import read_trials
from contstim.models.checkpoints import load_checkpoint
from contstim.models.loading import Loading
from contstim.study.planning import plan_study
from contstim.study.study_file import read_study
from contstim.testing.participants import RunSettings, take_part
from tests.models import tiny
from tests.models.server import fakes
from tests.pages.blocks import PAGES, ROOT, Block, read_blocks, read_commands, remove_blocks
from tests.pages.reader import Reader, reading
from tests.pages.scenery import furnish

COMMANDS = ("console", "sh", "bash")

PRINTED = ("text",)
"""Languages of blocks with nothing to run: output, drawings, formulas, and contents of files."""

RUN_BY = {
    "README.md": "tests.test_readme",
    "docs/commands.md": "tests.test_readme; the fixture of these tests also runs it",
    "docs/first-study.md": "tests.test_readme",
    "docs/tutorials/published-experiment.md code-cell": "the build of the site",
    "docs/tutorials/own-model.md code-cell": "the build of the site",
    "docs/tutorials/text-to-report.md code-cell": "the build of the site",
    "docs/tutorials/two-rules.md code-cell": "the build of the site",
}
"""Pages whose blocks, or blocks of a language, run elsewhere."""

_NETWORK = "needs the network"
_PUBLISHED = "needs the published data; tests.published runs the same"
NOT_RUN = {
    ("CONTRIBUTING.md", "make test"): "runs this test",
    ("CONTRIBUTING.md", "make slow"): "takes an hour and includes this test",
    ("CONTRIBUTING.md", "make check"): "a separate step in the checks of changes",
    ("CONTRIBUTING.md", "make bench BENCH=--quick"): "a separate step in the checks of changes",
    ("docs/analysis.md", "contstim reproduce golan2023"): _PUBLISHED,
    ("docs/big-models.md", "python benchmarks/gpu.py"): "measures a GPU",
    ("docs/clusters.md", "pip install"): _NETWORK,
    ("docs/clusters.md", "sbatch"): "needs a cluster; the script is run instead",
    ("docs/collecting.md", "pip install"): _NETWORK,
    ("docs/experiment-page.md", "contstim export jspsych"): (
        "--vendor fetches jsPsych from npm; without it the pages on collecting answers use it"
    ),
    ("CONTRIBUTING.md", "python -c"): _NETWORK,
    ("CONTRIBUTING.md", "CONTSTIM_JSPSYCH="): "runs other tests, in a browser",
    ("docs/install.md", "python3 -m venv"): "installation, which is checked with the built package",
    ("docs/install.md", ". .venv"): "installation, which is checked with the built package",
    ("docs/install.md", "pip install -c constraints.txt ."): _NETWORK,
    ("docs/install.md", "pip install -c constraints.txt torch"): _NETWORK,
    ("docs/install.md", "contstim demo"): "takes a minute; tests.test_demo and all checks run it",
    ("docs/responses.md", "contstim import golan2023"): _PUBLISHED,
    ("docs/servers.md", "vllm serve"): "needs a GPU; a mock server in tests.models.server answers",
    ("docs/study.md", "pip install"): _NETWORK,
    ("docs/tutorials/published-experiment.md", "git clone"): _NETWORK,
    ("docs/tutorials/published-experiment.md", "contstim reproduce"): _PUBLISHED,
}
"""Commands that are not run, by page and beginning, with reasons. `tests.test_site` still parses
commands of contstim."""

_NO_GPU = {"--device cuda": "--device cpu"}
_FEW_SEARCHES = {"--per-pair 100": "--per-pair 1 --enough 0 --restarts 1"}
# tests.jobs.test_ray starts Ray, which takes long
_RAY = {"--executor ray": "--executor processes --workers 1"}
REPLACEMENTS: dict[str, dict[str, str]] = {
    "docs/acceptability.md": {"--restarts 20": "--restarts 2 --epochs 1 --validation 0.25"},
    "docs/clusters.md": {
        **_NO_GPU,
        **_FEW_SEARCHES,
        **_RAY,
        "--gpus-per-worker 0.25 ": "",
        "--sentences corpus.txt": "--sentences few.txt",
    },
    "docs/english.md": {"0_000": "0"},
    "docs/minimal-pairs.md": {"--per-pair 20": "--per-pair 2", "--groups 5": "--groups 1"},
    "docs/minimal-pairs-of-your-own.md": {
        "--per-paradigm 1000": "--per-paradigm 2",
        "--per-paradigm 100": "--per-paradigm 5",
    },
    "docs/scoring-rules.md": {"--sample 300": "--sample 10", "--words 500": "--words 10"},
    "docs/studies.md": {"--per-pair 10": "--per-pair 2"},
    "docs/study.md": {"contstim plan my-study": "contstim plan my-study --no-measure"},
    "docs/synthesis.md": {"--reject hf": "--enough 0 --restarts 1 --reject hf"},
    "docs/training.md": {
        "train lstm ": "train lstm --embedding 16 --hidden 32 --epochs 1 ",
        "train gpt2 ": "train gpt2 --width 16 --layers 1 --epochs 1 ",
        "--width 128 --layers 2": "--width 16 --layers 1 --epochs 1",
        "hidden=256": "hidden=32",
    },
}
"""Replacements in the texts of pages: no GPU, and smaller numbers."""

NEEDS = {
    "docs/big-models.md": ("accelerate", "bitsandbytes"),
    "docs/collecting.md": ("curl", "sqlite3", "starlette", "uvicorn"),
    "docs/r.md": ("Rscript",),
    "docs/reviewing.md": ("starlette", "uvicorn"),
    "docs/study.md": ("unzip",),
    "docs/tutorials/laboratory.md": ("grep", "starlette", "uvicorn"),
}
"""Programs and packages that a page needs and contstim does not install."""


def plan_with(reader: Reader, text: str) -> None:
    """Replace sections in the study of the first-study page, and plan it."""
    (first,) = (b for b in read_blocks(ROOT / "docs/first-study.md") if b.language == "toml")
    study = first.text
    replaced = ("design", "select.natural", "select.triplets") if "[waves]" in text else ()
    for section in (*re.findall(r"^\[([\w.]+)\]", text, re.MULTILINE), *replaced):
        pattern = rf"^\[{re.escape(section)}\].*?(?=^\[|\Z)"
        study = re.sub(pattern, "", study, flags=re.DOTALL | re.MULTILINE)
    study = study.replace('model = "trigram"', 'model = "bigram"')
    (reader.folder / "study.toml").write_text(study + text, encoding="utf-8")
    plan = plan_study(read_study(reader.folder / "study.toml"), measure=False)
    assert len(plan.to_frame()) > 5


def write_as(name: str) -> Callable[[Reader, str], None]:
    """Return a function that writes a block to a file that later commands of the page name."""

    def write(reader: Reader, text: str) -> None:
        (reader.folder / name).write_text(text, encoding="utf-8")

    return write


def check_entry_points(reader: Reader, text: str) -> None:
    """Check that the page's Python code defines the objects named by entry points."""
    for group in tomllib.loads(text)["project"]["entry-points"].values():
        assert all(value.partition(":")[2] in reader.names for value in group.values())


def write_or_change_a_study(reader: Reader, text: str) -> None:
    """Write the file of the study `lab`, or replace one of its sections."""
    path = reader.folder / "lab" / "study.toml"
    path.parent.mkdir(exist_ok=True)
    if text.startswith("["):
        section = text.partition("\n")[0]
        section = "[simulate]" if section.startswith("[import.") else section
        pattern = re.compile(rf"^{re.escape(section)}\n.*?\n\n", re.DOTALL | re.MULTILINE)
        text, n_replaced = pattern.subn(f"{text}\n", path.read_text(encoding="utf-8"))
        assert n_replaced == 1
    path.write_text(text, encoding="utf-8")


TOML: dict[str, Callable[[Reader, str], None]] = {
    "docs/minimal-pairs.md": plan_with,
    "docs/minimal-pairs-of-your-own.md": write_as("mine.toml"),
    "docs/study.md": plan_with,
    "docs/tutorials/laboratory.md": write_or_change_a_study,
    "docs/waves.md": plan_with,
    "docs/tutorials/own-model.md": check_entry_points,
}
"""Actions for the TOML blocks of a page."""


def shorten(*files: str, lines: int = 40) -> Callable[[Path], None]:
    """Return a function that truncates texts, so that networks read them in seconds."""

    def prepare(folder: Path) -> None:
        for file in files:
            text = (folder / file).read_text(encoding="utf-8").splitlines(keepends=True)
            (folder / file).write_text("".join(text[:lines]), encoding="utf-8")

    return prepare


def start_another_study(folder: Path) -> None:
    """Keep few sentences, and remove the cache of other models."""
    shorten("corpus.txt", "natural.txt", lines=20)(folder)
    (folder / "contstim.sqlite").unlink()


def start_without_networks(folder: Path) -> None:
    """Keep a short text for training, and remove trained networks."""
    shorten("corpus.txt", lines=400)(folder)
    shutil.rmtree(folder / "runs")


def widen_the_network(folder: Path) -> None:
    """Widen a network's layers to 64, the block size in which 4-bit weights are rounded."""
    with mock.patch.object(tiny, "_WIDTH", 64):
        wide = tiny.build("llama", folder)
    shutil.rmtree(folder / "meta-llama" / "Llama-3.1-8B")
    wide.rename(folder / "meta-llama" / "Llama-3.1-8B")


PREPARATIONS: dict[str, Callable[[Path], None]] = {
    "docs/big-models.md": widen_the_network,
    "docs/clusters.md": start_another_study,
    "docs/scoring.md": shorten("natural.txt", lines=10),
    "docs/scoring-rules.md": shorten("natural.txt", lines=10),
    "docs/training.md": start_without_networks,
}
"""Preparations of the folder before a page is read."""


def participate(reader: Reader) -> None:
    """Simulate participants on the most recent server of the page."""
    people = artificial_participants(
        read_trials(reader.folder / "trials.csv"),
        ScoreTable.from_file(reader.folder / "trial-scores.csv"),
        "kenlm:trigram.arpa",
    )
    settings = RunSettings(
        f"http://127.0.0.1:{reader.port}", 10, fields_of=lambda _: {"simulated": False}
    )
    take_part(people, settings, reader.folder / "taken-part.journal")


def serve_a_model(reader: Reader) -> None:
    """Start a mock of vLLM, which scores with the tiny checkpoint of the same name."""
    checkpoint = load_checkpoint(str(reader.folder / "Qwen" / "Qwen2.5-7B"), Loading(device="cpu"))

    def compute_log_probs(row: list[int]) -> np.ndarray:
        with torch.no_grad():
            logits = checkpoint.model(torch.tensor([row])).logits[0]
        return np.asarray(logits.double().log_softmax(dim=1).numpy())

    reader.other_servers.enter_context(mock.patch.object(fakes, "MODEL", "Qwen/Qwen2.5-7B"))
    address = reader.other_servers.enter_context(
        fakes.FakeServer(compute_log_probs, checkpoint.tokenizer).running()
    )
    reader.port = str(urlsplit(address).port)


def make_the_study_smaller(reader: Reader) -> None:
    """Halve the numbers of stimuli and groups, because some searches are unsuccessful."""
    path = reader.folder / "my-study" / "study.toml"
    study = path.read_text(encoding="utf-8")
    for key, number, fewer in (("per_pair", 6, 3), ("per_pair", 6, 3), ("groups", 6, 3)):
        study = study.replace(f"{key} = {number}", f"{key} = {fewer}", 1)
    path.write_text(study, encoding="utf-8")


def receive_an_archive(reader: Reader) -> None:
    """Move to a folder that contains only the archive, as for another person."""
    (reader.folder / "elsewhere").mkdir()
    shutil.copy(reader.folder / "my-study.zip", reader.folder / "elsewhere")
    reader.folder /= "elsewhere"


def let_a_participant_withdraw(reader: Reader) -> None:
    """Replace the code on the page by the code of the second participant."""
    table = participants_csv(reader.folder / "lab" / "answers.sqlite", since=0)
    code = [*csv.DictReader(table.splitlines())][1]["code"]
    reader.replacements = {**reader.replacements, "537A6ABFEA": code}


OTHER_ACTORS: dict[tuple[str, str], Callable[[Reader], None]] = {
    ("docs/collecting.md", "curl "): participate,
    ("docs/servers.md", "contstim score"): serve_a_model,
    ("docs/study.md", "contstim plan"): make_the_study_smaller,
    ("docs/study.md", "unzip "): receive_an_archive,
    ("docs/tutorials/laboratory.md", "--withdraw"): let_a_participant_withdraw,
}
"""Actions of other people before a command that contains a text."""

EXCERPTS = {("docs/r.md", "formula <-"): "analysis.R"}
"""Beginnings of blocks that are, except for white space, excerpts of a file from the page."""


def is_run_elsewhere(block: Block) -> bool:
    return (
        block.page in RUN_BY or f"{block.page} {block.language.strip('{').split('}')[0]}" in RUN_BY
    )


def list_blocks_to_run(page: str) -> list[Block]:
    """List the blocks of a page that are run here."""
    blocks = read_blocks(ROOT / page)
    return [
        block
        for block in blocks
        if block.language in (*COMMANDS, "python", "toml", "r") and not is_run_elsewhere(block)
    ]


def run_r(reader: Reader, block: Block) -> None:
    for (page, beginning), file in EXCERPTS.items():
        if page == block.page and block.text.startswith(beginning):
            script = (reader.folder / file).read_text(encoding="utf-8")
            assert "".join(block.text.split()) in "".join(script.split()), block
            return
    reader.execute_r(block)


@pytest.fixture(scope="module")
def furnished(
    tmp_path_factory: pytest.TempPathFactory, tiny_checkpoint: Callable[[str], Path]
) -> Path:
    """The folder in which the reader of each page starts."""
    folder = tmp_path_factory.mktemp("furnished")
    furnish(folder, tiny_checkpoint)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        name
        for name in (page.relative_to(ROOT).as_posix() for page in PAGES)
        if list_blocks_to_run(name)
    ],
)
def test_all_blocks_of_a_page_run_as_printed(page: str, furnished: Path, tmp_path: Path) -> None:
    for name in NEEDS.get(page, ()):
        if shutil.which(name) is None and importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    folder = tmp_path / "folder"
    shutil.copytree(furnished, folder)
    if page in PREPARATIONS:
        PREPARATIONS[page](folder)
    with reading(folder, REPLACEMENTS.get(page, {})) as reader:
        for block in list_blocks_to_run(page):
            print(block)  # shows where a page fails
            if block.language == "python":
                reader.folder = folder
                reader.execute(block)
            elif block.language == "r":
                run_r(reader, block)
            elif block.language == "toml":
                TOML[page](reader, block.text)
            elif block.text.startswith("#!"):
                reader.submit(block)
            else:
                reader.folder = folder  # R continues in the folder of the last command
                for command in read_commands(block):
                    if not any(p == page and command.text.startswith(text) for p, text in NOT_RUN):
                        print("$", command.text)
                        for (action_page, text), action in OTHER_ACTORS.items():
                            if action_page == page and text in command.text:
                                action(reader)
                        reader.type(command)


def test_all_blocks_are_run_or_printed_or_listed() -> None:
    """No page and no language is forgotten."""
    for page in PAGES:
        name = page.relative_to(ROOT).as_posix()
        for block in read_blocks(page):
            is_directive = block.language.startswith("{") and "code-cell" not in block.language
            printed = block.language in PRINTED
            categories = [is_directive, printed, is_run_elsewhere(block) and not printed]
            assert sum([*categories, block in list_blocks_to_run(name)]) == 1, block
            commands = re.compile(r"^(\$ |contstim |import contstim|from contstim)", re.MULTILINE)
            assert not (printed and commands.search(block.text)), f"{block}: this can be run"
        indented = re.search(r"\n\n    +\S.*", remove_blocks(page))
        assert indented is None, f"{name}: a block without a fence: {indented and indented[0]}"


def test_tables_have_no_stale_entries() -> None:
    """All exceptions, replacements and preparations occur on their pages."""
    texts = {
        name: [
            command.text
            for block in list_blocks_to_run(name)
            if block.language in COMMANDS
            for command in read_commands(block)
        ]
        for name in (page.relative_to(ROOT).as_posix() for page in PAGES)
    }
    for page, beginning in NOT_RUN:
        assert any(text.startswith(beginning) for text in texts[page]), (page, beginning)
    for page, text in OTHER_ACTORS:
        assert any(text in command for command in texts[page]), (page, text)
    for page, changes in REPLACEMENTS.items():
        code = "\n".join([*texts[page], *(block.text for block in list_blocks_to_run(page))])
        assert all(text in code for text in changes), page
    for page in (*PREPARATIONS, *NEEDS, *TOML):
        assert list_blocks_to_run(page), page
    for page in RUN_BY:
        assert any(is_run_elsewhere(block) for block in read_blocks(ROOT / page.split()[0])), page
