"""`contstim score` with transformers: sums, words, and options."""

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from contstim.english.words import english_tags
from contstim.errors import InputError, ModelError
from contstim.jobs import LocalExecutor
from contstim.jobs.model_workers import remote_scorers
from contstim.jobs.worker_context import WorkerContext
from contstim.models.base import require_language_model
from contstim.models.catalog import load_model
from contstim.models.loading import Loading
from contstim.testing.platform import read_csv_rows
from contstim.words.sentence import Sentence
from tests.cli.running import invoke, model_options

MEASURES = "log_prob surprisal surprisal_bits entropy frequency"
SHE = english_tags().frequencies.zipf("she")
TEXTS = ("Do you know the hungry teacher?", "She sleeps.", "Do you know the hungry teacher?")


@pytest.fixture(scope="module")
def folder(tiny_folder: Path) -> Path:
    (tiny_folder / "natural.txt").write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    return tiny_folder


def run_score(folder: Path, out: str, models: Sequence[str], *options: str) -> list[dict[str, str]]:
    paths = ("--sentences", folder / "natural.txt", "--out", folder / out)
    invoke("score --quiet --device cpu", *paths, *model_options(models), *options)
    return read_csv_rows(folder / out)


def test_tokens_of_a_sentence_sum_to_its_score(folder: Path) -> None:
    models = [f"kenlm:{folder}/bigram.arpa", f"hf:{folder}/gpt2", f"hf:{folder}/bert@pll-original"]
    scores = run_score(folder, "scores.csv", models)
    rows = run_score(folder, "words.csv", models, "--per-word", "--by", "token")
    assert list(rows[0]) == f"sentence model position word token {MEASURES}".split()
    assert [row["sentence"] for row in scores] == list(TEXTS)
    for model in models:
        model_rows = [row for row in rows if row["model"] == model]
        totals: defaultdict[str, float] = defaultdict(float)
        for row in model_rows:
            totals[row["sentence"]] += float(row["log_prob"])
            assert float(row["surprisal"]) == -float(row["log_prob"])
            words = [*Sentence.parse(row["sentence"]).words, row["sentence"][-1]]
            assert words[int(row["position"])] == row["word"]
            assert (row["entropy"] == "") == ("bert" in model)
            assert (row["frequency"] == "") == (row["word"] in ".?")
        assert totals[TEXTS[1]] == pytest.approx(float(scores[1][model]), abs=1e-4)
        total = 2 * float(scores[0][model])  # this sentence occurs twice
        assert totals[TEXTS[0]] == pytest.approx(total, abs=1e-4)
    assert [r["token"] for r in rows if r["model"] == models[0]][:7][-1] == "</s>"


def test_boundary_correction_gives_one_row_per_word(folder: Path) -> None:
    """The words of a sentence sum to its score; n-gram rows do not change."""
    models = [f"kenlm:{folder}/bigram.arpa", f"hf:{folder}/gpt2"]
    scores = run_score(folder, "scores.csv", models)
    correction_options = ["--per-word", "--boundary-correction"]
    rows = run_score(folder, "by-word.csv", models, *correction_options)
    uncorrected_rows = run_score(folder, "plain-words.csv", models, "--per-word")
    assert list(rows[0]) == f"sentence model position word tokens {MEASURES}".split()
    assert [row["entropy"] for row in rows] == [row["entropy"] for row in uncorrected_rows]
    assert {float(row["frequency"]) for row in rows if row["word"] == "She"} == {SHE}
    for model in models:
        model_rows = [row for row in rows if row["model"] == model and row["sentence"] == TEXTS[1]]
        words = [*Sentence.parse(TEXTS[1]).words, TEXTS[1][-1]]
        assert [row["word"] for row in model_rows] == words
        total = sum(float(row["log_prob"]) for row in model_rows)
        assert total == pytest.approx(float(scores[1][model]), abs=1e-4)
        unchanged = [row in uncorrected_rows for row in model_rows]
        assert all(unchanged) if model == models[0] else not any(unchanged)
    record = json.loads((folder / "by-word.csv.meta.json").read_text(encoding="utf-8"))
    assert record["options"]["boundary_correction"] is True
    for option in (["--boundary-correction"], ["--by", "token"]):
        with pytest.raises(InputError, match="need --per-word"):
            run_score(folder, "no.csv", models, *option)
    with pytest.raises(ModelError, match="has no boundary correction"):
        run_score(folder, "no.csv", [f"hf:{folder}/bert"], *correction_options)


def test_context_and_precision_reach_the_model_and_the_record(folder: Path) -> None:
    model = f"hf:{folder}/gpt2@chain"
    plain_rows = run_score(folder, "plain.csv", [model])
    prompted_rows = run_score(folder, "prompted.csv", [model], "--context", f"{model}=. ")
    bfloat16_rows = run_score(folder, "half.csv", [model], "--dtype", "bfloat16")
    assert len({rows[0][model] for rows in (plain_rows, prompted_rows, bfloat16_rows)}) == 3
    record = json.loads((folder / "prompted.csv.meta.json").read_text(encoding="utf-8"))
    assert record["models"][model]["context"] == ". "
    assert record["models"][model]["rule"] == "chain"


def test_scores_of_words_need_a_table_and_log_probabilities(folder: Path) -> None:
    with pytest.raises(InputError, match=r"cannot be \.npz\. Use \.csv"):
        run_score(folder, "words.npz", [f"hf:{folder}/gpt2"], "--per-word")
    with pytest.raises(ModelError, match="A score for each word needs log-prob"):
        run_score(folder, "no.csv", [f"hf:{folder}/gpt2+mean"], "--per-word")


def test_standard_errors_are_a_table_of_the_same_shape(folder: Path) -> None:
    """Witness: the model in this process; exact scores have standard errors of zero."""
    models = [f"hf:{folder}/bert{rule}" for rule in ("@chain-sampled", "+mean")]
    models.append(f"kenlm:{folder}/bigram.arpa")
    run_score(folder, "scores.csv", models, "--standard-errors", str(folder / "errors.csv"))
    rows = read_csv_rows(folder / "errors.csv")
    sampled_model = load_model(models[0], device="cpu")
    expected = sampled_model.standard_errors([Sentence.parse(text) for text in TEXTS])
    assert [float(row[models[0]]) for row in rows] == pytest.approx(expected.tolist(), rel=1e-3)
    assert all(expected > 0)
    assert {float(row[model]) for row in rows for model in models[1:]} == {0.0}


def test_mixture_writes_lower_bounds_next_to_scores(folder: Path) -> None:
    """Witness: the chain rule of the same checkpoint in this process."""
    models = [f"m=hf:{folder}/bert@chain-mixture", f"b=kenlm:{folder}/bigram.arpa"]
    scores = run_score(folder, "mixed.csv", models, "--bounds", str(folder / "bounds.csv"))
    rows = read_csv_rows(folder / "bounds.csv")
    sentences = [Sentence.parse(text) for text in TEXTS]
    chain = load_model(f"hf:{folder}/bert@chain", device="cpu").log_probs(sentences)
    assert [row["sentence"] for row in rows] == [sentence.text for sentence in sentences]
    assert {row["model"] for row in rows} == {"m"}
    assert [float(row["lower_bound"]) for row in rows] == pytest.approx(chain.tolist(), abs=1e-4)
    for row, score in zip(rows, scores, strict=True):
        assert float(row["log_prob"]) == pytest.approx(float(score["m"]), abs=1e-4)
        gap = float(row["log_prob"]) - float(row["lower_bound"])
        assert float(row["gap"]) == pytest.approx(gap, abs=1e-9)
        assert gap > 0


def test_workers_return_the_same_bounds(folder: Path) -> None:
    """Witness: the model in this process; models without a mixture have no bounds."""
    specifications = [f"m=hf:{folder}/bert@chain-mixture", f"b=kenlm:{folder}/bigram.arpa"]
    sentences = [Sentence.parse(text) for text in TEXTS]
    expected = load_model(f"hf:{folder}/bert@chain-mixture", device="cpu").lower_bounds(sentences)
    assert expected is not None
    context = WorkerContext(Loading(device="cpu"))
    with remote_scorers(specifications, LocalExecutor(), context) as scorers:
        mixture, bigram = (require_language_model(scorer, "A test") for scorer in scorers)
        bounds = mixture.lower_bounds(sentences)
        assert bounds is not None
        np.testing.assert_allclose(bounds, expected, rtol=0, atol=1e-4)
        assert bigram.lower_bounds(sentences) is None


@pytest.mark.parametrize(
    ("rule", "options", "message"),
    [
        ("chain", (), "--bounds needs a masked model with the rule chain-mixture"),
        ("chain-mixture+mean", (), "lower bound is the mean over orders"),
        ("chain-mixture", ("--per-word",), "Remove --bounds or --per-word"),
    ],
)
def test_bounds_of_other_rules_are_refused(
    folder: Path, rule: str, options: tuple[str, ...], message: str
) -> None:
    bounds = ("--bounds", str(folder / "never.csv"))
    with pytest.raises(InputError, match=message):
        run_score(folder, "no.csv", [f"hf:{folder}/bert@{rule}"], *bounds, *options)
    assert not (folder / "never.csv").exists()
