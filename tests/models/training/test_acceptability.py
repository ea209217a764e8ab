"""Restarts of a classifier, and the sentences on which it is trained."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from contstim.errors import InputError, ModelError
from contstim.models.checkpoints import load_checkpoint
from contstim.models.classifier import load_classifier
from contstim.models.loading import Loading
from contstim.models.training.acceptability import (
    LabelledSentence,
    classifier_task,
    read_annotations,
    read_cola,
    train_acceptability,
)
from contstim.models.training.loop import Progress
from contstim.models.training.record import CHECKPOINT, Training
from contstim.models.training.run import split_sentences
from contstim.models.training.settings import ClassifierSettings, TrainingSettings
from contstim.words.sentence import Sentence
from tests.models.tiny import TEXTS, Folder
from tests.models.training.runs import list_losses, load_weights

TRAINING = TrainingSettings(
    epochs=2, batch_size=8, learning_rate=0.01, validation=0.2, patience=3, seed=4
)


def make_labelled(text: str) -> list[LabelledSentence]:
    """Return the sentence, and its words in reverse order."""
    words = tuple(text[:-1].split())
    sentence = LabelledSentence(words, text[-1])
    return [sentence, replace(sentence, words=words[::-1], acceptable=False)]


SENTENCES = [sentence for text in TEXTS for sentence in make_labelled(text)]
VALIDATION = split_sentences(SENTENCES, TRAINING)[1]


@pytest.fixture(scope="module")
def base(tiny_checkpoint: Folder) -> str:
    return str(tiny_checkpoint("bert"))


def train(
    base: str, out: Path, settings: TrainingSettings = TRAINING, **options: Any
) -> list[Training]:
    network = ClassifierSettings(base=base)
    return train_acceptability(SENTENCES, out, 2, network, settings, device="cpu", **options)


@pytest.fixture(scope="module")
def trainings(base: str, tmp_path_factory: pytest.TempPathFactory) -> list[Training]:
    return train(base, tmp_path_factory.mktemp("cola"))


def test_restarts_share_sentences_and_differ_in_seeds(trainings: list[Training]) -> None:
    first, second = trainings
    assert [t.facts["settings"]["seed"] for t in trainings] == [4, 5]
    for name in ("text_sha256", "validation_sha256"):
        assert first.facts["settings"][name] == second.facts["settings"][name]
    assert len(VALIDATION) == round(0.2 * len(SENTENCES))
    assert list_losses(first) != list_losses(second)


def test_record_has_the_form_of_other_trainings(trainings: list[Training]) -> None:
    record = json.loads((trainings[0].out / "training.json").read_text(encoding="utf-8"))
    assert record["text"]["sentences"] == len(SENTENCES)
    assert record["text"]["validation_sentences"] == len(VALIDATION)
    assert record["model"]["sentences_cut"] == 0
    assert record["curve"][0]["predictions"] == len(SENTENCES) - len(VALIDATION)
    assert (trainings[0].out / "curve.png").is_file()


def test_restart_loads_as_classifier_with_the_recorded_loss(trainings: list[Training]) -> None:
    """Witness: the validation loss from the probabilities of the loaded model."""
    for training in trainings:
        model = load_classifier(str(training.out), name="m", loading=Loading(device="cpu"))
        acceptable = torch.from_numpy(model.probabilities([s.plain for s in VALIDATION]))
        labels = torch.tensor([float(sentence.acceptable) for sentence in VALIDATION]).double()
        loss = torch.nn.functional.binary_cross_entropy(acceptable, labels)
        assert training.best.validation_loss == pytest.approx(float(loss), abs=1e-5)


@pytest.mark.parametrize("name", ["bert", "roberta", "gpt2"])
def test_loss_equals_the_networks_own_loss(name: str, tiny_checkpoint: Folder) -> None:
    """Witness: the loss that `transformers` computes from labels, in a padded batch."""
    from contstim.models.batching import pad_rows

    task = classifier_task(SENTENCES[:4], ClassifierSettings(base=str(tiny_checkpoint(name))))
    network: Any = task.network.eval()
    rows = task.encode(SENTENCES[:4])
    with torch.no_grad():
        ours = -task.log_probs(*map(torch.from_numpy, pad_rows(rows)))
        for row, loss in zip(rows, ours, strict=True):
            ids = torch.from_numpy(row[1:])[None]
            expected = network(input_ids=ids, labels=torch.tensor([int(row[0])])).loss
            assert float(loss) == pytest.approx(float(expected), abs=1e-5)
    assert [int(row[0]) for row in rows] == [1, 0, 1, 0]


def test_classifier_learns_acceptability(base: str, tmp_path: Path) -> None:
    """Two sentences, one of them always rejected, get scores with the right sign."""
    acceptable, other = (make_labelled(text)[0] for text in TEXTS[:2])
    unacceptable = replace(other, acceptable=False)
    network = ClassifierSettings(base=base)
    settings = replace(TRAINING, epochs=3)
    (training,) = train_acceptability(
        [acceptable, unacceptable] * 40, tmp_path, 1, network, settings, device="cpu"
    )
    model = load_classifier(str(training.out), name="m", loading=Loading(device="cpu"))
    assert (model.scores([acceptable.plain, unacceptable.plain]) * [1, -1] > 0).all()


class _InterruptedError(Exception):
    pass


def test_restarts_resume_bit_for_bit(base: str, trainings: list[Training], tmp_path: Path) -> None:
    """Witness: the same restarts without an interruption."""

    def interrupt(number: int, progress: Progress) -> None:
        if (number, progress.epoch) == (2, 2):
            raise _InterruptedError

    with pytest.raises(_InterruptedError):
        train(base, tmp_path, on_progress=interrupt)
    assert not (tmp_path / "restart-1" / CHECKPOINT).exists()
    assert (tmp_path / "restart-2" / CHECKPOINT).is_file()
    resumed_epochs: list[tuple[int, int]] = []
    train(base, tmp_path, on_progress=lambda n, step: resumed_epochs.append((n, step.epoch)))
    assert set(resumed_epochs) == {(2, 2)}
    for number, training in enumerate(trainings, start=1):
        ours, theirs = load_weights(tmp_path / f"restart-{number}"), load_weights(training.out)
        assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_invalid_trainings_are_refused(base: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="`restarts` must be at least 1"):
        train_acceptability(SENTENCES, tmp_path, 0)
    with pytest.raises(InputError, match=r"`batch_size` must be at most .*, got 80"):
        train(base, tmp_path, replace(TRAINING, batch_size=80))
    with pytest.raises(ModelError, match=r"The folder .* does not exist"):
        train("./nowhere", tmp_path)


def test_classifier_is_refused_as_base(trainings: list[Training], tmp_path: Path) -> None:
    """The head of this classifier would be the same in every restart."""
    with pytest.raises(ModelError, match="is already a classifier"):
        train(str(trainings[0].out), tmp_path)


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_long_sentences_are_truncated_in_training_only(
    name: str, tiny_checkpoint: Folder, tmp_path: Path
) -> None:
    """Witness: the tokenizer's own truncation."""
    long = LabelledSentence(("dog",) * 90, ".")
    folder = str(tiny_checkpoint(name))
    task = classifier_task([long, SENTENCES[0]], ClassifierSettings(base=folder))
    assert task.facts["sentences_cut"] == 1
    row = task.encode([long])[0]
    tokenizer = load_checkpoint(folder, Loading(device="cpu")).tokenizer
    assert row[1:].tolist() == tokenizer(long.text, truncation=True, max_length=64)["input_ids"]
    task.save(tmp_path)
    model = load_classifier(str(tmp_path), name="m", loading=Loading(device="cpu"))
    reasons = model.unscorable([long.plain, SENTENCES[0].plain])
    assert [reason is None for reason in reasons] == [False, True]


COLA = 'a1\t1\t\tThe dog barked.\na1\t0\t*\tDog the barked\nb2\t1\t\tHe said "no", and left!\n'


def write_file(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_published_files_have_four_columns_and_no_header(tmp_path: Path) -> None:
    """Quotation marks are ordinary characters in these files."""
    sentences = read_cola(write_file(tmp_path / "cola.tsv", COLA))
    assert [(sentence.acceptable, sentence.text) for sentence in sentences] == [
        (True, "The dog barked."),
        (False, "Dog the barked."),
        (True, 'He said "no", and left!'),
    ]
    assert sentences[0].plain == Sentence.parse("The dog barked.")
    assert str(sentences[1]) == "0\tDog the barked."


def test_tables_are_read_by_their_header(tmp_path: Path) -> None:
    csv = ',sentence_source,label,label_notes,sentence\n0,x,1,,"Yes, it does."\n1,x,0,*,It do.\n'
    tabs = "sentence\tlabel\nYes, it does.\t1\nIt do.\t0\n"
    expected = [
        LabelledSentence(("Yes,", "it", "does"), "."),
        LabelledSentence(("It", "do"), ".", False),
    ]
    assert read_cola(write_file(tmp_path / "cola.csv", csv)) == expected
    assert read_cola(write_file(tmp_path / "cola.tsv", tabs)) == expected


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.tsv", "a\t1\tThe dog barked.\n", r"line 1 must have 4 columns.*source.*got 3"),
        ("a.tsv", "a\t2\t\tThe dog barked.\n", "row 1: the label must be 0 or 1, got '2'"),
        ("a.tsv", "a\t1\t\tThe dog barked.\n", "must contain acceptable"),
        ("a.tsv", "a\t1\t\t.\n", "row 1: A sentence needs at least one word"),
        ("a.tsv", "", "is empty"),
        ("a.csv", "sentence\nIt do.\n", "lacks the columns label"),
        ("a.csv", "label,text\n1,It does.\n", "lacks the columns sentence"),
    ],
)
def test_unreadable_tables_are_refused(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_cola(write_file(tmp_path / name, text))


def test_annotations_are_columns_of_zeros_and_ones(tmp_path: Path) -> None:
    text = (
        "Source\tDomain\tAcceptability\tSentence\tBinding\tN, Adj\n"
        "x\tIn\t1\tShe saw herself.\t1\t0\nx\tIn\t0\tShe saw himself.\t1\t1\n"
    )
    sentences, features = read_annotations(write_file(tmp_path / "a.tsv", text))
    assert features == {"Binding": (True, True), "N, Adj": (False, True)}
    assert [sentence.acceptable for sentence in sentences] == [True, False]
    with pytest.raises(InputError, match="has no features"):
        read_annotations(write_file(tmp_path / "b.tsv", "label\tsentence\n1\tIt is.\n0\tIt be.\n"))
    text = "label\tsentence\tX\n1\tIt is.\t1\n0\tIt.\t2\n"
    with pytest.raises(InputError, match="row 2: X must be 0 or 1, got '2'"):
        read_annotations(write_file(tmp_path / "c.tsv", text))
