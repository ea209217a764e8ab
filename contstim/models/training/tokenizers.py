"""Tokenizers trained on a text: byte-level BPE as GPT-2 has it, WordPiece as BERT has it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from contstim.errors import InputError
from contstim.models.training.settings import option

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tokenizers import Tokenizer

    from contstim.models.training.settings import TransformerKind
    from contstim.sentence import Sentence

MOST_TOKENS = 8_000
_END_OF_TEXT = "<|endoftext|>"
_BERT_SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def train_tokenizer(
    sentences: Sequence[Sentence], kind: TransformerKind, size: int | None, window: int
) -> Any:
    """A `transformers` tokenizer for a text; case and accents are kept.

    Args:
        sentences: what sub-word models read of them is `Sentence.text`.
        kind: `gpt2` or `bert`.
        size: how many tokens; by default as many as the text gives, 8,000 at most.
        window: how many tokens the network reads.

    Raises:
        InputError: the text gives fewer tokens than asked for, or has more characters.
    """
    train = {"gpt2": _byte_level_bpe, "bert": _word_piece}[kind]
    tokenizer = train(sentences, size or MOST_TOKENS)
    if size is not None and len(tokenizer) != size:
        raise InputError(
            f"The text gives {len(tokenizer):,} tokens, its single characters included, not "
            f"{size:,}. Give that number to {option('vocabulary_size')}, leave it out, or give "
            f"more text."
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
        special_tokens=[_END_OF_TEXT],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    model = _trained(tokenizer, trainer, sentences)
    merges = [tuple(merge) for merge in model["merges"]]
    hf: Any = transformers  # whose annotations know merges as texts only
    return hf.GPT2Tokenizer(vocab=model["vocab"], merges=merges)


def _word_piece(sentences: Sequence[Sentence], size: int) -> Any:
    """WordPiece; the same for the same text.

    The library numbers characters inside words in the order of a hash table, which differs between
    processes, and breaks ties by number. So they are passed in order, as if they were special.
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
    from transformers import BertTokenizer

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False, strip_accents=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    # every character that follows another inside a word, as WordPiece writes it: `##s`
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
    vocabulary = _trained(tokenizer, trainer, sentences)["vocab"]
    return BertTokenizer(vocab=vocabulary, do_lower_case=False, strip_accents=False)


def _trained(tokenizer: Tokenizer, trainer: Any, sentences: Iterable[Sentence]) -> dict[str, Any]:
    # the trained vocabulary can be read only from the tokenizer's own JSON
    tokenizer.train_from_iterator((sentence.text for sentence in sentences), trainer)
    model: dict[str, Any] = json.loads(tokenizer.to_str())["model"]
    return model
