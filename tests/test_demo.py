import json
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
Found = tuple[tuple[Triplet, ...], tuple[Pair, ...]]
CLIMB = replace(DEFAULT, perturbation=None, with_cheap_words=None)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "out"


@pytest.fixture(scope="module")
def found(out: Path) -> Found:
    """Of short sentences, as the passes of BERT double with every word, and searched once each."""
    with catch_warnings(), pytest.MonkeyPatch.context() as patch:
        simplefilter("ignore", DiscountWarning)
        patch.setattr(demo, "_WORDS", 5)
        patch.setattr(demo, "_STARTS", 2)
        patch.setattr(demo, "synthesize_triplet", partial(synthesize_triplet, recipe=CLIMB))
        return run_small_demo(out)


def test_every_triplet_is_what_it_says(found: Found, out: Path) -> None:
    """Witness: models loaded anew from the folder score the sentences read back, the judge too."""
    assert read_triplets(out / "triplets.csv") == found[0]
    assert {name for t in found[0] for name in (t.model_1, t.model_2)} == set(NAMES)
    models = {
        name: load_model(str(out / (f"{name}.arpa" if "gram" in name else name)), device="cpu")
        for name in NAMES
    }
    for t in found[0]:
        texts = [t.natural, t.synthetic_1, t.synthetic_2]
        n1, s11, s21 = models[t.model_1].log_probs(texts)
        n2, s12, s22 = models[t.model_2].log_probs(texts)
        assert s11 < n1
        assert s12 >= n2 - 1e-3
        assert s22 < n2
        assert s21 >= n1 - 1e-3
    judge = load_model(str(out / "judge.arpa"))
    floor = np.quantile(judge.log_probs([*read_sentences(out / "natural.txt")]), 0.2)
    for t in found[0]:
        natural, *synthetic = judge.log_probs(t.sentences)
        assert natural >= floor - 1e-3
        assert t.judge_drop_1 is None or max(natural - score for score in synthetic) <= JUDGE_DROP


def test_pairs_of_all_models_pass_the_independent_verifier(found: Found, out: Path) -> None:
    scores = ScoreTable.from_file(out / "scores.csv")
    assert scores.models == NAMES
    pairs = read_pairs(out / "pairs.csv")
    facts = json.loads((out / "pairs.csv.certificate.json").read_text())
    certificate = Certificate.of(
        NaturalQuestion(per_pair=1), (facts["objective"], facts["bound"]), 0, "", exact=True
    )
    assert len(found[1]) == len(pairs) == 15
    verify_natural(scores, NaturalSelection(pairs, certificate))
    record = json.loads((out / "scores.csv.meta.json").read_text())
    assert {model["unit"] for model in record["models"].values()} == {"nats"}
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "<mark title=" in page
    assert all(name in page for name in NAMES)


def test_a_rerun_scores_nothing(found: Found, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("generate", "synthesize_triplet"):
        monkeypatch.setattr(f"contstim.demo.{name}", None)
    monkeypatch.setattr("contstim.models.training.run.Trainer", None)
    for model in ("causal.adapter:CausalModel", "masked.adapter:MaskedModel"):
        monkeypatch.setattr(f"contstim.models.{model.replace(':', '.')}.log_probs", None)
    with catch_warnings():
        simplefilter("ignore", DiscountWarning)
        again = run_small_demo(out)
    assert again == found
    record = out / "triplets.csv.meta.json"
    of_others = json.loads(record.read_text())
    of_others["models"]["LSTM"]["unit"] = "bits"
    record.write_text(json.dumps(of_others))
    with catch_warnings():
        simplefilter("ignore", DiscountWarning)
        with pytest.raises(TypeError, match="not callable"):  # the search
            run_small_demo(out)


@pytest.mark.usefixtures("found")
def test_a_folder_of_another_demo_is_refused(out: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"another seed \(0, now 1\)"):
        run_small_demo(out, seed=1)
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="has no demo"):
        run_small_demo(tmp_path)
