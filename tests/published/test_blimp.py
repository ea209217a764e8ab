"""BLiMP's own files: pairs, human agreement and accuracies; fields of generated pairs."""

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


def test_there_are_67_paradigms_of_12_phenomena(pairs: list[MinimalPair]) -> None:
    """Witness: Warstadt et al. (2020), section 3."""
    counts = Counter(pair.paradigm for pair in pairs)
    assert len(counts) == 67
    assert set(counts.values()) == {1_000}
    assert len({pair.phenomenon for pair in pairs}) == 12
    assert len({pair.paradigm for pair in pairs if pair.phenomenon == "argument_structure"}) == 9


def test_forty_prefix_paradigms_evaluated(pairs: list[MinimalPair], trigram: NgramModel) -> None:
    """Witness: the flags in the files, of which 20 and 20 paradigms carry each."""
    found = score_pairs([trigram], sample_pairs(pairs, 20, seed=0), list(Method))
    assert [one.method for one in found.by_method] == list(Method)
    sizes = [len(accuracies(one).paradigms) for one in found.by_method]
    assert sizes == [67, 20, 20]
    assert [len(one.pairs) for one in found.by_method] == [1_340, 400, 400]
    assert all(np.isfinite(one.log_probs).all() for one in found.by_method)


def test_the_seven_identical_pairs_are_ties(pairs: list[MinimalPair], trigram: NgramModel) -> None:
    same = [pair for pair in pairs if pair.good == pair.bad]
    assert Counter(pair.paradigm for pair in same) == {"passive_1": 2, "principle_A_case_2": 5}
    (found,) = score_pairs([trigram], same, [Method.FULL_SENTENCE]).by_method
    assert found.ties.all()
    assert not found.correct().any()
    assert (found.correct("half") == 0.5).all()


def test_people_agree_with_the_labels_as_published(blimp: Path, pairs: list[MinimalPair]) -> None:
    """Witness: the published summary, paradigm by paradigm."""
    found = read_human_agreement(blimp / "raw_results/all_outputs/human_responses.csv")
    summary = read_csv(blimp / "raw_results/summary/human_validation_summary.csv")
    names = ("Condition", "accepted", "total_mean", "count")
    for row in zip(*(summary[name] for name in names), strict=True):
        paradigm, accepted, mean, count = row
        assert found[paradigm]["individual"] == pytest.approx(float(mean), abs=1e-12)
        assert found[paradigm]["majorities"] == int(accepted)
        assert found[paradigm]["answers"] == int(count)
    some = [found[paradigm] for paradigm in {pair.paradigm for pair in pairs}]
    assert np.mean([one["individual"] for one in some]) == pytest.approx(0.885546, abs=5e-7)
    assert sum(one["majorities"] for one in some) == 323
    assert sum(one["items"] for one in some) == 335


def test_published_averages(blimp: Path, pairs: list[MinimalPair], trigram: NgramModel) -> None:
    """Witness: the averages that the published summary holds beside the paradigms."""
    file = blimp / "raw_results/summary/models_summary.jsonl"
    (full,) = score_pairs(
        [trigram], sample_pairs(pairs, 1, seed=0), [Method.FULL_SENTENCE]
    ).by_method
    table = accuracies(full)
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
    ours = {name: table.mean(paradigms) for name, paradigms in table.groups.items()}
    assert len(ours) == 13
    for (term, model), value in published.items():
        assert ours[term][table.columns.index(model)] == pytest.approx(value, abs=1e-9)


def test_fields_and_kinds_are_those_of_the_published_files(published_data: Path) -> None:
    """Outside witness: the first line of each of the 67 files; two have a remark of their own."""
    published = {}
    for file in sorted((published_data / "blimp" / "data").glob("*.jsonl")):
        with file.open(encoding="utf-8") as lines:
            row = json.loads(next(lines))
        methods = (row["one_prefix_method"], row["two_prefix_method"])
        row = {k: v for k, v in row.items() if k not in ("crucial_item", "dependency_length")}
        published[methods] = {name: type(value) for name, value in row.items()}
    paradigms = [p for p in shipped_paradigms() if p.phenomenon in ("binding", "npi_licensing")]
    paradigms += [p for p in shipped_paradigms() if p.phenomenon == "island_effects"]
    ours = {}
    for pair in generate_pairs(1, seed=0, paradigms=paradigms):
        methods = (bool(pair.one_prefix), bool(pair.two_prefix))
        ours[methods] = {name: type(value) for name, value in pair.row.items()}
    assert ours == published
