"""What models know of the sentences that they were trained on."""

import json
from pathlib import Path

import pytest

from contstim.english import generate
from contstim.errors import ModelError
from contstim.models import training_text
from contstim.models.catalog import load_model, load_scorer
from contstim.models.ngram.adapter import NgramModel
from contstim.words.sentence import Sentence
from tests.models.damages import DAMAGES
from tests.models.tiny import Folder
from tests.models.training.runs import ALL_KINDS, SENTENCES, train


def natural(english: list[Sentence]) -> tuple[list[Sentence], list[Sentence]]:
    """Sentences that models were trained on, as they may stand in another file; and new ones."""
    seen = list(dict.fromkeys(english))[:37]
    rewritten = [
        Sentence((s.words[0].upper() + ",", *s.words[1:]), "!") if row % 2 else s
        for row, s in enumerate(seen)
    ]
    known = set(map(training_text.sentence_hash, english))
    new = [
        s
        for s in dict.fromkeys(generate(900, seed=99))
        if training_text.sentence_hash(s) not in known
    ]
    return rewritten, new[:163]


def test_ngram_models_know_their_sentences(trigram: NgramModel, english: list[Sentence]) -> None:
    """Witness: the training text itself."""
    seen, new = natural(english)
    assert trigram.training_text is not None
    assert training_text.in_training_text(trigram.training_text, english).all()
    assert (
        training_text.in_training_text(trigram.training_text, [*new, *seen]).tolist()
        == [False] * 163 + [True] * 37
    )
    assert training_text.in_training_text(trigram.training_text, []).shape == (0,)


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_trained_networks_know_validation_sentences_too(kind: str, tmp_path: Path) -> None:
    out = tmp_path / kind
    train(kind, out)
    model = load_model(str(out), device="cpu")
    assert model.training_text is not None
    assert training_text.in_training_text(model.training_text, SENTENCES).all()
    assert not training_text.in_training_text(
        model.training_text, [Sentence.parse("Nobody ever wrote this")]
    ).any()
    mean = load_scorer(f"{out}+mean", device="cpu")
    assert mean.training_text == model.training_text
    model.training_text.unlink()
    assert load_model(str(out), device="cpu").training_text is None


def test_of_other_models_nothing_is_known(tiny_checkpoint: Folder) -> None:
    for name in ("bert", "gpt2"):
        assert load_model(f"hf:{tiny_checkpoint(name)}", device="cpu").training_text is None


@pytest.mark.parametrize(
    "text", ["the Dog, sees the cat", "The dog sees the cat!", "THE  DOG sees “the cat”"]
)
def test_case_marks_and_spacing_do_not_matter(text: str) -> None:
    assert training_text.sentence_hash(Sentence.parse(text)) == training_text.sentence_hash(
        Sentence.parse("The dog sees the cat")
    )


UNSEEN = ("missing", "carriage returns")  # no file, and other numbers that are as good


@pytest.mark.parametrize("damage", [name for name in DAMAGES if name not in UNSEEN])
def test_damaged_hashes_are_refused(damage: str, tmp_path: Path) -> None:
    (tmp_path / "m.arpa").write_text("")
    training_text.write_training_text(tmp_path / "m.arpa", SENTENCES)
    text = training_text.training_text_beside(tmp_path / "m.arpa")
    assert text is not None
    DAMAGES[damage](text)
    with pytest.raises(ModelError, match="does not contain the hashes of a training text"):
        training_text.in_training_text(text, SENTENCES)


def test_record_of_subsets(trigram: NgramModel, english: list[Sentence], tmp_path: Path) -> None:
    seen, new = natural(english)
    found = training_text.contamination({"a": trigram.training_text, "b": None}, [*seen, *new])
    scores = tmp_path / "scores.csv"
    record = tmp_path / "scores.csv.meta.json"
    record.write_text(json.dumps(training_text.contamination_facts(found)))
    some = training_text.read_contamination(scores, ("a", "b", "c"), [*seen[:3], *new[:7]])
    assert some["a"] is not None
    assert (some["a"].sentences, len(some["a"].hashes)) == (10, 3)
    assert some["b"] is some["c"] is None
    for text in ("", "null", "[" * 100_000, '{"training_text": 3}', '{"training_text": {"a": 3}}'):
        record.write_text(text)
        assert training_text.read_contamination(scores, ("a",), seen) == {"a": None}
