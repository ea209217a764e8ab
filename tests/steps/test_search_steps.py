"""Searches for triplets as a step, called from Python."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contstim.english.words import english_tags, verb_uses
from contstim.errors import InputError
from contstim.files.tables import read_table
from contstim.items.matching import match
from contstim.items.minimal_pair_scores import MinimalPairScores
from contstim.items.stimuli import read_controversial_minimal_pairs, read_triplets
from contstim.models.ngram.adapter import NgramModel
from contstim.optimization.jobs.question import SearchRules
from contstim.optimization.search.settings import SentenceSearchSettings
from contstim.optimization.selection.question import MinimalPairQuestion
from contstim.steps.execution import Execution
from contstim.steps.near_pairs import FindNearPairs
from contstim.steps.scoring import ScoreSentences
from contstim.steps.selection import SelectMinimalPairs
from contstim.steps.step import Step
from contstim.steps.synthesis import SynthesizeSentence
from contstim.steps.triplets import SearchTriplets
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary


def test_few_changes_of_the_same_part_of_speech(
    tmp_path: Path, trained: Path, english: list[Sentence], unseen: list[Sentence]
) -> None:
    """Witness: tags, uses of verbs and nats; what does not get so far is passed over."""
    models = (f"bi=kenlm:{trained}/2gram.arpa", f"tri=kenlm:{trained}/3gram.arpa")
    frequent = Vocabulary.from_sentences(english, min_count=5)
    frequent.save(tmp_path / "words.txt")
    usual = [sentence.text for sentence in unseen if not frequent.missing_words(sentence)]
    (tmp_path / "natural.txt").write_text("\n".join(usual[:20]))
    search = SearchTriplets(
        models=models,
        sentences=tmp_path / "natural.txt",
        out=tmp_path / "t.csv",
        vocabulary=tmp_path / "words.txt",
        settings=SearchRules(per_pair=2, enough=2.0),
    )
    results = search.run()
    assert len(results.triplets) == 2
    for triplet in results.triplets:
        for synthetic in (triplet.synthetic_1, triplet.synthetic_2):
            natural, table = triplet.natural, english_tags()
            tags = table.tags(natural)
            for index, use in verb_uses(natural.words, tags, table.main_kind).items():
                new = synthetic.words[index]
                assert new == natural.words[index] or use in table.kinds(new, tags[index])
            rows = zip(triplet.natural.words, synthetic.words, tags, strict=True)
            for index, (old, new, tag) in enumerate(rows):
                shares = english_tags().shares(new, initial=index == 0)
                assert new == old or shares[tag] >= 0.5
            compared = match(triplet.natural, synthetic, english_tags())
            assert abs(compared.characters) <= 7
            assert abs(compared.zipf) <= 0.25 + 1e-9
        assert min(triplet.drops) >= 2
    record = json.loads((tmp_path / "t.csv.meta.json").read_text())
    assert (record["frame"], record["enough"], record["restarts"]) == ("words", 2.0, "one")
    # With a higher aim there are at most three unsuccessful searches for each triplet
    higher = replace(search.settings, per_pair=1, enough=9.0, max_changes=2)
    results = replace(search, settings=higher).run()
    assert [pair.missing for pair in results.pairs] == [1]
    told = [line for line in results.shortages if "few new words do not reach 9 nats" in line]
    assert len(told) == sum(pair.unchanged for pair in results.pairs) <= 3
    reasons = (" where bi rejects", " where tri rejects", " where bi and tri reject")
    assert all(line.endswith(reasons) for line in told)


def test_triplets_are_searched(
    tmp_path: Path,
    trained: Path,
    english: list[Sentence],
    unseen: list[Sentence],
    capsys: pytest.CaptureFixture[str],
) -> None:
    for n in (2, 3):
        shutil.copy(trained / f"{n}gram.arpa", tmp_path)
    models = (f"bi=kenlm:{tmp_path}/2gram.arpa", f"tri=kenlm:{tmp_path}/3gram.arpa")
    sentences, words, without = (tmp_path / f"{name}.txt" for name in ("natural", "words", "no"))
    frequent = Vocabulary.from_sentences(english, min_count=5)
    frequent.save(words)
    # "There is …" has no other admissible words under n-grams
    usual = [s for s in unseen if not frequent.missing_words(s) and s.words[0] != "There"]
    sentences.write_text("".join(f"{sentence.text}\n" for sentence in usual[:20]))
    without.write_text("email\n")
    out = tmp_path / "t.csv"
    settings = SearchRules(per_pair=1, recipe="golan2023", exclude=(str(without), "hear"))
    search = SearchTriplets(
        models=models, sentences=sentences, out=out, vocabulary=words, settings=settings
    )
    results = search.run()
    assert capsys.readouterr() == ("", "")
    assert len(results.triplets) == 1
    assert [t.triplet_id for t in read_triplets(out)] == [t.triplet_id for t in results.triplets]
    assert {(t.model_1, t.model_2) for t in results.triplets} == {("bi", "tri")}
    record = json.loads((tmp_path / "t.csv.meta.json").read_text())
    models_read = {"2gram.arpa", "3gram.arpa"}
    assert set(record["inputs"]) == {"natural.txt", "words.txt", "no.txt", *models_read}
    assert set(record["outputs"]) == {"t.csv"}
    assert record["options"]["exclude"] == [str(without), "hear"]
    assert (tmp_path / "contstim.sqlite").exists()


def test_near_pairs_of_other_units_are_selected_with_scores(
    tmp_path: Path, trained: Path, unseen: list[Sentence]
) -> None:
    """Witness: the cells of the table of near pairs."""
    (tmp_path / "natural.txt").write_text("\n".join(s.text for s in unseen[:25]))
    FindNearPairs(
        models=(
            f"s=kenlm:{trained}/2gram.arpa+slor:{trained}/1gram.arpa",
            f"kenlm:{trained}/3gram.arpa",
        ),
        sentences=tmp_path / "natural.txt",
        out=tmp_path / "near.csv",
    ).run()
    out = tmp_path / "pairs.csv"
    settings = MinimalPairQuestion(per_pair=2)
    selection = SelectMinimalPairs(pairs=tmp_path / "near.csv", out=out, settings=settings).run()
    assert read_controversial_minimal_pairs(out) == selection.pairs
    table, near = read_table(out), read_table(tmp_path / "near.csv")
    assert not any(name.startswith("log_prob") for name in table)
    for row, pair_id in enumerate(table["pair_id"]):
        for number in (1, 2):
            model = table[f"model_{number}"][row]
            cells = near[f"{model}: changed"], table[f"score_bad_model_{number}"]
            assert float(cells[0][near["pair_id"].index(pair_id)]) == float(cells[1][row])


def test_near_pairs_of_natural_sentences(
    tmp_path: Path, trained: Path, english: list[Sentence], unseen: list[Sentence]
) -> None:
    """Witness: the models asked again, tags by hand, and sentences that cannot be used."""
    models = tuple(f"{n}=kenlm:{trained}/{n}gram.arpa" for n in (1, 2, 3))
    words = Vocabulary.from_sentences(english, min_count=5)
    words.save(tmp_path / "words.txt")
    usual = [sentence.text for sentence in unseen if not words.missing_words(sentence)]
    lines = ["Stop.", "The xylophone sleeps.", *usual[:6], usual[0]]
    (tmp_path / "natural.txt").write_text("\n".join(lines))
    step = FindNearPairs(
        models=models,
        sentences=tmp_path / "natural.txt",
        out=tmp_path / "near.csv",
        vocabulary=tmp_path / "words.txt",
        search=SentenceSearchSettings(exclude=("dog",)),
    )
    pairs = step.run()
    read = MinimalPairScores.from_file(tmp_path / "near.csv")
    assert read.pairs == pairs.pairs
    assert pairs.models == ("1", "2", "3")
    for row, pair in enumerate(pairs.pairs):
        number, _, named = pair.pair_id.partition(": ")
        assert pair.good.text == lines[int(number) - 1]
        first, second = (pairs.margins[row, int(name) - 1] for name in named.split(" × "))
        assert first * second < 0
        both = zip(pair.good.words, pair.bad.words, strict=True)
        ((index, new),) = ((i, new) for i, (old, new) in enumerate(both) if old != new)
        assert new in words.words
        assert new != "dog"
        tag = english_tags().tags(pair.good)[index]
        assert (pair.paradigm == "noun") == tag.startswith("NN")
    trigram = NgramModel(trained / "3gram.arpa")
    for side, name in enumerate(("good", "bad")):
        sentences = [getattr(pair, name) for pair in pairs.pairs]
        assert pairs.log_probs[:, side, 2] == pytest.approx(trigram.log_probs(sentences))
    record = json.loads((tmp_path / "near.csv.meta.json").read_text())
    assert record["sentences"] == 6
    assert sum(record["pairs"].values()) == len(pairs.pairs)
    assert record["pairs"].keys() == {"1 × 2", "1 × 3", "2 × 3"}
    with pytest.raises(InputError, match=r"`models` must name at least 2"):
        replace(step, models=models[:1]).run()


def test_defaults_are_those_of_one_process() -> None:
    assert type(Execution().new_executor()).__name__ == "LocalExecutor"


def test_searches_can_be_interleaved() -> None:
    for workers, size in ((None, 8), (3, 3)):
        executor = Execution(executor="interleaved", workers=workers).new_executor()
        assert (type(executor).__name__, executor.size) == ("InterleavedExecutor", size)
    with pytest.raises(InputError, match="the `executor` ray"):
        Execution(executor="interleaved", gpus_per_worker=1).new_executor()


def test_a_missing_file_is_reported_before_a_model_is_read(tmp_path: Path) -> None:
    """Witness: the models cannot be read either, which would be a `ModelError`."""
    (tmp_path / "broken.arpa").write_text("no model\n")
    (tmp_path / "natural.txt").write_text("The dog sleeps.\n")
    models = (f"a=kenlm:{tmp_path}/broken.arpa", f"b=kenlm:{tmp_path}/broken.arpa@lower")
    missing, natural = tmp_path / "missing.txt", tmp_path / "natural.txt"
    steps: list[Step[Any]] = [
        SearchTriplets(
            models=models, sentences=natural, out=tmp_path / "t.csv", vocabulary=missing
        ),
        FindNearPairs(models=models, sentences=natural, out=tmp_path / "n.csv", vocabulary=missing),
        SynthesizeSentence(
            accept=models[:1], reject=models[1:], sentence="The dog sleeps", vocabulary=missing
        ),
        ScoreSentences(models=models, sentences=missing, out=tmp_path / "s.csv"),
    ]
    for step in steps:
        with pytest.raises(InputError, match=r"missing\.txt"):
            step.run()


def test_a_judge_reads_its_context() -> None:
    step = SearchTriplets.of(
        {
            "models": ("a=kenlm:a.arpa", "b=hf:b"),
            "judge": ("j=hf:j",),
            "context": ("j=It says:",),
            "sentences": Path("natural.txt"),
            "out": Path("triplets.csv"),
        }
    )
    assert step.settings.judge == ("j=hf:j?context=It%20says%3A",)
    assert step.models == ("a=kenlm:a.arpa", "b=hf:b")
