"""The public names, imports and files of the package."""

import ast
import json
import re
import subprocess
import sys
import tarfile
import zipfile
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
import yaml

import contstim

HEAVY = (
    *("torch", "transformers", "nltk", "ortools", "kenlm", "pyarrow"),
    *("scipy", "statsmodels", "matplotlib", "pandas", "ray", "numpy", "pydantic"),
)


PUBLIC = """
__version__ Analysis analyze AnalyzeResponses archive_study artificial_participants build_design
compare_mixed ContstimError Convention CorpusError default_vocabulary design_power
evaluate_acceptability evaluate_desiderata evaluate_minimal_pairs export_jspsych export_step
fetch_published filter_sentences FindSentences fit_mixed generate generate_pairs import_step
InfeasibleError InputError LanguageModel load_model load_models load_scorer load_scorers
MakeDesign MakeVocabulary MinimalPairQuestion MinimalPairScores MixedSettings ModelError
NaturalQuestion Pair plan_study plot presentation ProgressBars read_responses read_reviews
read_sentences read_study read_trials RECIPES RecurrentSettings Replacements Response ReviewPage
run_study Scale score_sentences ScoreError Scorer ScoreSentences ScoreTable SearchTriplets
select_minimal_pairs select_natural select_triplets SelectMinimalPairs SelectPairs SelectTriplets
Sentence SentenceError SentencePair shared_vocabulary simulate_responses SimulatePower
SimulateResponses Store StoreError Study synthesize synthesize_pair synthesize_triplet
train_acceptability train_network train_ngram TRAININGS TrainingSettings TrainNgram
TransformerSettings Trial Triplet TripletQuestion VerificationError verify_design verify_folder
verify_minimal_pairs verify_natural verify_triplets Vocabulary VocabularyError WorkerError
write_analysis WriteReviewPage
""".split()


def test_public_names_are_as_listed() -> None:
    assert {*contstim.__all__} == {*PUBLIC}
    assert len({*contstim.__all__}) == len(contstim.__all__)
    assert all(getattr(contstim, name) is not None for name in contstim.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = contstim.nonsense


@pytest.mark.parametrize(
    "code",
    [
        "import contstim",
        "import sys; sys.argv = ['contstim', '--help']\n"
        "import contstim.cli\n"
        "try: contstim.cli.main()\n"
        "except SystemExit: pass",
    ],
)
def test_heavy_libraries_are_not_loaded_by_an_import(code: str) -> None:
    code += f"\nimport sys; print('loaded:', [m for m in {HEAVY} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.endswith("loaded: []\n")


def test_toy_models_need_neither_pytest_nor_torch() -> None:
    code = "import sys, contstim.testing; print({'pytest', 'torch'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"


def test_imports_have_no_cycle() -> None:
    """Imports inside functions count, imports for type checkers do not."""
    folder = Path(contstim.__file__).parent
    names = {
        ".".join(part for part in path.with_suffix("").parts if part != "__init__"): folder.parent
        / path
        for path in (path.relative_to(folder.parent) for path in folder.rglob("*.py"))
    }
    graph: dict[str, set[str]] = {}
    for name, path in names.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.If) and isinstance(node.test, ast.Name):
                node.body = [ast.Pass()] if node.test.id == "TYPE_CHECKING" else node.body
        imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
        targets = {f"{node.module}.{alias.name}" for node in imports for alias in node.names}
        graph[name] = {t if t in names else t.rpartition(".")[0] for t in targets} & names.keys()
    assert len([*TopologicalSorter(graph).static_order()]) == len(names) > 200


def test_links_at_the_root_lead_into_the_package() -> None:
    root = Path(__file__).parents[1]
    for name in ("models", "optimization", "experiments"):
        assert (root / name).is_symlink()
        assert (root / name).resolve() == root / "contstim" / name


def test_wheel_and_sdist_contain_the_package_without_links(tmp_path: Path) -> None:
    root = Path(__file__).parents[1]
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path)]
    subprocess.run(build, cwd=root, check=True, capture_output=True)
    (wheel,), (sdist,) = tmp_path.glob("*.whl"), tmp_path.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as wheel_archive:
        names = wheel_archive.namelist()
    top_names = {name.split("/")[0] for name in names}
    assert {name for name in top_names if not name.endswith(".dist-info")} == {"contstim"}
    assert {
        "contstim/py.typed",
        "contstim/english/lexicon.tsv",
        "contstim/experiments/reproduce/registry.txt",
        "contstim/experiments/platforms/templates/pcibex.js",
        "contstim/reporting/review/form/review.html.jinja",
        "contstim/reporting/review/form/page.js",
        "contstim/experiments/platforms/jspsych/page/index.html",
        "contstim/experiments/platforms/texts/en/consent.md",
    } <= set(names)
    with tarfile.open(sdist) as sdist_archive:
        sdist_names = {name.partition("/")[2].split("/")[0] for name in sdist_archive.getnames()}
    assert {"contstim", "tests", "README.md", "LICENSE"} <= sdist_names
    assert not {"models", "optimization", "experiments"} & sdist_names


def test_citation_files_agree_with_the_package() -> None:
    """CITATION.cff has the fields that version 1.2.0 of its format requires."""
    root = Path(__file__).parents[1]
    citation = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    for source in (citation["preferred-citation"], *citation["references"]):
        assert {"type", "title", "authors", "year"} <= source.keys()
    assert citation["version"] == contstim.__version__
    zenodo = json.loads((root / ".zenodo.json").read_text(encoding="utf-8"))
    assert zenodo["title"] == citation["title"]
    assert zenodo["license"] == citation["license"]
    assert zenodo["creators"] == citation["authors"]
    related_identifiers = {identifier["identifier"] for identifier in zenodo["related_identifiers"]}
    assert citation["preferred-citation"]["doi"] in related_identifiers


def test_test_files_named_in_ci_exist() -> None:
    """Pytest stops before the first test if a file does not exist."""
    root = Path(__file__).parents[1]
    paths = re.findall(r"\btests/\S+", (root / ".ci" / "run").read_text(encoding="utf-8"))
    assert paths
    assert not [path for path in paths if not (root / path).exists()]
