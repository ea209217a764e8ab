"""Search steps, called from Python."""

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


def test_few_word_changes_keep_the_part_of_speech(
    tmp_path: Path, trained: Path, english: list[Sentence], unseen: list[Sentence]
) -> None:
    """Witness: tags, verb uses and nats; failed searches are skipped."""
    models = (f"bi=kenlm:{trained}/2gram.arpa", f"tri=kenlm:{trained}/3gram.arpa")
    vocabulary = Vocabulary.from_sentences(english, min_count=5)
    vocabulary.save(tmp_path / "words.txt")
    texts = [sentence.text for sentence in unseen if not vocabulary.missing_words(sentence)]
    (tmp_path / "natural.txt").write_text("\n".join(texts[:20]))
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
            natural, tag_table = triplet.natural, english_tags()
            tags = tag_table.tags(natural)
            for index, use in verb_uses(natural.words, tags, tag_table.main_kind).items():
                new = synthetic.words[index]
                assert new == natural.words[index] or use in tag_table.kinds(new, tags[index])
            rows = zip(triplet.natural.words, synthetic.words, tags, strict=True)
            for index, (old, new, tag) in enumerate(rows):
                shares = english_tags().shares(new, initial=index == 0)
                assert new == old or shares[tag] >= 0.5
            comparison = match(triplet.natural, synthetic, english_tags())
            assert abs(comparison.characters) <= 7
            assert abs(comparison.zipf) <= 0.25 + 1e-9
        assert min(triplet.drops) >= 2
    record = json.loads((tmp_path / "t.csv.meta.json").read_text())
    assert (record["frame"], record["enough"], record["restarts"]) == ("words", 2.0, "one")
    # A higher threshold gives at most three unsuccessful searches for each triplet
    stricter_settings = replace(search.settings, per_pair=1, enough=9.0, max_changes=2)
    results = replace(search, settings=stricter_settings).run()
    assert [pair.missing for pair in results.pairs] == [1]
    messages = [line for line in results.shortages if "few new words do not reach 9 nats" in line]
    assert len(messages) == sum(pair.unchanged for pair in results.pairs) <= 3
    reasons = (" where bi rejects", " where tri rejects", " where bi and tri reject")
    assert all(line.endswith(reasons) for line in messages)


def test_triplet_search_and_its_record(
    tmp_path: Path,
    trained: Path,
    english: list[Sentence],
    unseen: list[Sentence],
    capsys: pytest.CaptureFixture[str],
) -> None:
    for n in (2, 3):
        shutil.copy(trained / f"{n}gram.arpa", tmp_path)
    models = (f"bi=kenlm:{tmp_path}/2gram.arpa", f"tri=kenlm:{tmp_path}/3gram.arpa")
    sentences, words, excluded = (tmp_path / f"{name}.txt" for name in ("natural", "words", "no"))
    vocabulary = Vocabulary.from_sentences(english, min_count=5)
    vocabulary.save(words)
    # "There is …" has no other admissible words under n-grams
    candidates = [s for s in unseen if not vocabulary.missing_words(s) and s.words[0] != "There"]
    sentences.write_text("".join(f"{sentence.text}\n" for sentence in candidates[:20]))
    excluded.write_text("email\n")
    out = tmp_path / "t.csv"
    settings = SearchRules(per_pair=1, recipe="golan2023", exclude=(str(excluded), "hear"))
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
    assert record["options"]["exclude"] == [str(excluded), "hear"]
    assert (tmp_path / "contstim.sqlite").exists()


def test_selected_near_pairs_keep_scores_in_other_units(
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
    """Witness: scores from the models, tags of the sentences, and unusable sentences."""
    models = tuple(f"{n}=kenlm:{trained}/{n}gram.arpa" for n in (1, 2, 3))
    vocabulary = Vocabulary.from_sentences(english, min_count=5)
    vocabulary.save(tmp_path / "words.txt")
    texts = [sentence.text for sentence in unseen if not vocabulary.missing_words(sentence)]
    lines = ["Stop.", "The xylophone sleeps.", *texts[:6], texts[0]]
    (tmp_path / "natural.txt").write_text("\n".join(lines))
    step = FindNearPairs(
        models=models,
        sentences=tmp_path / "natural.txt",
        out=tmp_path / "near.csv",
        vocabulary=tmp_path / "words.txt",
        search=SentenceSearchSettings(exclude=("dog",)),
    )
    pairs = step.run()
    stored = MinimalPairScores.from_file(tmp_path / "near.csv")
    assert stored.pairs == pairs.pairs
    assert pairs.models == ("1", "2", "3")
    for row, pair in enumerate(pairs.pairs):
        number, _, model_names = pair.pair_id.partition(": ")
        assert pair.good.text == lines[int(number) - 1]
        first, second = (pairs.margins[row, int(name) - 1] for name in model_names.split(" × "))
        assert first * second < 0
        word_pairs = zip(pair.good.words, pair.bad.words, strict=True)
        ((index, new),) = ((i, new) for i, (old, new) in enumerate(word_pairs) if old != new)
        assert new in vocabulary.words
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


def test_default_executor_is_local() -> None:
    assert type(Execution().new_executor()).__name__ == "LocalExecutor"


def test_searches_can_be_interleaved() -> None:
    for workers, size in ((None, 8), (3, 3)):
        executor = Execution(executor="interleaved", workers=workers).new_executor()
        assert (type(executor).__name__, executor.size) == ("InterleavedExecutor", size)
    with pytest.raises(InputError, match="the `executor` ray"):
        Execution(executor="interleaved", gpus_per_worker=1).new_executor()


def test_missing_file_is_reported_before_models_are_read(tmp_path: Path) -> None:
    """The models cannot be read either; reading them would raise `ModelError`."""
    (tmp_path / "broken.arpa").write_text("no model\n")
    (tmp_path / "natural.txt").write_text("The dog sleeps.\n")
    models = (f"a=kenlm:{tmp_path}/broken.arpa", f"b=kenlm:{tmp_path}/broken.arpa@lower")
    missing, texts = tmp_path / "missing.txt", tmp_path / "natural.txt"
    steps: list[Step[Any]] = [
        SearchTriplets(models=models, sentences=texts, out=tmp_path / "t.csv", vocabulary=missing),
        FindNearPairs(models=models, sentences=texts, out=tmp_path / "n.csv", vocabulary=missing),
        SynthesizeSentence(
            accept=models[:1], reject=models[1:], sentence="The dog sleeps", vocabulary=missing
        ),
        ScoreSentences(models=models, sentences=missing, out=tmp_path / "s.csv"),
    ]
    for step in steps:
        with pytest.raises(InputError, match=r"missing\.txt"):
            step.run()


def test_context_is_added_to_the_judge() -> None:
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
