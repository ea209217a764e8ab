"""Published files of BLiMP: pairs, human agreement and accuracies; fields of generated pairs."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from contstim.english.minimal_pairs import generate_pairs
from contstim.english.paradigm import shipped_paradigms
from contstim.evaluation.accuracies import accuracies
from contstim.evaluation.minimal_pairs import (
    Method,
    MinimalPair,
    pair_files,
    read_human_agreement,
    read_minimal_pairs,
    read_published_accuracies,
    sample_pairs,
)
from contstim.evaluation.scores import score_pairs
from contstim.files.tables import read_csv, read_table
from contstim.models.ngram.adapter import NgramModel

pytestmark = pytest.mark.published


@pytest.fixture(scope="module")
def blimp(published_data: Path) -> Path:
    folder = published_data / "blimp"
    if not folder.is_dir():
        pytest.skip(f"no blimp in {published_data}")
    return folder


@pytest.fixture(scope="module")
def pairs(blimp: Path) -> list[MinimalPair]:
    return read_minimal_pairs(pair_files(blimp))


def test_67_paradigms_of_12_phenomena_are_read(pairs: list[MinimalPair]) -> None:
    """Witness: Warstadt et al. (2020), section 3."""
    counts = Counter(pair.paradigm for pair in pairs)
    assert len(counts) == 67
    assert set(counts.values()) == {1_000}
    assert len({pair.phenomenon for pair in pairs}) == 12
    assert len({pair.paradigm for pair in pairs if pair.phenomenon == "argument_structure"}) == 9


def test_prefix_methods_have_20_paradigms(pairs: list[MinimalPair], trigram: NgramModel) -> None:
    """Witness: the flags in the files; 20 paradigms have each of the two prefix methods."""
    all_scores = score_pairs([trigram], sample_pairs(pairs, 20, seed=0), list(Method))
    assert [scores.method for scores in all_scores.by_method] == list(Method)
    n_paradigms = [len(accuracies(scores).paradigms) for scores in all_scores.by_method]
    assert n_paradigms == [67, 20, 20]
    assert [len(scores.pairs) for scores in all_scores.by_method] == [1_340, 400, 400]
    assert all(np.isfinite(scores.log_probs).all() for scores in all_scores.by_method)


def test_identical_pairs_are_ties(pairs: list[MinimalPair], trigram: NgramModel) -> None:
    identical = [pair for pair in pairs if pair.good == pair.bad]
    counts = Counter(pair.paradigm for pair in identical)
    assert counts == {"passive_1": 2, "principle_A_case_2": 5}
    (scores,) = score_pairs([trigram], identical, [Method.FULL_SENTENCE]).by_method
    assert scores.ties.all()
    assert not scores.correct().any()
    assert (scores.correct("half") == 0.5).all()


def test_human_agreement_equals_published_summary(blimp: Path, pairs: list[MinimalPair]) -> None:
    """Witness: the published summary, paradigm by paradigm."""
    agreement = read_human_agreement(blimp / "raw_results/all_outputs/human_responses.csv")
    summary = read_csv(blimp / "raw_results/summary/human_validation_summary.csv")
    columns = ("Condition", "accepted", "total_mean", "count")
    for row in zip(*(summary[name] for name in columns), strict=True):
        paradigm, accepted, mean, count = row
        assert agreement[paradigm]["individual"] == pytest.approx(float(mean), abs=1e-12)
        assert agreement[paradigm]["majorities"] == int(accepted)
        assert agreement[paradigm]["answers"] == int(count)
    entries = [agreement[paradigm] for paradigm in {pair.paradigm for pair in pairs}]
    assert np.mean([entry["individual"] for entry in entries]) == pytest.approx(0.885546, abs=5e-7)
    assert sum(entry["majorities"] for entry in entries) == 323
    assert sum(entry["items"] for entry in entries) == 335


def test_average_accuracies_equal_the_published_ones(
    blimp: Path, pairs: list[MinimalPair], trigram: NgramModel
) -> None:
    """Witness: the averages in the published summary."""
    file = blimp / "raw_results/summary/models_summary.jsonl"
    (scores,) = score_pairs(
        [trigram], sample_pairs(pairs, 1, seed=0), [Method.FULL_SENTENCE]
    ).by_method
    table = accuracies(scores)
    for model, accuracy in read_published_accuracies(file).items():
        table = table.with_column(model, accuracy)
    overall = dict(zip(table.columns, table.mean(), strict=True))
    assert overall["ngram"] == pytest.approx(0.6124030, abs=5e-8)
    columns = read_table(file)
    published = {
        (term, model): columns[model][row]
        for row, (name, term) in enumerate(
            zip(columns["UID"], columns["linguistics_term"], strict=True)
        )
        if name == "overall"
        for model in ("ngram", "lstm", "txl", "gpt2")
    }
    averages = {name: table.mean(paradigms) for name, paradigms in table.groups.items()}
    assert len(averages) == 13
    for (term, model), value in published.items():
        assert averages[term][table.columns.index(model)] == pytest.approx(value, abs=1e-9)


def test_generated_pairs_have_the_published_fields(published_data: Path) -> None:
    """Witness: the first line of each of the 67 files; two files have an extra field."""
    published_fields = {}
    for file in sorted((published_data / "blimp" / "data").glob("*.jsonl")):
        with file.open(encoding="utf-8") as lines:
            row = json.loads(next(lines))
        methods = (row["one_prefix_method"], row["two_prefix_method"])
        row = {k: v for k, v in row.items() if k not in ("crucial_item", "dependency_length")}
        published_fields[methods] = {name: type(value) for name, value in row.items()}
    paradigms = [p for p in shipped_paradigms() if p.phenomenon in ("binding", "npi_licensing")]
    paradigms += [p for p in shipped_paradigms() if p.phenomenon == "island_effects"]
    generated_fields = {}
    for pair in generate_pairs(1, seed=0, paradigms=paradigms):
        methods = (bool(pair.one_prefix), bool(pair.two_prefix))
        generated_fields[methods] = {name: type(value) for name, value in pair.row.items()}
    assert generated_fields == published_fields
