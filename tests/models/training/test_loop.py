"""Parts of the training loop: order of sentences, learning rate, saved model and record."""

import hashlib
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from contstim.errors import InputError, ModelError
from contstim.models.catalog import load_model
from contstim.models.recurrent.network import read_folder
from contstim.models.training import loop
from contstim.models.training.run import split_sentences, train_network
from contstim.models.training.settings import (
    RecurrentSettings,
    TrainingSettings,
    TransformerSettings,
)
from contstim.words.sentence import Sentence
from tests.models.conftest import Draw
from tests.models.training.runs import KINDS, SENTENCES, TRAINING, list_losses, train


@given(st.lists(st.integers(1, 30), min_size=1, max_size=300), st.integers(1, 9))
def test_each_row_is_in_one_batch_with_similar_rows(lengths: list[int], size: int) -> None:
    length_array = np.array(lengths)
    for batches in (
        loop.shuffled_batches(length_array, size, np.random.default_rng(0)),
        loop.sorted_batches(length_array, size),
    ):
        assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
        assert all(0 < len(batch) <= size for batch in batches)
        assert sum(len(batch) < size for batch in batches) <= 1 + len(lengths) // (64 * size)
    spans = [
        length_array[batch].max() - length_array[batch].min()
        for batch in loop.sorted_batches(length_array, size)
    ]
    assert sum(spans) <= length_array.max() - length_array.min()


def test_each_epoch_has_its_own_order() -> None:
    lengths = np.full(100, 5)
    first, repeated, other = (
        np.concatenate(loop.shuffled_batches(lengths, 8, np.random.default_rng([0, epoch])))
        for epoch in (0, 0, 1)
    )
    assert (first == repeated).all()
    assert (first != other).any()


@given(st.integers(2, 500), st.floats(0.001, 0.999), st.integers(0, 5))
def test_validation_sentences_are_not_trained_on(n: int, share: float, seed: int) -> None:
    settings = TrainingSettings(validation=share, seed=seed)
    sentences = [Sentence((f"w{i}",)) for i in range(n)]
    numbers = [[int(s.words[0][1:]) for s in part] for part in split_sentences(sentences, settings)]
    training, validation = numbers
    assert sorted([*training, *validation]) == list(range(n))
    assert len(validation) == max(1, round(share * n))


@given(st.integers(1, 2_000), st.floats(0.001, 0.999))
def test_learning_rate_rises_to_its_peak_and_falls_to_zero(steps: int, warmup: float) -> None:
    settings = TrainingSettings(warmup=warmup, learning_rate=0.5)
    rates = np.array([loop.learning_rate(step, steps, settings) for step in range(steps)])
    assert ((rates > 0) & (rates <= 0.5)).all()
    peak = int(rates.argmax())
    assert (np.diff(rates[: peak + 1]) > 0).all()
    assert (np.diff(rates[peak:]) < 0).all()
    assert peak <= warmup * steps + 1
    if steps > 50:
        assert rates.max() > 0.45 or warmup > 0.9
        assert rates[-1] < 0.5 * 2 / ((1 - warmup) * steps)


def test_loss_equals_that_of_the_scores(tmp_path: Path) -> None:
    """Witness: the finished model's own scores of the validation sentences."""
    training = train("lstm", tmp_path / "lstm")
    _, validation = split_sentences(SENTENCES, TRAINING)
    model = load_model(f"lstm:{tmp_path / 'lstm'}")
    predictions = sum(len(sentence) + 1 for sentence in validation)
    expected = math.exp(-model.log_probs(validation).sum() / predictions)
    assert training.perplexity == pytest.approx(expected, rel=1e-4)
    assert training.facts["text"]["validation_sentences"] == len(validation)


def test_training_stops_early_and_saves_the_best_epoch(tmp_path: Path) -> None:
    """The learning rate is far too high, so that some epoch is worse than an earlier one."""
    settings = replace(TRAINING, epochs=12, learning_rate=1.0, patience=1, warmup=0.01)
    training = train("lstm", tmp_path / "lstm", settings)
    validation = [epoch.validation_loss for epoch in training.curve]
    assert len(validation) < 12
    assert training.ended.endswith(f"has not improved since epoch {len(validation) - 1}")
    assert training.best.validation_loss == min(validation) == validation[-2]
    model = load_model(f"lstm:{tmp_path / 'lstm'}")
    _, validation_sentences = split_sentences(SENTENCES, settings)
    n_predictions = sum(len(sentence) + 1 for sentence in validation_sentences)
    loss = -model.log_probs(validation_sentences).sum() / n_predictions
    assert loss == pytest.approx(min(validation), rel=1e-4)


def test_record_contains_settings_sizes_and_losses(
    tmp_path: Path, draw_curve: Draw, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Witness: the text's hash and sizes computed here."""
    monkeypatch.setattr("contstim.models.training.record._draw", draw_curve)
    training = train("rnn", tmp_path / "rnn")
    record = json.loads((tmp_path / "rnn" / "training.json").read_text())
    text = "".join(f"{sentence.text}\n" for sentence in SENTENCES)
    assert record["settings"]["text_sha256"] == hashlib.sha256(text.encode()).hexdigest()
    assert record["settings"]["seed"] == TRAINING.seed
    assert record["settings"]["hidden"] == 8
    assert record["text"]["sentences"] == len(SENTENCES)
    assert record["text"]["words"] == sum(map(len, SENTENCES))
    network, words = read_folder(tmp_path / "rnn")
    assert record["model"]["parameters"] == sum(w.numel() for w in network.parameters())
    assert record["model"]["vocabulary"] == len(words.words)
    assert record["versions"]["torch"] == torch.__version__
    losses = [(epoch["training_loss"], epoch["validation_loss"]) for epoch in record["curve"]]
    assert losses == list_losses(training)
    assert record["cpu_seconds"] > 0
    assert record["tokens_per_second"] > 0
    assert (tmp_path / "rnn" / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_texts_smaller_than_a_batch_are_refused(tmp_path: Path) -> None:
    for kind in ("lstm", "bert"):
        with pytest.raises(InputError, match=r"at most 38, .* \(10 other sentences .*\), got 39"):
            train(kind, tmp_path / kind, replace(TRAINING, batch_size=39))
        assert not (tmp_path / kind).exists()
    for text in ([], [Sentence.parse("Hello there")]):
        with pytest.raises(InputError, match="`batch_size` must be at most"):
            train_network(text, tmp_path / "x")


def test_bfloat16_training_has_similar_losses(tmp_path: Path) -> None:
    """Witness: the losses in float32, to the precision of bfloat16."""
    try:
        with torch.autocast("cpu", torch.bfloat16):
            torch.nn.LSTM(2, 2)(torch.zeros(1, 1, 2))
    except RuntimeError:
        pytest.skip("This processor has no LSTM in bfloat16.")
    network = RecurrentSettings("lstm", embedding=8, hidden=8, min_count=1)
    rough, exact = (
        train_network(SENTENCES, tmp_path / p, network, TRAINING, device="cpu", precision=p)
        for p in ("bfloat16", "float32")
    )
    assert rough.curve != exact.curve
    np.testing.assert_allclose(list_losses(rough), list_losses(exact), rtol=0.05)


@pytest.mark.parametrize(
    ("settings", "changes", "message"),
    [
        (TrainingSettings, {"epochs": 0}, "`epochs` must be 1 or more, not 0"),
        (TrainingSettings, {"batch_size": 0}, "batch_size"),
        (TrainingSettings, {"learning_rate": 0.0}, "`learning_rate` must be above 0"),
        (TrainingSettings, {"learning_rate": math.nan}, "`learning_rate` must be above 0"),
        (TrainingSettings, {"clip": math.inf}, "`clip` must be a finite number"),
        (TrainingSettings, {"validation": 0.0}, "`validation` must be between 0 and 1"),
        (TrainingSettings, {"warmup": 1.0}, "`warmup` must be between 0 and 1"),
        (TrainingSettings, {"seed": -1}, "`seed` must be 0 or more"),
        (TrainingSettings, {"epochs": 10**400}, "`epochs` must be at most 1,000,000,000"),
        (TrainingSettings, {"weight_decay": -1.0}, "`weight_decay` must be 0 or more"),
        (RecurrentSettings, {"hidden": 10**400}, "`hidden` must be at most"),
        (RecurrentSettings, {"layers": 10**5}, "`layers` must be at most 1,000"),
        (TransformerSettings, {"window": 10**12}, "`window` must be at most"),
        (RecurrentSettings, {"kind": "gru"}, "`kind` must be one of rnn, lstm, bilstm"),
        (RecurrentSettings, {"hidden": 0}, "hidden"),
        (RecurrentSettings, {"dropout": 1.0}, "`dropout` must be below 1"),
        (RecurrentSettings, {"vocabulary_size": 0}, "`vocabulary_size` must be 1 or more"),
        (TransformerSettings, {"heads": 3}, "`width` must be a multiple of `heads`, 3, got 256"),
        (TransformerSettings, {"window": 2}, "`window` must be 8 or more"),
        (TransformerSettings, {"mask_share": 1.5}, "mask_share"),
        (TransformerSettings, {"masking": "all"}, "`masking` must be one of plain, any-order"),
        (TransformerSettings, {"masking": "any-order", "mask_share": 0.15}, "must not be set"),
    ],
)
def test_bad_settings_are_refused(settings: type, changes: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        settings(**changes)


@pytest.mark.parametrize(
    ("kind", "rate"), [("lstm", 1e5), ("bert", 1e5), *((kind, 1e38) for kind in KINDS)]
)
def test_diverged_training_leaves_no_model(kind: str, rate: float, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"diverged. Lower `learning_rate`"):
        train(kind, tmp_path / kind, replace(TRAINING, learning_rate=rate))
    assert not (tmp_path / kind).exists()


def test_nan_validation_loss_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last step of an epoch can spoil the weights."""
    monkeypatch.setattr(loop.Trainer, "validate", lambda _: math.nan)
    with pytest.raises(ModelError, match="The loss is nan after 5 steps"):
        train("rnn", tmp_path / "rnn")
    assert not (tmp_path / "rnn").exists()


def test_nan_weights_are_not_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A weight that no validation sentence uses can be nan while all losses are finite."""
    trainers: list[loop.Trainer] = []

    def validate(trainer: loop.Trainer) -> float:
        trainers.append(trainer)
        return 3.0 - len(trainers)  # the last epoch is the best

    def spoil(progress: loop.Progress) -> None:
        if progress.step == progress.steps:
            trainers[0].task.network.get_parameter("forwards.bias_hh_l0").data[:] = math.nan

    monkeypatch.setattr(loop.Trainer, "validate", validate)
    with pytest.raises(ModelError, match=r"forwards\.bias_hh_l0 has values that are not finite"):
        train("lstm", tmp_path / "lstm", on_progress=spoil)
    assert not (tmp_path / "lstm" / "model.safetensors").exists()
