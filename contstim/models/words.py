"""The words of a sentence to which the tokens of a sub-word tokenizer belong.

Words are separated by white space, and the end mark stands apart. Tokenizers cut differently:
BERT's and GPT-2's split `well-known` and `Don't`, SentencePiece may join the full stop to the word
before it. So tokens are matched to words by the characters that they cover. In `The dogs bark.`:

    token        The     Ġdog    s       Ġbark   .
    characters   0-3     3-7     7-8     8-13    13-14
    word of      0       1       1       2       END_MARK

The words end at characters 3, 8 and 13; a space belongs to the word after it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.errors import ModelError
from contstim.models.special_tokens import refuse_special_ids, refuse_special_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from contstim.arrays import IntArray
    from contstim.sentence import Sentence

END_MARK = -1
SPECIAL = -2


@dataclass(frozen=True, slots=True)
class Encoding:
    """A sentence as tokens, in reading order.

    Attributes:
        ids: token ids.
        word_of: for each token the 0-based position of its word, `END_MARK` for the end mark,
            `SPECIAL` for tokens that the tokenizer adds to every text.
    """

    ids: tuple[int, ...]
    word_of: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.ids)


def encode(
    tokenizer: Any,
    sentence: Sentence,
    *,
    leading_space: bool = False,
    special_tokens: bool = True,
    end_apart: bool = True,
) -> Encoding:
    """One sentence; see `encode_batch`."""
    return encode_batch(
        tokenizer,
        [sentence],
        leading_space=leading_space,
        special_tokens=special_tokens,
        end_apart=end_apart,
    )[0]


def unscorable(
    encode: Callable[[Sequence[Sentence]], object], sentences: Sequence[Sentence]
) -> list[str | None]:
    """Why an encoder refuses each sentence, (n_sentences,); None where it does not.

    Halves a list that is refused until single sentences are left, so that few refused sentences
    cost few encodings.
    """
    try:
        encode(sentences)
    except ModelError as error:
        if len(sentences) == 1:
            return [str(error)]
        half = len(sentences) // 2
        return unscorable(encode, sentences[:half]) + unscorable(encode, sentences[half:])
    return [None] * len(sentences)


def encode_batch(
    tokenizer: Any,
    sentences: Sequence[Sentence],
    *,
    leading_space: bool = False,
    special_tokens: bool = True,
    end_apart: bool = True,
) -> list[Encoding]:
    """Sentences as tokens, with the word that each token belongs to.

    A token may hold the last characters of the last word and the end mark (`dog.`). With
    `end_apart` such a sentence is encoded without its end mark, which then follows as a token of
    its own; otherwise the text is encoded as it stands and the token counts as part of the word.

    Tokenizers that report no character offsets (XLM's) are matched by characters: the text's tokens
    must spell what the words' tokens spell one by one.

    Args:
        tokenizer: a `transformers` tokenizer.
        sentences: what to encode.
        leading_space: whether to put a space before the first word, so that byte-level BPE treats
            it like any other word.
        special_tokens: whether to add the tokens that the tokenizer puts around a text.
        end_apart: whether the end mark must be a token of its own.

    Raises:
        ModelError: a token spans two words, tokens cannot be matched to words, or a sentence
            holds a special token of the tokenizer, such as `[MASK]`, as a word.
    """
    refuse_special_tokens(tokenizer, sentences)
    texts = [" " * leading_space + sentence.text for sentence in sentences]
    encodings = _encode_texts(tokenizer, sentences, texts, special_tokens)
    # Sentences whose end mark is part of a token are encoded again without it
    glued = [i for i, encoding in enumerate(encodings) if encoding.end_glued] if end_apart else []
    bare = [" " * leading_space + sentences[i].bare for i in glued]
    again = _encode_texts(tokenizer, [sentences[i] for i in glued], bare, special_tokens)
    results = [Encoding(tuple(e.ids), tuple(e.word_of)) for e in encodings]
    for i, encoding in zip(glued, again, strict=True):
        results[i] = _with_end(encoding, _end_token(tokenizer, sentences[i].end))
    return results


def words_are_independent(tokenizer: Any) -> bool:
    """True if no token can reach from one word of a sentence into the next.

    Then no merge and no piece does, and the words of a sentence are cut independently of each
    other. A token reaches across where its text holds a space after another character. Text with
    any other white space, such as the no-break spaces that GPT-2's tokenizer joins to longer ones,
    stands in no sentence, whose words hold none.
    """
    return not any(
        _ACROSS.search(text) is not None and _OTHER_SPACE.search(text) is None
        for text in _texts_of_tokens(tokenizer)
    )


# A space behind another character; white space other than the plain one
_ACROSS = re.compile(r"\S ")
_OTHER_SPACE = re.compile(r"[^\S ]")


def _texts_of_tokens(tokenizer: Any) -> Iterator[str]:
    """The text that each token stands for, with the spaces that it takes in.

    Bytes that are not a whole character are written as one that is not white space. Left out are
    special tokens, which no sentence may hold.
    """
    special = set(tokenizer.all_special_tokens)
    added = {str(token): token for token in tokenizer.added_tokens_decoder.values()}
    by_bytes = _writes_bytes(tokenizer)
    for token in tokenizer.get_vocab().keys() - special:
        # rstrip: an added token that takes in the spaces to its right reaches into the next word
        if token in added:
            yield token + " " * added[token].rstrip
        elif by_bytes and _BYTES_OF.keys() >= set(token):
            yield bytes(map(_BYTES_OF.__getitem__, token)).decode(errors="replace")
        else:
            yield token.replace("▁", " ")


def _writes_bytes(tokenizer: Any) -> bool:
    """True if tokens are bytes, each written as a letter (byte-level BPE)."""
    if not tokenizer.is_fast:
        return getattr(tokenizer, "byte_decoder", None) is not None
    backend = tokenizer.backend_tokenizer
    steps = (backend.normalizer, backend.pre_tokenizer, backend.decoder)
    # A step may hide in a sequence of steps: as they are stored, all of them are named
    return any(b'"ByteLevel"' in step.__getstate__() for step in steps if step is not None)


def _letters_for_bytes() -> dict[str, int]:
    """Byte-level BPE's alphabet: printable Latin-1 as it is, other bytes as letters from 256 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = sorted(set(range(256)) - printable)
    return {chr(byte): byte for byte in printable} | {
        chr(256 + number): byte for number, byte in enumerate(others)
    }


_BYTES_OF = _letters_for_bytes()


@dataclass(frozen=True, slots=True)
class _Matched:
    ids: list[int]
    word_of: list[int]
    end_glued: bool


def _encode_texts(
    tokenizer: Any, sentences: Sequence[Sentence], texts: Sequence[str], special_tokens: bool
) -> list[_Matched]:
    if not texts:
        return []
    encoded = tokenizer(
        list(texts),
        add_special_tokens=special_tokens,
        return_offsets_mapping=tokenizer.is_fast,
        return_special_tokens_mask=True,
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,
    )
    matched = []
    for row, (sentence, text) in enumerate(zip(sentences, texts, strict=True)):
        ids = encoded["input_ids"][row]
        special = np.array(encoded["special_tokens_mask"][row], np.bool_)
        refuse_special_ids(tokenizer, sentence, ids, special)
        if tokenizer.is_fast:
            spans = np.array(encoded["offset_mapping"][row], np.int64).reshape(-1, 2)
            # the ends of the words: their lengths, a space before each but the first, and a space
            # before the text
            lengths = [len(word) + (i > 0) for i, word in enumerate(sentence.words)]
            bounds = len(text) - len(text.lstrip()) + np.cumsum(lengths)
        else:
            spans, bounds = _spell(tokenizer, sentence, ids, special)
        matched.append(_match(sentence, ids, special, spans, bounds))
    return matched


def _match(
    sentence: Sentence, ids: list[int], special: np.ndarray, spans: IntArray, bounds: IntArray
) -> _Matched:
    """The word of each token, from spans (n_tokens, 2) of characters and ends of words."""
    n_words = len(sentence)
    # the words of each token's first and last character, (n_tokens,); n_words is the end mark
    first = np.searchsorted(bounds, spans[:, 0], side="right")
    last = np.searchsorted(bounds, np.maximum(spans[:, 1] - 1, spans[:, 0]), side="right")
    first[special] = last[special] = 0
    # a token may reach from the last word into the end mark, and no other may reach across words
    straddling = first != last
    if (straddling & ((last < n_words) | (first < n_words - 1))).any():
        raise ModelError(
            f"A token of {sentence.text!r} spans two words. Scores by words need a tokenizer whose "
            f"tokens stop at white space."
        )
    word_of = np.where(first == n_words, END_MARK, first)
    word_of[special] = SPECIAL
    return _Matched(list(ids), word_of.tolist(), bool(straddling.any()))


def _with_end(encoding: _Matched, end: int) -> Encoding:
    """The tokens with an end mark behind the last word, before closing special tokens."""
    after = 1 + max(i for i, word in enumerate(encoding.word_of) if word != SPECIAL)
    ids, word_of = list(encoding.ids), list(encoding.word_of)
    # Behind the last token of text: [SEP] or </s> stay the last
    ids.insert(after, end)
    word_of.insert(after, END_MARK)
    return Encoding(tuple(ids), tuple(word_of))


def _end_token(tokenizer: Any, mark: str) -> int:
    vocabulary = tokenizer.get_vocab()
    # Byte-pair vocabularies that mark the ends of words have the mark as a word
    for token in (mark, mark + "</w>"):
        if token in vocabulary:
            return int(vocabulary[token])
    raise ModelError(
        f"The tokenizer has no token of its own for the end mark {mark!r}. End the sentence with "
        f"another mark, or use a rule that reads the text as it stands, such as pll-original."
    )


# Signs of beginnings and continuations, which are not letters of the text
_MARKERS = ("</w>", "##", "▁", "Ġ")


def _spell(
    tokenizer: Any, sentence: Sentence, ids: list[int], special: np.ndarray
) -> tuple[IntArray, IntArray]:
    """Spans of tokens and ends of words in the text that the tokens spell, without spaces."""
    pieces = _spelling(tokenizer, ids)
    # Special tokens spell nothing: they take no characters
    lengths = np.where(special, 0, [len(piece) for piece in pieces])
    words = [
        "".join(_spelling(tokenizer, tokenizer.convert_tokens_to_ids(tokenizer.tokenize(word))))
        for word in sentence.words
    ]
    spelled = "".join(p for p, is_special in zip(pieces, special, strict=True) if not is_special)
    if not spelled.startswith("".join(words)):
        raise ModelError(
            f"The tokens of {sentence.text!r} cannot be matched to its words: this tokenizer "
            f"reports no character offsets and spells words differently in a sentence and alone."
        )
    ends = np.cumsum(lengths)  # of tokens, in characters of the spelling
    return np.stack([ends - lengths, ends], axis=1), np.cumsum([len(word) for word in words])


def _spelling(tokenizer: Any, ids: list[int]) -> list[str]:
    tokens: list[str] = tokenizer.convert_ids_to_tokens(ids)
    for marker in _MARKERS:
        tokens = [token.replace(marker, "") for token in tokens]
    return tokens
