"""Whether models recognize the sentences that they were trained on."""

import json
from pathlib import Path

import pytest

from contstim.english import generate
from contstim.errors import ModelError
from contstim.models import training_text
from contstim.models.catalog import load_model, load_scorer
from contstim.models.ngram.adapter import NgramModel
from contstim.reporter import SILENT
from contstim.words.sentence import Sentence
from tests.models.damages import DAMAGES
from tests.models.tiny import Folder
from tests.models.training.runs import ALL_KINDS, SENTENCES, train


def split_natural(english: list[Sentence]) -> tuple[list[Sentence], list[Sentence]]:
    """Return training sentences, as another file may spell them, and new sentences."""
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


def test_models_recognize_training_sentences(trigram: NgramModel, english: list[Sentence]) -> None:
    """Witness: the training text itself."""
    seen, new = split_natural(english)
    assert trigram.training_text is not None
    assert training_text.in_training_text(trigram.training_text, english).all()
    assert (
        training_text.in_training_text(trigram.training_text, [*new, *seen]).tolist()
        == [False] * 163 + [True] * 37
    )
    assert training_text.in_training_text(trigram.training_text, []).shape == (0,)


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_trained_networks_recognize_validation_sentences(kind: str, tmp_path: Path) -> None:
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


def test_other_models_have_no_training_text(tiny_checkpoint: Folder) -> None:
    for name in ("bert", "gpt2"):
        assert load_model(f"hf:{tiny_checkpoint(name)}", device="cpu").training_text is None


@pytest.mark.parametrize(
    "text", ["the Dog, sees the cat", "The dog sees the cat!", "THE  DOG sees “the cat”"]
)
def test_hashes_ignore_case_punctuation_and_spacing(text: str) -> None:
    assert training_text.sentence_hash(Sentence.parse(text)) == training_text.sentence_hash(
        Sentence.parse("The dog sees the cat")
    )


UNDETECTABLE = ("missing", "carriage returns")  # no file, and other valid numbers


@pytest.mark.parametrize("damage", [name for name in DAMAGES if name not in UNDETECTABLE])
def test_damaged_hashes_are_refused(damage: str, tmp_path: Path) -> None:
    (tmp_path / "m.arpa").write_text("")
    hashes = training_text.sentence_hashes(SENTENCES)
    training_text.write_training_text(tmp_path / "m.arpa", hashes)
    path = training_text.training_text_beside(tmp_path / "m.arpa")
    assert path is not None
    DAMAGES[damage](path)
    with pytest.raises(ModelError, match="does not contain the hashes of a training text"):
        training_text.in_training_text(path, SENTENCES)


def test_contamination_of_subsets_is_read_from_the_record(
    trigram: NgramModel, english: list[Sentence], tmp_path: Path
) -> None:
    seen, new = split_natural(english)
    contamination = training_text.contamination(
        {"a": trigram.training_text, "b": None}, [*seen, *new]
    )
    scores = tmp_path / "scores.csv"
    record = tmp_path / "scores.csv.meta.json"
    record.write_text(json.dumps(training_text.tell_contamination(contamination, SILENT)))
    subset = training_text.read_contamination(scores, ("a", "b", "c"), [*seen[:3], *new[:7]])
    assert subset["a"] is not None
    assert (subset["a"].sentences, len(subset["a"].hashes)) == (10, 3)
    assert subset["b"] is subset["c"] is None
    for text in ("", "null", "[" * 100_000, '{"training_text": 3}', '{"training_text": {"a": 3}}'):
        record.write_text(text)
        assert training_text.read_contamination(scores, ("a",), seen) == {"a": None}
