"""Small transformers: tokenizers without loss of text, masks, and folders that `hf:` reads."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from contstim.errors import InputError, ModelError
from contstim.models.catalog import load_model
from contstim.models.checkpoints import silence
from contstim.models.masked.rules import chain_plan
from contstim.models.training.settings import TransformerKind, TransformerSettings
from contstim.models.training.transformers import (
    draw_hidden,
    over_orders,
    train_tokenizer,
    transformer_task,
)
from contstim.models.words import SPECIAL
from contstim.words.sentence import Sentence
from tests.models.training import runs
from tests.models.training.runs import SENTENCES, train

ODD = [Sentence.parse(text) for text in ("Naïve Füße sah 猫 im Café!", "It's the U.S. that won")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("transformers")
    for kind in ("gpt2", "bert"):
        train(kind, root / kind)
    return root


@pytest.mark.parametrize(("kind", "rule"), [("gpt2", "log-likelihood"), ("bert", "chain")])
def test_trained_folders_load_as_transformers(folder: Path, kind: str, rule: str) -> None:
    """Witness: `transformers` itself, which finds every weight and the same tokenizer."""
    model = load_model(str(folder / kind), device="cpu")
    assert model.convention.rule == rule
    assert np.isfinite(model.log_probs(SENTENCES[:3])).all()
    assert model.knows(["teacher"]).all()


@pytest.mark.parametrize("kind", ["gpt2", "bert"])
def test_loss_equals_the_networks_own_loss(kind: TransformerKind) -> None:
    """Witness: the loss that `transformers` computes from labels."""
    task = transformer_task(SENTENCES, TransformerSettings(kind, 16, 1, 2, 32))
    network = task.network.eval()
    (row,) = task.encode(SENTENCES[:1])
    ids = torch.from_numpy(row)[None]
    present = torch.ones_like(ids, dtype=torch.bool)
    with torch.no_grad(), silence():
        torch.manual_seed(7)
        ours = -float(task.log_probs(ids, present).mean())
        if kind == "gpt2":
            loss = network(input_ids=ids, labels=ids).loss
        else:
            torch.manual_seed(7)
            hidden = draw_hidden(torch.nn.functional.pad(present[:, 2:], (1, 1)), None)
            mask = train_tokenizer(SENTENCES, kind, None, 32).mask_token_id
            labels = ids.masked_fill(~hidden, -100)
            loss = network(input_ids=ids.masked_fill(hidden, mask), labels=labels).loss
    assert ours == pytest.approx(float(loss), abs=1e-5)


@pytest.mark.parametrize("size", [None, 400])
def test_byte_level_tokens_spell_any_text(size: int | None) -> None:
    """Witness: decoding returns the characters, seen in training or not."""
    tokenizer = train_tokenizer(SENTENCES, "gpt2", size, 32)
    for sentence in (*SENTENCES, *ODD):
        assert tokenizer.decode(tokenizer(sentence.text)["input_ids"]) == sentence.text
    assert size is None or len(tokenizer) == size


@pytest.mark.parametrize("kind", ["gpt2", "bert"])
def test_equal_texts_give_equal_tokenizers(kind: TransformerKind) -> None:
    """The library's own WordPiece training numbers characters by a varying hash."""
    first, *others = (train_tokenizer(SENTENCES, kind, 330, 32).get_vocab() for _ in range(4))
    assert all(vocabulary == first for vocabulary in others)


@pytest.mark.parametrize("kind", ["gpt2", "bert"])
def test_vocabulary_larger_than_the_text_is_refused(kind: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"`vocabulary_size` .* [0-9]+, got 7,777"):
        train(kind, tmp_path / kind, vocabulary_size=7_777)
    assert not (tmp_path / kind).exists()


def test_sentences_beyond_the_window_are_truncated_and_counted(tmp_path: Path) -> None:
    training = train("gpt2", tmp_path / "gpt2", window=8)
    assert 0 < training.facts["model"]["sentences_cut"] <= len(SENTENCES)


@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=6),
    st.one_of(st.none(), st.floats(0.05, 0.95)),
    st.integers(0, 99),
)
def test_given_share_of_words_is_hidden(lengths: list[int], share: float | None, seed: int) -> None:
    torch.manual_seed(seed)
    words = torch.arange(14) < torch.tensor(lengths)[:, None]
    words = torch.cat([torch.zeros(len(lengths), 1, dtype=torch.bool), words], dim=1)
    hidden = draw_hidden(words, share)
    assert not (hidden & ~words).any()
    counts = hidden.sum(1)
    assert ((counts >= 1) & (counts <= torch.tensor(lengths))).all()
    if share is not None:
        assert counts.tolist() == [int(np.ceil(np.float32(share) * n)) for n in lengths]


def test_random_shares_are_uniform_from_one_token_to_all() -> None:
    torch.manual_seed(0)
    counts = draw_hidden(torch.ones(2_000, 8, dtype=torch.bool), None).sum(1)
    shares = np.bincount(counts.numpy(), minlength=9)[1:] / 2_000
    np.testing.assert_allclose(shares, 1 / 8, atol=0.03)


@pytest.mark.parametrize("n", [1, 3, 5])
def test_any_order_loss_is_the_mean_over_all_orders(n: int) -> None:
    """Witness: the exact plan of the chain rule, for words of one token each."""
    plan = chain_plan((SPECIAL, *range(n)))
    answers = torch.from_numpy(np.random.default_rng(n).normal(-5, 2, len(plan.row)))
    words = torch.tensor([[False] + [True] * n])
    sums_by_size: dict[int, list[Tensor]] = {}
    for row, hidden in enumerate(torch.from_numpy(plan.hidden)):
        # Questions of a plan about a row are in the order of its tokens
        parts = over_orders(answers[torch.from_numpy(plan.row == row)], hidden[None], words)
        assert len(parts) == n
        assert ((parts != 0) == hidden[1:]).all()
        sums_by_size.setdefault(int(hidden.sum()), []).append(parts.sum())
    # All numbers of hidden tokens from 1 to n are equally likely, and so are all sets of a size
    means = torch.stack([torch.stack(sums).mean() for sums in sums_by_size.values()])
    assert float(means.mean()) == pytest.approx(plan.score(answers.numpy()), abs=1e-10)


def test_any_order_model_is_trained_and_scored(tmp_path: Path) -> None:
    training = train("bert", tmp_path / "bert", masking="any-order")
    assert training.facts["settings"]["masking"] == "any-order"
    assert training.curve[-1].training_loss < training.curve[0].training_loss
    # Every token of the text counts as a prediction, hidden or not
    assert len({epoch.predictions for epoch in training.curve}) == 1
    mixture = load_model(f"{tmp_path / 'bert'}@chain-mixture", device="cpu")
    assert np.isfinite(mixture.log_probs(SENTENCES[:2])).all()


@pytest.mark.parametrize(("kind", "token"), [("gpt2", "<|endoftext|>"), ("bert", "[MASK]")])
def test_text_with_a_special_token_is_refused(
    kind: str, token: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sentence = Sentence(("The", token, "ran"))
    monkeypatch.setattr(runs, "SENTENCES", [*runs.SENTENCES, *[sentence] * 20])
    with pytest.raises(ModelError, match="reads as a special token"):
        train(kind, tmp_path / kind)
    assert not (tmp_path / kind).exists()
