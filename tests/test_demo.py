"""The demo: its triplets, pairs, report and reruns."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from warnings import catch_warnings, simplefilter

import numpy as np
import pytest

from contstim import demo
from contstim.demo import NAMES, run_demo
from contstim.errors import InputError
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import Pair, Triplet, read_pairs, read_triplets
from contstim.models.catalog import load_model
from contstim.models.ngram.training import DiscountWarning
from contstim.optimization.search.few_changes import JUDGE_DROP
from contstim.optimization.search.recipes import DEFAULT
from contstim.optimization.search.synthesize import synthesize_triplet
from contstim.optimization.selection.question import Certificate, NaturalQuestion, NaturalSelection
from contstim.optimization.selection.verification import verify_natural
from contstim.words.corpus import read_sentences

pytestmark = pytest.mark.slow

run_small_demo = partial(run_demo, n_training=500, n_natural=1_500, n_judging=500, most_epochs=1)
Results = tuple[tuple[Triplet, ...], tuple[Pair, ...]]
CLIMB = replace(DEFAULT, perturbation=None, with_cheap_words=None)


@contextmanager
def _small_searches(patch: pytest.MonkeyPatch) -> Iterator[None]:
    patch.setattr(demo, "_WORDS", 5)
    patch.setattr(demo, "_STARTS", 2)
    patch.setattr(demo, "synthesize_triplet", partial(synthesize_triplet, recipe=CLIMB))
    with catch_warnings():
        simplefilter("ignore", DiscountWarning)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "out"


@pytest.fixture(scope="module")
def results(folder: Path) -> Results:
    """Results of a small demo.

    Sentences are short because the forward passes of BERT double with every word.
    """
    with pytest.MonkeyPatch.context() as patch, _small_searches(patch):
        return run_small_demo(folder)


def test_triplets_meet_their_constraints(results: Results, folder: Path) -> None:
    """Witness: scores of the stored sentences under models loaded from the folder."""
    assert read_triplets(folder / "triplets.csv") == results[0]
    assert {name for t in results[0] for name in (t.model_1, t.model_2)} == set(NAMES)
    models = {
        name: load_model(str(folder / (f"{name}.arpa" if "gram" in name else name)), device="cpu")
        for name in NAMES
    }
    for t in results[0]:
        texts = [t.natural, t.synthetic_1, t.synthetic_2]
        n1, s11, s21 = models[t.model_1].log_probs(texts)
        n2, s12, s22 = models[t.model_2].log_probs(texts)
        assert s11 < n1
        assert s12 >= n2 - 1e-3
        assert s22 < n2
        assert s21 >= n1 - 1e-3
    judge = load_model(str(folder / "judge.arpa"))
    floor = np.quantile(judge.log_probs([*read_sentences(folder / "natural.txt")]), 0.2)
    for t in results[0]:
        natural, *synthetic = judge.log_probs(t.sentences)
        assert natural >= floor - 1e-3
        assert t.judge_drop_1 is None or max(natural - score for score in synthetic) <= JUDGE_DROP


def test_pairs_pass_the_verifier(results: Results, folder: Path) -> None:
    scores = ScoreTable.from_file(folder / "scores.csv")
    assert scores.models == NAMES
    pairs = read_pairs(folder / "pairs.csv")
    certificate_record = json.loads((folder / "pairs.csv.certificate.json").read_text())
    certificate = Certificate.of(
        NaturalQuestion(per_pair=1),
        (certificate_record["objective"], certificate_record["bound"]),
        0,
        "",
        exact=True,
    )
    assert len(results[1]) == len(pairs) == 15
    verify_natural(scores, NaturalSelection(pairs, certificate))
    score_record = json.loads((folder / "scores.csv.meta.json").read_text())
    assert {model["unit"] for model in score_record["models"].values()} == {"nats"}
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "<mark title=" in page
    assert all(name in page for name in NAMES)


def test_a_rerun_uses_texts_and_models_of_the_first_run(
    results: Results, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contstim.demo.generate", None)
    monkeypatch.setattr("contstim.models.training.run.Trainer", None)
    with _small_searches(monkeypatch):
        second_results = run_small_demo(folder)
    assert second_results == results


@pytest.mark.usefixtures("results")
def test_folders_without_this_demo_are_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\(seed\)"):
        run_small_demo(folder, seed=1)
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="has no demo"):
        run_small_demo(tmp_path)
