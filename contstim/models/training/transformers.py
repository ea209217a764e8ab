"""Training of a small GPT-2 with byte-level BPE, or of a small BERT with WordPiece."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch

from contstim.errors import InputError
from contstim.models.training.loop import TrainingTask
from contstim.models.words import tokens_of_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from tokenizers import Tokenizer
    from torch import Tensor

    from contstim.files.arrays import IntArray
    from contstim.models.training.settings import TransformerKind, TransformerSettings
    from contstim.words.sentence import Sentence

    LogProbs: TypeAlias = Callable[[Tensor, Tensor], Tensor]

_BERT_SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def transformer_task(text: Sequence[Sentence], settings: TransformerSettings) -> TrainingTask:
    """Create the training task of a small transformer; its tokenizer is trained on the text."""
    tokenizer = train_tokenizer(text, settings.kind, settings.vocabulary_size, settings.window)
    network, log_probs = {"gpt2": _gpt2, "bert": _bert}[settings.kind](tokenizer, settings)
    rows = partial(_rows, tokenizer, settings.kind)
    lengths = np.array([len(row) for row in rows(text)])  # before truncation to the window
    return TrainingTask(
        network=network,
        encode=lambda sentences: [row[: settings.window] for row in rows(sentences)],
        log_probs=log_probs,
        save=lambda folder: save_pretrained(network, tokenizer, folder),
        facts={
            "vocabulary": len(tokenizer),
            "tokens_a_sentence": float(lengths.mean()),
            "sentences_cut": int((lengths > settings.window).sum()),
        },
    )


def _gpt2(tokenizer: Any, settings: TransformerSettings) -> tuple[Any, LogProbs]:
    from transformers import GPT2Config, GPT2LMHeadModel

    network = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=len(tokenizer),
            n_positions=settings.window,
            n_embd=settings.width,
            n_layer=settings.layers,
            n_head=settings.heads,
            resid_pdrop=settings.dropout,
            embd_pdrop=settings.dropout,
            attn_pdrop=settings.dropout,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
        )
    )

    def log_probs(ids: Tensor, present: Tensor) -> Tensor:
        output = network.transformer(input_ids=ids, attention_mask=present.long(), use_cache=False)
        # The state at position i predicts the token at position i + 1, unless that is padding
        predicted = present[:, 1:]
        states = output.last_hidden_state[:, :-1][predicted]
        return _log_probs(network.lm_head(states), ids[:, 1:][predicted])

    return network, log_probs


def _bert(tokenizer: Any, settings: TransformerSettings) -> tuple[Any, LogProbs]:
    from transformers import BertConfig, BertForMaskedLM

    network = BertForMaskedLM(
        BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=settings.width,
            num_hidden_layers=settings.layers,
            num_attention_heads=settings.heads,
            intermediate_size=4 * settings.width,
            max_position_embeddings=settings.window,
            hidden_dropout_prob=settings.dropout,
            attention_probs_dropout_prob=settings.dropout,
            pad_token_id=tokenizer.pad_token_id,
        )
    )
    special = torch.tensor([tokenizer.cls_token_id, tokenizer.sep_token_id])

    def log_probs(ids: Tensor, present: Tensor) -> Tensor:
        words = present & ~torch.isin(ids, special.to(ids.device))
        hidden = draw_hidden(words, settings.mask_share)
        visible = ids.masked_fill(hidden, tokenizer.mask_token_id)
        output = network.bert(input_ids=visible, attention_mask=present.long())
        answers = _log_probs(network.cls(output.last_hidden_state[hidden]), ids[hidden])
        return over_orders(answers, hidden, words) if settings.masking == "any-order" else answers

    return network, log_probs


def draw_hidden(words: Tensor, share: float | None) -> Tensor:
    """Draw random tokens to hide in each row, as a mask (b, l).

    Args:
        words: mask (b, l) of the tokens that may be hidden.
        share: proportion of these tokens to hide, rounded up to a whole token; None to draw a
            random proportion for each row.
    """
    shares = torch.rand(len(words), device=words.device) if share is None else share
    # (b,): number of tokens to hide in each row, at least one, since each row needs a loss
    counts = torch.clamp(torch.ceil(shares * words.sum(1)), min=1)
    # Each token gets a random rank in its row. Tokens that must remain visible get the highest
    # ranks
    noise = torch.rand(words.shape, device=words.device).masked_fill(~words, 2.0)
    ranks = noise.argsort(dim=1).argsort(dim=1)
    return words & (ranks < counts[:, None])


def over_orders(answers: Tensor, hidden: Tensor, words: Tensor) -> Tensor:
    """Estimate a sentence's log-probability, averaged over all orders of predicting its tokens.

    For each order, a token is predicted from the tokens that come before it in this order. Training
    hides m random tokens of a row's n tokens, where m is uniform from 1 to n. n/m times the sum of
    the m hidden tokens' log-probabilities is an unbiased estimate of the average. This function
    returns the parts of this sum: n/m times the log-probability of each hidden token. See Hoogeboom
    et al. (2022, *Autoregressive diffusion models*, the order-agnostic objective) and Nie et al.
    (2025, *Large language diffusion models*, equations 3 and 6).

    Args:
        answers: log p of the hidden tokens, row by row, (n_hidden,), nats.
        hidden: mask (b, l) of the hidden tokens.
        words: mask (b, l) of the tokens that may be hidden.

    Returns:
        Parts of the tokens that may be hidden, row by row, (n_words,), nats. The part of a token
        that is visible is 0.
    """
    weight = words.sum(1).to(answers.dtype) / hidden.sum(1)  # (b,): n/m of each row
    parts = torch.zeros(words.shape, dtype=answers.dtype, device=answers.device)
    parts[hidden] = answers * weight.repeat_interleave(hidden.sum(1))
    return parts[words]


def _log_probs(logits: Tensor, numbers: Tensor) -> Tensor:
    """Return log p (n,) of one token id for each row of logits (n, tokens), nats, in float32."""
    return -torch.nn.functional.cross_entropy(logits.float(), numbers, reduction="none")


def _rows(tokenizer: Any, kind: str, sentences: Sequence[Sentence]) -> list[IntArray]:
    """Encode sentences as tokens between two special tokens."""
    rows = tokens_of_texts(tokenizer, sentences)
    if kind == "gpt2":  # BERT's tokenizer itself adds [CLS] and [SEP]
        rows = [[tokenizer.bos_token_id, *row, tokenizer.eos_token_id] for row in rows]
    return [np.array(row, np.int64) for row in rows]


def save_pretrained(network: Any, tokenizer: Any, folder: Path) -> None:
    """Save a network and its tokenizer into a folder, in the format of `transformers`.

    Raises:
        InputError: if the files cannot be written.
    """
    from safetensors import SafetensorError

    try:
        network.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    except (OSError, SafetensorError) as error:
        raise InputError(f"Cannot write the model into {folder}: {error}.") from error


def train_tokenizer(
    sentences: Sequence[Sentence], kind: TransformerKind, size: int | None, window: int
) -> Any:
    """Train a `transformers` tokenizer on a text. The tokenizer distinguishes case and accents.

    `size` is the number of tokens in the vocabulary. By default, the vocabulary has all tokens that
    the text yields, at most 8,000. `window` is the maximum number of tokens of the network's input.

    Raises:
        InputError: if the text cannot yield exactly `size` tokens: it is too short for so many
            tokens, or single characters (for GPT-2, the 256 bytes) alone need more tokens.
    """
    tokenizer = {"gpt2": _byte_level_bpe, "bert": _word_piece}[kind](sentences, size or 8_000)
    if size is not None and len(tokenizer) != size:
        raise InputError(
            "`vocabulary_size` must be a number of tokens that the text can yield, such as "
            f"{len(tokenizer):,}, got {size:,}. Set `vocabulary_size` to {len(tokenizer):,}, or "
            "remove it."
        )
    tokenizer.model_max_length = window
    return tokenizer


def _byte_level_bpe(sentences: Iterable[Sentence], size: int) -> Any:
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    model = _train_tokenizer(tokenizer, trainer, sentences)
    merges = [tuple(merge) for merge in model["merges"]]
    hf: Any = transformers  # untyped, because the annotations accept merges only as texts
    return hf.GPT2Tokenizer(vocab=model["vocab"], merges=merges)


def _word_piece(sentences: Sequence[Sentence], size: int) -> Any:
    """Train a WordPiece tokenizer, reproducibly.

    The library `tokenizers` breaks ties between equally frequent pairs of tokens by token id. For
    characters inside words (tokens such as `##a`), the library chooses ids in the order of a hash
    table, and this order differs between processes. Here, these characters are passed as special
    tokens in alphabetical order, so their ids are the same in all processes.
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
    from transformers import BertTokenizer

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False, strip_accents=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner: set[str] = set()
    for word in {word for sentence in sentences for word in sentence.words}:
        normal = tokenizer.normalizer.normalize_str(word)
        for piece, _ in tokenizer.pre_tokenizer.pre_tokenize_str(normal):
            inner.update(piece[1:])
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        special_tokens=[*_BERT_SPECIALS, *(f"##{character}" for character in sorted(inner))],
        show_progress=False,
    )
    vocabulary = _train_tokenizer(tokenizer, trainer, sentences)["vocab"]
    return BertTokenizer(vocab=vocabulary, do_lower_case=False, strip_accents=False)


def _train_tokenizer(
    tokenizer: Tokenizer, trainer: Any, sentences: Iterable[Sentence]
) -> dict[str, Any]:
    # The trained vocabulary is only available in the tokenizer's JSON
    tokenizer.train_from_iterator((sentence.text for sentence in sentences), trainer)
    return dict(json.loads(tokenizer.to_str())["model"])
