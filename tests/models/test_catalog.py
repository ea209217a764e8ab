"""Models by name, their files and commits, and loading one model at a time."""

import shutil
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from contstim.errors import ModelError
from contstim.models import catalog
from contstim.models.base import Scorer
from contstim.models.loading import Loading
from contstim.models.specifications import CATALOGUE, hub_commit, parse_models
from contstim.steps.scoring import ScoreSentences
from contstim.words.sentence import Sentence
from tests.models.tiny import Folder

CPU = Loading(device="cpu")
SENTENCE = Sentence.parse("The dog sleeps.")


def test_catalog_lists_the_nine_models_of_2023() -> None:
    """Witness: the paper's list of models."""
    transformers = "bert-large-cased roberta-large xlm-mlm-en-2048 electra-large-generator gpt2-xl"
    assert " ".join(CATALOGUE) == f"2-gram 3-gram RNN LSTM {transformers}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    names = ("a.arpa", "a.arpa.counts.csv", "a.arpa.sentences.npy", "1.arpa", "gpt/config.json")
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "gpt" / "training_sentences.npy").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


A_ARPA = {"a.arpa", "a.arpa.counts.csv", "a.arpa.sentences.npy"}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("specification", "files"),
    [
        ("kenlm:a.arpa", A_ARPA),
        ("kenlm:1.arpa", {"1.arpa"}),
        ("hf:gpt@chain+slor:1.arpa", {"gpt", "gpt/training_sentences.npy", "1.arpa"}),
        ("kenlm:a.arpa@lower+slor:1.arpa@lower", {*A_ARPA, "1.arpa"}),
        ("kenlm:1.arpa+slor:a.arpa@upper@no-end-mark", {*A_ARPA, "1.arpa"}),
        ("server:http://h:8000/v1#m?tokenizer=gpt", {"gpt", "gpt/training_sentences.npy"}),
        (
            "server:http://h:8000/v1#m?tokenizer=gpt&draft=kenlm:1.arpa",
            {"gpt", "gpt/training_sentences.npy", "1.arpa"},
        ),
        ("hf:nobody/nothing", set()),
        ("", set()),  # a model created in Python
    ],
)
def test_files_of_a_model(specification: str, files: set[str]) -> None:
    assert {path.as_posix() for path in catalog.model_files([specification])} == files
    assert catalog.hub_commits([specification]) == {}


@pytest.mark.usefixtures("folder")
def test_commits_are_read_from_the_cache(hub_model: Callable[[str], str]) -> None:
    name = hub_model("a" * 40)
    specifications = [f"hf:{name}", f"server:http://h/v1#m?tokenizer={name}", "hf:no/such"]
    assert catalog.hub_commits(specifications) == {name: "a" * 40}
    hub_model("b" * 40)
    assert catalog.hub_commits(specifications) == {name: "b" * 40}
    assert hub_commit("no/such") == hub_commit("not/a/name") == hub_commit("./x") == ""


def test_weights_of_a_network_are_counted(tmp_path: Path) -> None:
    """By hand: a matrix of 2 by 3 and a vector of 4."""
    save_file({"a": np.zeros((2, 3)), "b": np.zeros(4)}, tmp_path / "model.safetensors")
    assert catalog.parameter_count(str(tmp_path)) == 10
    assert (
        catalog.parameter_count(str(tmp_path / "none")) == catalog.parameter_count("no/such") == 0
    )


def test_model_is_released_before_the_next_is_loaded(
    tiny_checkpoint: Folder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Witness: the number of earlier networks that are alive whenever a model is loaded.

    The folders are copies, because other tests may hold networks of the originals.
    """
    networks: list[weakref.ref[Any]] = []
    n_alive: list[int] = []
    load_scorer = catalog.load_scorer

    def load(*args: Any, **options: Any) -> Scorer:
        n_alive.append(sum(network() is not None for network in networks))
        model = load_scorer(*args, **options)
        networks.append(weakref.ref(vars(model)["checkpoint"].model))
        return model

    monkeypatch.setattr("contstim.models.catalog.load_scorer", load)
    copies = {name: tmp_path / name for name in ("gpt2", "pythia", "llama")}
    for name, folder in copies.items():
        shutil.copytree(tiny_checkpoint(name), folder)
    names = [f"hf:{folder}" for folder in copies.values()]
    for (model,) in catalog.one_at_a_time(parse_models(names), CPU):
        model.scores([SENTENCE])
        del model
    (tmp_path / "s.txt").write_text("The dog sleeps.\nA cat runs.\n")
    text, out = tmp_path / "s.txt", tmp_path / "s.csv"
    ScoreSentences(models=tuple(names), sentences=text, out=out, loading=CPU).run()
    assert n_alive == [0] * 6


def test_rules_of_a_checkpoint_share_its_network(tiny_checkpoint: Folder) -> None:
    name = f"hf:{tiny_checkpoint('pythia')}"
    models_by_rule = parse_models([name, f"{name}@chain"])
    checkpoint_ids = [
        id(vars(models[0])["checkpoint"]) for models in catalog.one_at_a_time(models_by_rule, CPU)
    ]
    assert checkpoint_ids[0] == checkpoint_ids[1]


def test_scores_equal_those_of_models_loaded_together(tiny_checkpoint: Folder) -> None:
    names = [f"hf:{tiny_checkpoint(name)}" for name in ("gpt2", "pythia")]
    expected = [catalog.load_model(name, device="cpu").log_probs([SENTENCE])[0] for name in names]
    loaded = catalog.one_at_a_time(parse_models(names), CPU)
    scores = [models[0].scores([SENTENCE])[0] for models in loaded]
    assert np.array_equal(scores, expected)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("missing", "The folder .*bad does not exist"),
        ("config", "Cannot load"),
        ("name", "does not name"),
        ("file", r"There is no .*gone\.arpa"),
    ],
)
def test_last_model_is_checked_before_the_first_is_loaded(
    tiny_checkpoint: Folder, tmp_path: Path, damage: str, message: str
) -> None:
    bad_folder = tmp_path / "bad"
    if damage == "config":
        bad_folder.mkdir()
        (bad_folder / "config.json").write_text("null")
    other_names = {"name": "x.nonsense", "file": f"kenlm:{bad_folder / 'gone.arpa'}"}
    names = [f"hf:{tiny_checkpoint('gpt2')}", other_names.get(damage, f"hf:{bad_folder}")]
    with pytest.raises(ModelError, match=message):
        next(catalog.one_at_a_time(parse_models(names)))
