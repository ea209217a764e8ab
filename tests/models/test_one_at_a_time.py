"""One model at a time in memory, all of them checked beforehand."""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contstim.errors import ModelError
from contstim.models.base import Scorer
from contstim.models.catalog import check_model, load_model, load_scorer, one_at_a_time
from contstim.models.loading import Loading
from contstim.models.specifications import parse_model, parse_models
from contstim.steps.scoring import ScoreSentences
from contstim.words.sentence import Sentence

CPU = Loading(device="cpu")
SENTENCE = Sentence.parse("The dog sleeps.")


def test_a_model_is_gone_before_the_next_is_loaded(
    tiny_checkpoint: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Witness: whether anybody still holds an earlier network whenever one is loaded.

    The folders are copies, because other tests may hold networks of the originals.
    """
    networks: list[weakref.ref[Any]] = []
    alive: list[int] = []

    def load(*args: Any, **options: Any) -> Scorer:
        alive.append(sum(network() is not None for network in networks))
        model = load_scorer(*args, **options)
        networks.append(weakref.ref(vars(model)["checkpoint"].model))
        return model

    monkeypatch.setattr("contstim.models.catalog.load_scorer", load)
    copies = {name: tmp_path / name for name in ("gpt2", "pythia", "llama")}
    for name, folder in copies.items():
        shutil.copytree(tiny_checkpoint(name), folder)
    names = [f"hf:{folder}" for folder in copies.values()]
    for (model,) in one_at_a_time(parse_models(names), CPU):
        model.scores([SENTENCE])
        del model
    (tmp_path / "s.txt").write_text("The dog sleeps.\nA cat runs.\n")
    text, out = tmp_path / "s.txt", tmp_path / "s.csv"
    ScoreSentences(models=tuple(names), sentences=text, out=out, loading=CPU).run()
    assert alive == [0] * 6


def test_two_rules_of_a_checkpoint_share_its_network(
    tiny_checkpoint: Callable[[str], Path],
) -> None:
    name = f"hf:{tiny_checkpoint('pythia')}"
    both = parse_models([name, f"{name}@chain"])
    seen = [id(vars(models[0])["checkpoint"]) for models in one_at_a_time(both, CPU)]
    assert seen[0] == seen[1]


def test_results_are_those_of_models_loaded_together(
    tiny_checkpoint: Callable[[str], Path],
) -> None:
    names = [f"hf:{tiny_checkpoint(name)}" for name in ("gpt2", "pythia")]
    together = [load_model(name, device="cpu").log_probs([SENTENCE])[0] for name in names]
    turns = one_at_a_time(parse_models(names), CPU)
    apart = [models[0].scores([SENTENCE])[0] for models in turns]
    assert np.array_equal(apart, together)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("missing", "The folder .*bad does not exist"),
        ("config", "Cannot load"),
        ("name", "does not name"),
    ],
)
def test_the_last_model_is_checked_before_the_first_is_loaded(
    tiny_checkpoint: Callable[[str], Path], tmp_path: Path, damage: str, message: str
) -> None:
    bad = tmp_path / "bad"
    if damage == "config":
        bad.mkdir()
        (bad / "config.json").write_text("null")
    names = [f"hf:{tiny_checkpoint('gpt2')}", "x.nonsense" if damage == "name" else f"hf:{bad}"]
    with pytest.raises(ModelError, match=message):
        next(one_at_a_time(parse_models(names)))


def test_a_missing_ngram_file_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"There is no .*gone\.arpa"):
        check_model(parse_model(f"kenlm:{tmp_path / 'gone.arpa'}"))
