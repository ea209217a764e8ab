"""The natural sentences of pairs as a table, and a study that begins with one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from contstim.errors import InputError
from contstim.models.specifications import parse_models
from contstim.optimization.jobs.allotment import (
    AllottedSentence,
    models_of,
    read_allotment,
    specified,
    write_allotment,
)
from contstim.optimization.jobs.plan import SynthesisPlan
from contstim.optimization.jobs.results import renamed
from contstim.optimization.jobs.store_changes import AllowedChanges
from contstim.sentence import Sentence
from tests.optimization.jobs.test_store_changes import find

Changed = Callable[..., SynthesisPlan]
ONE, TWO = Sentence.parse("One two."), Sentence.parse("Three two.")


@pytest.mark.parametrize("name", ["allotment.csv", "allotment.jsonl", "allotment.parquet"])
def test_what_is_written_is_read(tmp_path: Path, name: str) -> None:
    rows = (AllottedSentence("a", "b", 0, ONE), AllottedSentence("a", "b", 2, TWO))
    write_allotment(tmp_path / name, rows)
    assert read_allotment(tmp_path / name) == rows


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["a,a,0,One two."], "row 0: model_1 and model_2 must name two models"),
        (["a,b,-1,One two."], "row 0: the place -1 is below 0"),
        (["a,b,x,One two."], "'x' under place is not a whole number"),
        (["a,b,0,One two.", "b,a,0,Three two."], "place 0 of b × a in rows 0 and 1"),
        (["a,b,0,One two.", "a,c,0,One two."], "the sentence 'One two.' in rows 0 and 1"),
    ],
)
def test_tables_that_are_wrong_are_refused(tmp_path: Path, rows: list[str], message: str) -> None:
    path = tmp_path / "allotment.csv"
    path.write_text("\n".join(["model_1,model_2,place,sentence", *rows]) + "\n")
    with pytest.raises(InputError, match=message):
        read_allotment(path)


def test_the_order_of_models_is_that_of_all_pairs() -> None:
    pairs = [("c", "a"), ("b", "a"), ("c", "b")]
    rows = [AllottedSentence(*pair, 0, ONE) for pair in pairs]
    assert models_of(rows) == ["c", "b", "a"]
    with pytest.raises(InputError, match="names models in two orders"):
        models_of([*rows, AllottedSentence("a", "c", 1, TWO)])


def test_a_study_that_has_grown_is_repeated_elsewhere_from_its_allotment(
    changed: Changed, study: SynthesisPlan, tmp_path: Path
) -> None:
    """Witness: the study that has grown; and one that has not, which has other sentences."""
    first, second, third = study.models
    names = parse_models([f"c={first}", f"b={second}", f"a={third}"])
    grown = tmp_path / "grown.sqlite"
    plan = changed(per_pair=2)
    # The last two first, so that the study has an order of its own
    find(replace(plan, models=(second, third)), grown)
    results = find(plan, grown, changes=AllowedChanges(models=True))
    assert [(p.model_1, p.model_2) for p in results.pairs][1:] == [
        (second, first),
        (third, first),
    ]
    path = tmp_path / "allotment.csv"
    write_allotment(path, renamed(results, names).allotment)
    allotment = specified(read_allotment(path), names)
    assert allotment == results.allotment
    elsewhere = tmp_path / "elsewhere.sqlite"
    repeated = find(plan, elsewhere, allotment=allotment)
    assert repeated == results
    # By now the store has sentences of its own
    assert find(plan, elsewhere, allotment=allotment[:1]) == results
    assert find(plan, tmp_path / "at_once.sqlite").allotment != allotment


def test_an_allotment_that_does_not_fit_is_refused(
    changed: Changed, study: SynthesisPlan, tmp_path: Path
) -> None:
    plan, path = changed(models=study.models[:2], per_pair=1), tmp_path / "study.sqlite"
    first, second = plan.models
    unlisted = AllottedSentence(first, second, 0, Sentence.parse("Nobody gave this sentence."))
    with pytest.raises(InputError, match="which is not among the natural sentences"):
        find(plan, path, allotment=[unlisted])
    foreign = replace(plan, sentences=(*plan.sentences, Sentence.parse("Xylographs qwx.")))
    unknown = replace(unlisted, sentence=foreign.sentences[-1])
    with pytest.raises(InputError, match="which has a word that one of them does not know"):
        find(foreign, path, allotment=[unknown])
    with pytest.raises(InputError, match=r"is of other models \(a, b\)"):
        find(plan, path, allotment=[AllottedSentence("a", "b", 0, plan.sentences[0])])
