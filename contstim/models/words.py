"""Assignment of sub-word tokens to the words of a sentence.

In this package, words are separated by white space. The end mark of a sentence, such as its full
stop, is not part of a word. Tokenizers split text differently. BERT's and GPT-2's tokenizers split
`well-known` and `Don't`. SentencePiece may join the last word and the full stop. So each token is
assigned to the word that contains its characters. In `The dogs bark.`:

    token        The     Ġdog    s       Ġbark   .
    characters   0-3     3-7     7-8     8-13    13-14
    word of      0       1       1       2       END_MARK

The words end at characters 3, 8 and 13; a space belongs to the word after it.

If a text contains the name of a special token, a tokenizer reads this name as the special token.
Examples are `[MASK]`, `</s>` and `<|endoftext|>`. Sentences with such names are refused. The text
is searched for the exact names. The tokens of the text are checked as well, since a tokenizer may
also accept a name in other letter case.

The tokens of a word depend on its position. The first word has no space before it, and the last
word may share a token with the end mark. There are three kinds of positions: first, inner and last.
A search that replaces a word tries many candidate words at its position. These candidates are
tokenized at a position of the same kind in a short sentence. Their tokens are cached for each kind.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from contstim.errors import ModelError
from contstim.models.caching import WORDS, SizedCache
from contstim.words.sentence import SPACE_SIGN, Sentence, special_sign

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from contstim.files.arrays import BoolArray, IntArray

    Tokens: TypeAlias = tuple[int, ...]


# Maps each tokenizer to its number of tokens and its special tokens. If a user adds tokens to the
# tokenizer, the number changes, and the special tokens are determined again
_Special: TypeAlias = tuple[re.Pattern[str], frozenset[int]]
_cache: WeakKeyDictionary[Any, tuple[int, _Special]] = WeakKeyDictionary()


def refuse_special_tokens(tokenizer: Any, sentences: Sequence[Sentence]) -> None:
    """Raise a ModelError if the text of a sentence contains the name of a special token."""
    names, _ = _special(tokenizer)
    for sentence in sentences:
        if match := names.search(sentence.text):
            raise _refusal(sentence, match[0])


def refuse_special_ids(
    tokenizer: Any, sentence: Sentence, ids: Sequence[int], added: Sequence[int] | BoolArray
) -> None:
    """Refuse a sentence if the tokenizer has read a part of it as a special token.

    `added` is a mask of the tokens that the tokenizer adds to each text, (n_tokens,).

    Raises:
        ModelError: if the sentence is refused.
    """
    _, special = _special(tokenizer)
    for id_, is_added in zip(ids, added, strict=True):
        if id_ in special and not is_added:
            raise _refusal(sentence, str(tokenizer.convert_ids_to_tokens(int(id_))))


def are_readable(tokenizer: Any, words: Sequence[str]) -> BoolArray:
    """Return a mask of the readable words, (n_words,).

    A word is readable if it has tokens, and none of its tokens is unknown or special.
    """
    names, ids = _special(tokenizer)
    # Exclude the unknown token as well, because all unknown words have this same token
    excluded = {*ids, tokenizer.unk_token_id}
    rows = tokenizer(list(words), add_special_tokens=False)["input_ids"] if words else []
    is_readable = [
        len(row) > 0 and excluded.isdisjoint(row) and names.search(word) is None
        for word, row in zip(words, rows, strict=True)
    ]
    return np.array(is_readable, np.bool_)


def _refusal(sentence: Sentence, token: str) -> ModelError:
    return ModelError(
        f"{sentence.text[:60]!r} contains {token!r}, which this tokenizer reads as a special "
        f"token, not as a word. Remove the sentence."
    )


def _special(tokenizer: Any) -> _Special:
    size, special = _cache.get(tokenizer, (-1, None))
    if special is None or size != len(tokenizer):
        special = _find_special(tokenizer)
        _cache[tokenizer] = len(tokenizer), special
    return special


def _find_special(tokenizer: Any) -> _Special:
    """Return a pattern of the tokens that must not occur in a sentence, and their ids.

    These are all special tokens, added tokens that look like special tokens (`<tool_call>`), and
    SentencePiece's sign for a space. Any other added token is allowed, since it is a word that a
    user has added. The id of the unknown token is omitted, since any sentence may contain text that
    the tokenizer does not know.
    """
    added = tokenizer.added_tokens_decoder.items()
    signs = {i: t.content for i, t in added if t.special or special_sign(t.content)}
    names = {*map(str, tokenizer.all_special_tokens), *signs.values()}
    if any(token[:1] == SPACE_SIGN and token[1:].isalpha() for token in tokenizer.get_vocab()):
        names.add(SPACE_SIGN)  # the tokenizer would read this sign as a space
    # The longest name is first, so that the pattern matches the whole token
    stripped = sorted({name.strip() for name in names} - {""}, key=len, reverse=True)
    pattern = "|".join(map(re.escape, stripped)) or r"(?!)"  # matches nothing
    ids = {*tokenizer.all_special_ids, *signs} - {tokenizer.unk_token_id}
    return re.compile(pattern), frozenset(ids)


def tokens_of_texts(tokenizer: Any, sentences: Sequence[Sentence]) -> list[list[int]]:
    """Return the tokens of the unchanged texts, including tokens that the tokenizer adds.

    Raises:
        ModelError: if a sentence contains a special token.
    """
    refuse_special_tokens(tokenizer, sentences)
    if not sentences:
        return []
    texts = [sentence.text for sentence in sentences]
    encoded = tokenizer(texts, return_special_tokens_mask=True, verbose=False)
    rows: list[list[int]] = encoded["input_ids"]
    for parts in zip(sentences, rows, encoded["special_tokens_mask"], strict=True):
        refuse_special_ids(tokenizer, *parts)
    return rows


END_MARK = -1
SPECIAL = -2


@dataclass(frozen=True, slots=True)
class Encoding:
    """Tokens of a sentence, in reading order.

    Attributes:
        ids: token ids.
        word_of: 0-based position of each token's word; `END_MARK` for a token of the end mark;
            `SPECIAL` for a token that the tokenizer adds to every text.
    """

    ids: tuple[int, ...]
    word_of: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.ids)

    def span(self, position: int) -> tuple[int, int]:
        """Return start and stop index of the tokens of the word at a 0-based position.

        If the word has no tokens, both indices are the start of the next word.
        """
        later = (i for i, word in enumerate(self.word_of) if word >= position or word == END_MARK)
        start = next(later, len(self))
        return start, start + self.word_of.count(position)

    def with_word(self, position: int, tokens: Tokens) -> Encoding:
        """Return the encoding with new tokens for the word at a 0-based position."""
        return self.splice(*self.span(position), tokens, position)

    def splice(self, start: int, stop: int, tokens: Tokens, word: int) -> Encoding:
        """Return the encoding with a word's tokens instead of the tokens from `start` to `stop`."""
        ids = (*self.ids[:start], *tokens, *self.ids[stop:])
        return Encoding(ids, (*self.word_of[:start], *[word] * len(tokens), *self.word_of[stop:]))


def too_long_error(sentence: Sentence, needed: int, name: str, window: int) -> ModelError:
    """Return the error for a sentence that does not fit a model's window."""
    return ModelError(
        f"{sentence.text[:60]!r} needs {needed:,} tokens; {name} reads at most {window:,}. Remove "
        f"the sentence, or use another model."
    )


def unscorable(
    encode: Callable[[Sequence[Sentence]], object], sentences: Sequence[Sentence]
) -> list[str | None]:
    """Return why an encoder refuses each sentence, (n_sentences,); None for accepted sentences.

    If the encoder refuses several sentences together, they are split into halves, down to single
    sentences.
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
    bare: bool = False,
    check: Callable[[Sentence, Encoding], None] = lambda _sentence, _encoding: None,
) -> list[Encoding]:
    """Tokenize sentences and assign each token to a word.

    A token may contain both the end of the last word and the end mark (`dog.`). With `end_apart`,
    such a sentence is tokenized without its end mark, and the end mark is tokenized separately.
    Without `end_apart`, the token belongs to the last word.

    Some tokenizers, such as XLM's, do not report which characters a token covers. With such a
    tokenizer, each word is also tokenized alone, to count the letters of its tokens. The tokens of
    the text are then assigned to words by counting letters. So the tokens of a word alone and its
    tokens in the text must have the same letters.

    Args:
        tokenizer: `transformers` tokenizer.
        sentences: sentences to encode.
        leading_space: whether to put a space before the first word, so that byte-level BPE
            tokenizes this word like any later word.
        special_tokens: whether to add the tokens that the tokenizer puts around a text.
        end_apart: whether end marks must have separate tokens.
        bare: whether to omit end marks.
        check: function that raises an error for a sentence whose tokens are not acceptable.

    Raises:
        ModelError: if a token spans two words; if tokens cannot be assigned to words; if a sentence
            contains a special token of the tokenizer, such as `[MASK]`; or if the tokenizer has no
            separate token for an end mark. Also see `check`.
    """
    refuse_special_tokens(tokenizer, sentences)
    if not sentences:
        return []
    texts = [" " * leading_space + (s.bare if bare else s.text) for s in sentences]
    encoded = tokenizer(
        texts,
        add_special_tokens=special_tokens,
        return_offsets_mapping=tokenizer.is_fast,
        return_special_tokens_mask=True,
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,
    )
    pairs = zip(sentences, texts, strict=True)
    matched = [_match_words(tokenizer, *pair, encoded, number) for number, pair in enumerate(pairs)]
    results = [encoding for encoding, _ in matched]
    joined = [i for i, (_, is_joined) in enumerate(matched) if is_joined and end_apart]
    if joined:  # encode again without the end mark, and add its tokens
        joined_sentences = [sentences[i] for i in joined]
        options: dict[str, Any] = {"leading_space": leading_space, "special_tokens": special_tokens}
        encodings = encode_batch(tokenizer, joined_sentences, **options, end_apart=False, bare=True)
        for i, encoding in zip(joined, encodings, strict=True):
            # The end mark follows the last word and precedes [SEP] or </s>
            words = encoding.word_of
            end = 1 + max(index for index, word in enumerate(words) if word != SPECIAL)
            end_tokens = _end_tokens(tokenizer, sentences[i].end)
            results[i] = encoding.splice(end, end, end_tokens, END_MARK)
    for sentence, encoding in zip(sentences, results, strict=True):
        check(sentence, encoding)
    return results


def words_are_independent(tokenizer: Any) -> bool:
    """Return True if no token can extend from one word of a sentence into the next.

    The words of a sentence are then tokenized independently. A token can extend across words if its
    text contains a space after another character. Tokens that contain tabs or line ends never occur
    in a sentence, so they are ignored.
    """
    return not any(
        re.search(r"\S ", text) is not None and re.search(r"[^\S ]", text) is None
        for text in token_texts(tokenizer).values()
    )


def token_texts(tokenizer: Any) -> dict[str, str]:
    """Return the text of each token of the vocabulary, including its spaces.

    If a token is only a part of a character, its text has a replacement character. Special tokens
    are omitted.
    """
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    added = {str(token): token for token in tokenizer.added_tokens_decoder.values()}
    letters = bytes_to_unicode() if _writes_bytes(tokenizer) else {}  # type: ignore[no-untyped-call]
    byte_of = {letter: byte for byte, letter in letters.items()}
    texts = {}
    for token in tokenizer.get_vocab().keys() - set(tokenizer.all_special_tokens):
        # An added token with rstrip includes the space to its right
        if token in added:
            texts[token] = token + " " * added[token].rstrip
        elif byte_of.keys() >= set(token):
            texts[token] = bytes(map(byte_of.__getitem__, token)).decode(errors="replace")
        else:
            texts[token] = token.replace("▁", " ")
    return texts


def _writes_bytes(tokenizer: Any) -> bool:
    """Return True if tokens consist of bytes, and each byte is written as a letter.

    This is the case in byte-level BPE.
    """
    if not tokenizer.is_fast:
        return getattr(tokenizer, "byte_decoder", None) is not None
    backend = tokenizer.backend_tokenizer
    steps = (backend.normalizer, backend.pre_tokenizer, backend.decoder)
    # Search the serialised steps, since `ByteLevel` may be inside a sequence of steps
    return any(b'"ByteLevel"' in step.__getstate__() for step in steps if step is not None)


def _match_words(
    tokenizer: Any, sentence: Sentence, text: str, encoded: Any, number: int
) -> tuple[Encoding, bool]:
    """Return the encoding of a text, and whether a token spans the last word and the end mark.

    `encoded` is the result of the tokenizer for several texts; `number` is the index of this text.
    """
    ids = encoded["input_ids"][number]
    special = np.array(encoded["special_tokens_mask"][number], np.bool_)
    refuse_special_ids(tokenizer, sentence, ids, special)
    if tokenizer.is_fast:
        spans = np.array(encoded["offset_mapping"][number], np.int64).reshape(-1, 2)
        # Index of the character after each word. A space belongs to the word after it. The text may
        # begin with a space
        lengths = [len(word) + (i > 0) for i, word in enumerate(sentence.words)]
        ends = len(text) - len(text.lstrip()) + np.cumsum(lengths)
    else:
        spans, ends = _spell(tokenizer, sentence, ids, special)
    n_words = len(sentence)
    # Position of the word that contains the first (or last) character of each token, (n_tokens,);
    # n_words for a character of the end mark
    first = np.searchsorted(ends, spans[:, 0], side="right")
    last = np.searchsorted(ends, np.maximum(spans[:, 1] - 1, spans[:, 0]), side="right")
    # A token may span the last word and the end mark, but not two words
    straddling = (first != last) & ~special
    if (straddling & ((last < n_words) | (first < n_words - 1))).any():
        raise ModelError(f"A token of {sentence.text!r} spans two words.")
    word_of = np.where(special, SPECIAL, np.where(first == n_words, END_MARK, first))
    return Encoding(tuple(ids), tuple(word_of.tolist())), bool(straddling.any())


def _end_tokens(tokenizer: Any, end: str) -> Tokens:
    """Return the tokens of an end mark.

    The end mark has one token, or one token for each of its characters. In byte-level vocabularies,
    a character may have several tokens.
    """
    if _writes_bytes(tokenizer) and not end.isascii():
        # A byte-level vocabulary writes each byte as a letter. So an end mark outside ASCII, which
        # has several bytes, cannot be looked up as a character
        return tuple(tokenizer(end, add_special_tokens=False)["input_ids"])
    vocabulary = tokenizer.get_vocab()
    for signs in ([end], end.replace(" ", "")):
        # If the vocabulary marks the ends of words with </w>, the end mark may also end in </w>
        names = [sign if sign in vocabulary else sign + "</w>" for sign in signs]
        if vocabulary.keys() >= {*names}:
            return tuple(int(vocabulary[name]) for name in names)
    raise ModelError(
        f"The tokenizer has no separate token for the end mark {end!r}. Use another end mark. You "
        "can also use log-likelihood or pll-original, the rules that read the unchanged text."
    )


# Marks of word boundaries, which are not characters of the text
_MARKS = re.compile("</w>|##|▁|Ġ")


def _spell(
    tokenizer: Any, sentence: Sentence, ids: list[int], special: np.ndarray
) -> tuple[IntArray, IntArray]:
    """Return the spans of tokens, (n_tokens, 2), and the ends of words, (n_words,).

    Spans and ends are counted in characters of the text without spaces.
    """
    pieces = _spelling(tokenizer, ids)
    pieces = ["" if is_special else p for p, is_special in zip(pieces, special, strict=True)]
    lengths = np.array([len(piece) for piece in pieces])
    word_ids = [tokenizer.convert_tokens_to_ids(tokenizer.tokenize(w)) for w in sentence.words]
    words = ["".join(_spelling(tokenizer, ids_of_word)) for ids_of_word in word_ids]
    if not "".join(pieces).startswith("".join(words)):
        raise ModelError(
            f"The tokens of {sentence.text!r} cannot be assigned to its words. This tokenizer "
            f"writes a word with other letters when it reads the word alone. Remove the sentence."
        )
    ends = np.cumsum(lengths)  # of tokens
    return np.stack([ends - lengths, ends], axis=1), np.cumsum([len(word) for word in words])


def _spelling(tokenizer: Any, ids: list[int]) -> list[str]:
    return [_MARKS.sub("", token) for token in tokenizer.convert_ids_to_tokens(ids)]


Place: TypeAlias = tuple[Sentence, int]
"""Kind of position of a word, represented by an example: the shortest sentence with such a
position, and the 0-based position in this sentence. For an inner position, the example is `a a a.`
and 1. For the first position, it is `a a.` and 0. For the last position before a question mark, it
is `a a?` and 1. Before the Greek question mark `;`, the words of the example are `αα` instead of
`a`."""


def kind_of_place(*, inner: bool, end: str = "") -> Place:
    """Return the kind of a position.

    `inner` is False for the first position. For the last position, `end` is the end mark; otherwise
    it is empty.
    """
    word = "αα" if end.startswith(";") else "a"  # `;` is an end mark only after Greek words
    return Sentence((word,) * (1 + inner + (not end)), end or "."), int(inner)


def place_of(sentence: Sentence, position: int) -> Place:
    """Return the kind of a 0-based position of a sentence."""
    last = position == len(sentence) - 1
    return kind_of_place(inner=position > 0, end=sentence.end if last else "")


@dataclass(frozen=True, eq=False)
class WordTokens:
    """Tokens of candidate words.

    Attributes:
        tokens: tokens of each word.
        tokens_after: tokens that follow each word in the short sentence in which this word was
            tokenized; see `Place`.
    """

    tokens: tuple[Tokens, ...]
    tokens_after: tuple[Tokens, ...]

    @classmethod
    def of(cls, pairs: Iterable[tuple[Tokens, Tokens]]) -> WordTokens:
        """Create the object from pairs: the tokens of a word, and the tokens after the word."""
        tokens, tokens_after = tuple(zip(*pairs, strict=True)) or ((), ())
        return cls(tokens, tokens_after)

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def lengths(self) -> IntArray:
        """Number of tokens of each word, (n_words,)."""
        return np.fromiter(map(len, self.tokens), np.int64, len(self.tokens))

    @cached_property
    def by_length(self) -> dict[int, tuple[IntArray, IntArray]]:
        """Number of tokens → candidates with so many tokens. The keys are in ascending order.

        Each value is a pair for the n candidates with `length` tokens: their indices in ascending
        order, (n,), and their tokens, (n, length).
        """
        groups = {}
        for length in np.unique(self.lengths).tolist():
            words = np.flatnonzero(self.lengths == length)
            table = np.array([self.tokens[word] for word in words.tolist()], np.int64)
            groups[length] = words, table.reshape(len(words), length)
        return groups

    @cached_property
    def firsts(self) -> IntArray:
        """First token of each word, (n_words,); 0 for a word without tokens."""
        return np.array([tokens[0] if tokens else 0 for tokens in self.tokens], np.int64)


def words_in_places(
    encode: Callable[[Sequence[Sentence]], Sequence[Encoding]],
) -> SizedCache[[tuple[str, ...], Place], WordTokens]:
    """Return a function that tokenizes words at a kind of position, and caches their tokens."""
    tokenized_in: dict[Place, dict[str, tuple[Tokens, Tokens]]] = {}

    def look_up(words: tuple[str, ...], kind: Place) -> WordTokens:
        # `SizedCache` stores lists of words. Cache single words as well, since a new list mostly
        # contains words of earlier lists
        (frame, position), tokenized = kind, tokenized_in.setdefault(kind, {})
        new = [word for word in dict.fromkeys(words) if word not in tokenized]
        encodings = encode([frame.replace(position, word) for word in new])
        for word, encoding in zip(new, encodings, strict=True):
            tokenized[word] = word_and_rest(encoding, position)
        if len(tokenized) > WORDS:  # drop all words
            del tokenized_in[kind]
        return WordTokens.of(tokenized[word] for word in words)

    return SizedCache(look_up, len, WORDS)


def word_and_rest(encoding: Encoding, position: int) -> tuple[Tokens, Tokens]:
    """Return the tokens of the word at a 0-based position, and all tokens after this word."""
    start, stop = encoding.span(position)
    return encoding.ids[start:stop], encoding.ids[stop:]
