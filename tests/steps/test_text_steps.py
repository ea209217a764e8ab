"""Vocabularies, sentences and models of a text, made from Python.

Witness of the records: checksums computed from the files that the records name.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from contstim.errors import InputError
from contstim.experiments.design.summary import sentences_needed
from contstim.models.catalog import load_model
from contstim.models.training.settings import RecurrentSettings, TrainingSettings
from contstim.reporter import SILENT, forwarding
from contstim.steps.sentences import FindSentences, SentenceSettings
from contstim.steps.training import TRAININGS, TrainNgram
from contstim.steps.vocabulary import MakeVocabulary
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary
from tests.steps.records import files_of, record_of


@pytest.fixture
def folder(tmp_path: Path, english: list[Sentence]) -> Path:
    lines = "".join(f"{sentence.text}\n" for sentence in english[:600])
    (tmp_path / "corpus.txt").write_text(lines, encoding="utf-8")
    (tmp_path / "unwanted.txt").write_text("zyzzyva\n", encoding="utf-8")
    return tmp_path


def test_vocabulary_step_and_its_record(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = folder / "vocab.txt"
    unwanted = folder / "unwanted.txt"
    words = MakeVocabulary(text=folder / "corpus.txt", out=out, min_count=2, without=unwanted).run()
    assert set(Vocabulary.load(out).words) == set(words.words)
    inputs, outputs = files_of(out)
    assert inputs == {"corpus.txt", "unwanted.txt"}
    assert outputs == {"vocab.txt", "vocab.txt.dropped.csv"}
    assert record_of(out)["options"]["min_count"] == 2
    assert capsys.readouterr() == ("", "")


def test_vocabulary_needs_a_text_or_published_lists(folder: Path) -> None:
    with pytest.raises(InputError, match="from `text` or `published`"):
        MakeVocabulary(out=folder / "vocab.txt").run()
    with pytest.raises(InputError, match="are not filtered"):
        MakeVocabulary(out=folder / "vocab.txt", published=folder, language="any").run()
    # Other settings are not refused, because they do not affect published lists
    step = MakeVocabulary(out=folder / "vocab.txt")
    assert replace(step, min_count=7).word_choice == step.word_choice


def test_judge_removes_the_less_likely_half(folder: Path) -> None:
    """Witness: word probabilities of KenLM's package."""
    kenlm = pytest.importorskip("kenlm")
    TrainNgram(text=folder / "corpus.txt", order=2, out=folder / "2.arpa").run()
    step = FindSentences(
        text=folder / "corpus.txt", out=folder / "all.txt", settings=SentenceSettings(words="6-9")
    )
    sentences, progress = step.run(), list[tuple[float, float | None]]()
    judged = replace(step, out=folder / "judged.txt", judge=(f"kenlm:{folder / '2.arpa'}",)).run(
        forwarding(
            SILENT, progress=lambda _task, done, total, _note="": progress.append((done, total))
        )
    )
    model = kenlm.Model(str(folder / "2.arpa"))
    log_probs = [
        [p for p, *_ in model.full_scores(" ".join(sentence.words), eos=False)]
        for sentence in sentences
    ]
    means = np.array([np.mean(values) for values in log_probs])
    lowest = np.array([min(values) for values in log_probs])
    percentile = np.quantile(np.concatenate(log_probs), 0.01, method="lower")
    likely = (means >= np.median(means)) & (lowest >= percentile)
    assert judged == tuple(s for s, is_likely in zip(sentences, likely, strict=True) if is_likely)
    assert len(judged) < len(sentences) / 2
    done, total = progress[-1]
    assert done == total == len(sentences)
    record = record_of(folder / "judged.txt")
    assert record["kept"] + sum(record["left_out"].values()) == 600


def test_sentence_step_counts_sentences(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    vocabulary, out, messages = folder / "vocab.txt", folder / "natural.txt", list[str]()
    MakeVocabulary(text=folder / "corpus.txt", out=vocabulary, min_count=1).run()
    needed, _ = sentences_needed(2)
    selection = FindSentences(
        text=folder / "corpus.txt",
        out=out,
        settings=SentenceSettings(words="6-9", without=folder / "unwanted.txt"),
        vocabulary=vocabulary,
        for_models=2,
    ).run(forwarding(SILENT, say=messages.append))
    lines = out.read_text(encoding="utf-8").splitlines()
    assert lines == [sentence.text for sentence in selection]
    # Every sentence of the text is either written or excluded for one reason
    record = record_of(out)
    assert len(lines) + sum(record["left_out"].values()) == 600
    assert record["needed"]["in all"] == needed
    assert record["complete"] is (needed <= len(lines))
    assert files_of(out) == ({"corpus.txt", "vocab.txt", "unwanted.txt"}, {"natural.txt"})
    assert messages[0] == f"{out}: {len(lines)} sentences."
    assert capsys.readouterr() == ("", "")


def test_ngram_training_and_its_files(folder: Path) -> None:
    out = folder / "bigram.arpa"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        TrainNgram(text=folder / "corpus.txt", out=out, order=2).run()
    assert load_model(f"kenlm:{out}").name
    names = {"bigram.arpa", "bigram.arpa.counts.csv", "bigram.arpa.sentences.npy"}
    assert files_of(out) == ({"corpus.txt"}, names)


def test_trained_network_is_not_trained_again(folder: Path) -> None:
    out, messages = folder / "rnn", list[str]()
    reporter = forwarding(SILENT, say=messages.append)
    network = RecurrentSettings("rnn", embedding=4, hidden=4)
    training = TrainingSettings(epochs=1)
    step = TRAININGS["rnn"](
        text=folder / "corpus.txt", out=out, network=network, training=training, device="cpu"
    )
    step.run(reporter)
    record = record_of(out)
    assert set(record["inputs"]) == {"corpus.txt"}
    assert set(record["outputs"]) == {"rnn"}
    assert f"Load it as rnn:{out}." in messages[-1]
    step.run(reporter)
    assert "was trained before" in messages[-2]
    assert record_of(out)["outputs"] == record["outputs"]


def test_error_names_the_field_that_is_a_folder(folder: Path) -> None:
    with pytest.raises(InputError, match=r"`text` must be a file, got the folder"):
        FindSentences(text=folder, out=folder / "natural.txt").run()


def test_changed_and_tokenised_sentences_are_reported(tmp_path: Path) -> None:
    """By hand: one of three sentences has a soft hyphen, two are tokenised."""
    text = tmp_path / "text.txt"
    lines = ["The ac\u00adtor saw it", "He did n't see it", "She saw it , and left"]
    text.write_text("\n".join(lines), encoding="utf-8")
    messages, warning_lines = list[str](), list[str]()
    step = MakeVocabulary(text=text, out=tmp_path / "words.txt", every_word=True, min_count=1)
    vocabulary = step.run(forwarding(SILENT, say=messages.append, warn=warning_lines.append))
    assert "actor" in vocabulary.inner
    assert len([line for line in warning_lines if "tokenised" in line]) == 1
    assert len([line for line in messages if "1 sentence of 3" in line]) == 1
    texts = record_of(tmp_path / "words.txt")["texts"]
    assert texts == {"text.txt": {"normalised": 1, "tokenised": pytest.approx(2 / 3)}}
