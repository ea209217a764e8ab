"""The words of a sentence to which the tokens of a sub-word tokenizer belong.

Words are separated by white space, and the end mark stands apart. Tokenizers cut differently:
BERT's and GPT-2's split `well-known` and `Don't`, SentencePiece may join the full stop to the word
before it. So tokens are matched to words by the characters that they cover. In `The dogs bark.`:

    token        The     Ġdog    s       Ġbark   .
    characters   0-3     3-7     7-8     8-13    13-14
    word of      0       1       1       2       END_MARK

The words end at characters 3, 8 and 13; a space belongs to the word after it.

Names of tokens that steer a network (`[MASK]`, `</s>`, `<|endoftext|>`) would be read as the tokens
themselves, so that the network begins anew or fills a gap. Sentences are checked twice: their text
for the names, and their tokens, since a tokenizer may accept a name in another case too.

A word alone and a word in a sentence may be cut differently: at the start there is no space before
it, at the end the end mark may join its last token. So candidate words are cut in a short sentence,
in the kind of place where they would stand, and their tokens are cached for each kind.
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


# By tokenizer, what `_find` finds, and the number of tokens, which changes when tokens are added.
# Weak: an entry goes with its tokenizer; the pattern takes a moment to make
_Special: TypeAlias = tuple[re.Pattern[str], frozenset[int]]
_cache: WeakKeyDictionary[Any, tuple[int, _Special]] = WeakKeyDictionary()


def refuse_special_tokens(tokenizer: Any, sentences: Sequence[Sentence]) -> None:
    """Refuse sentences that name a special token of the tokenizer.

    Raises:
        ModelError: a sentence does; names the token.
    """
    names, _ = _special(tokenizer)
    for sentence in sentences:
        match = names.search(sentence.text)
        if match is not None:
            raise _refusal(sentence, match[0])


def refuse_special_ids(
    tokenizer: Any, sentence: Sentence, ids: Sequence[int], added: Sequence[int] | BoolArray
) -> None:
    """Refuse a sentence whose text became a special token.

    Args:
        tokenizer: a `transformers` tokenizer.
        sentence: the sentence.
        ids: its tokens, (n_tokens,).
        added: which of them the tokenizer adds to every text, (n_tokens,).

    Raises:
        ModelError: a token is special; names it.
    """
    _, special = _special(tokenizer)
    if special.isdisjoint(ids):  # nearly always
        return
    for id_, is_added in zip(ids, added, strict=True):
        if id_ in special and not is_added:
            raise _refusal(sentence, str(tokenizer.convert_ids_to_tokens(int(id_))))


def readable(tokenizer: Any, words: Sequence[str]) -> BoolArray:
    """Mask of the words read as tokens, none of them unknown or special, (n_words,)."""
    names, ids = _special(tokenizer)
    # Texts may lead to the unknown token, which is not special; but it tells no word apart
    never = {*ids, tokenizer.unk_token_id}
    rows = tokenizer(list(words), add_special_tokens=False)["input_ids"] if words else []
    is_readable = [
        len(row) > 0 and never.isdisjoint(row) and names.search(word) is None
        for word, row in zip(words, rows, strict=True)
    ]
    return np.array(is_readable, np.bool_)


def _refusal(sentence: Sentence, token: str) -> ModelError:
    return ModelError(
        f"{sentence.text[:60]!r} holds {token!r}, which this tokenizer reads as a special token, "
        f"not as a word. Leave the sentence out."
    )


def _special(tokenizer: Any) -> _Special:
    size, special = _cache.get(tokenizer, (-1, None))
    if special is None or size != len(tokenizer):
        special = _find(tokenizer)
        _cache[tokenizer] = len(tokenizer), special
    return special


def _find(tokenizer: Any) -> _Special:
    """The names of tokens that may not occur in a sentence, as a pattern, and their ids.

    Every token that is called special, and added ones that look like it (`<tool_call>`); other
    added tokens are words of a user. The unknown token, to which any text may lead, has no id here.
    """
    added = tokenizer.added_tokens_decoder.items()
    signs = {i: t.content for i, t in added if t.special or special_sign(t.content)}
    names = {*map(str, tokenizer.all_special_tokens), *signs.values()}
    if any(token[:1] == SPACE_SIGN and token[1:].isalpha() for token in tokenizer.get_vocab()):
        names.add(SPACE_SIGN)  # would be read as a space
    # the longest first, so that a message names the whole token
    stripped = sorted({name.strip() for name in names} - {""}, key=len, reverse=True)
    pattern = "|".join(map(re.escape, stripped)) or r"(?!)"  # which matches nothing
    ids = {*tokenizer.all_special_ids, *signs} - {tokenizer.unk_token_id}
    return re.compile(pattern), frozenset(ids)


def tokens_of_texts(tokenizer: Any, sentences: Sequence[Sentence]) -> list[list[int]]:
    """The tokens of sentences as their texts stand, with those that the tokenizer adds.

    Raises:
        ModelError: a sentence names a special token, which a network would obey.
    """
    refuse_special_tokens(tokenizer, sentences)
    texts = [sentence.text for sentence in sentences]
    rows: list[list[int]] = tokenizer(texts, verbose=False)["input_ids"]
    return rows


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

    def span(self, position: int) -> tuple[int, int]:
        """Where the tokens of the word at a 0-based position start and stop.

        A tokenizer may drop a word: then they start and stop where the next word begins.
        """
        later = (i for i, word in enumerate(self.word_of) if word >= position or word == END_MARK)
        start = next(later, len(self))
        return start, start + self.word_of.count(position)

    def with_word(self, position: int, tokens: Tokens) -> Encoding:
        """The sentence with other tokens for the word at a 0-based position."""
        start, stop = self.span(position)
        places = (position,) * len(tokens)
        return Encoding(
            (*self.ids[:start], *tokens, *self.ids[stop:]),
            (*self.word_of[:start], *places, *self.word_of[stop:]),
        )


def too_long(sentence: Sentence, needed: int, name: str, window: int) -> ModelError:
    """The refusal of a sentence that does not fit a model's window."""
    return ModelError(
        f"{sentence.text[:60]!r} needs {needed:,} tokens; {name} reads at most {window:,}. Leave "
        f"the sentence out or use another model."
    )


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
    bare: bool = False,
    check: Callable[[Sentence, Encoding], None] = lambda _sentence, _encoding: None,
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
        bare: whether to leave out end marks.
        check: refuses a sentence for its tokens, by an error.

    Raises:
        ModelError: a token spans two words, tokens cannot be matched to words, or a sentence
            holds a special token of the tokenizer, such as `[MASK]`, as a word; or see `check`.
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
    matched = [_matched(tokenizer, *pair, encoded, number) for number, pair in enumerate(pairs)]
    results = [encoding for encoding, _ in matched]
    glued = [i for i, (_, is_glued) in enumerate(matched) if is_glued and end_apart]
    if glued:  # again without the end mark, which then follows
        some = [sentences[i] for i in glued]
        options: dict[str, Any] = {"leading_space": leading_space, "special_tokens": special_tokens}
        again = encode_batch(tokenizer, some, **options, end_apart=False, bare=True)
        for i, encoding in zip(glued, again, strict=True):
            results[i] = _with_end(encoding, _end_tokens(tokenizer, sentences[i].end))
    for sentence, encoding in zip(sentences, results, strict=True):
        check(sentence, encoding)
    return results


def words_are_independent(tokenizer: Any) -> bool:
    """True if no token can reach from one word of a sentence into the next.

    Then no merge and no piece does, and the words of a sentence are cut independently of each
    other. A token reaches across where its text holds a space after another character. Text with
    any other white space, such as the no-break spaces that GPT-2's tokenizer joins to longer ones,
    stands in no sentence, whose words hold none.
    """
    return not any(
        re.search(r"\S ", text) is not None and re.search(r"[^\S ]", text) is None
        for text in token_texts(tokenizer).values()
    )


def token_texts(tokenizer: Any) -> dict[str, str]:
    """The text of each token of the vocabulary, with the spaces that it covers.

    Bytes that are not a whole character are written as one that is not white space. Special tokens,
    which no sentence may hold, are left out.
    """
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    added = {str(token): token for token in tokenizer.added_tokens_decoder.values()}
    letters = bytes_to_unicode() if _writes_bytes(tokenizer) else {}  # type: ignore[no-untyped-call]
    byte_of = {letter: byte for byte, letter in letters.items()}
    texts = {}
    for token in tokenizer.get_vocab().keys() - set(tokenizer.all_special_tokens):
        # rstrip: an added token that takes in the spaces to its right reaches into the next word
        if token in added:
            texts[token] = token + " " * added[token].rstrip
        elif byte_of.keys() >= set(token):
            texts[token] = bytes(map(byte_of.__getitem__, token)).decode(errors="replace")
        else:
            texts[token] = token.replace("▁", " ")
    return texts


def _writes_bytes(tokenizer: Any) -> bool:
    """True if tokens are bytes, each written as a letter (byte-level BPE)."""
    if not tokenizer.is_fast:
        return getattr(tokenizer, "byte_decoder", None) is not None
    backend = tokenizer.backend_tokenizer
    steps = (backend.normalizer, backend.pre_tokenizer, backend.decoder)
    # A step may hide in a sequence of steps: as they are stored, all of them are named
    return any(b'"ByteLevel"' in step.__getstate__() for step in steps if step is not None)


def _matched(
    tokenizer: Any, sentence: Sentence, text: str, encoded: Any, number: int
) -> tuple[Encoding, bool]:
    """A text's tokens with their words, and whether the end mark is part of the last word's token.

    Args:
        tokenizer: a `transformers` tokenizer.
        sentence: whose words they are.
        text: as it was encoded.
        encoded: what the tokenizer says of several texts.
        number: of the text among these.
    """
    ids = encoded["input_ids"][number]
    special = np.array(encoded["special_tokens_mask"][number], np.bool_)
    refuse_special_ids(tokenizer, sentence, ids, special)
    if tokenizer.is_fast:
        spans = np.array(encoded["offset_mapping"][number], np.int64).reshape(-1, 2)
        # the ends of the words: their lengths, a space before each but the first, and a space
        # before the text
        lengths = [len(word) + (i > 0) for i, word in enumerate(sentence.words)]
        ends = len(text) - len(text.lstrip()) + np.cumsum(lengths)
    else:
        spans, ends = _spell(tokenizer, sentence, ids, special)
    n_words = len(sentence)
    # the words of each token's first and last character, (n_tokens,); n_words is the end mark
    first = np.searchsorted(ends, spans[:, 0], side="right")
    last = np.searchsorted(ends, np.maximum(spans[:, 1] - 1, spans[:, 0]), side="right")
    # a token may reach from the last word into the end mark, and no other across words
    straddling = (first != last) & ~special
    if (straddling & ((last < n_words) | (first < n_words - 1))).any():
        raise ModelError(f"A token of {sentence.text!r} spans two words.")
    word_of = np.where(special, SPECIAL, np.where(first == n_words, END_MARK, first))
    return Encoding(tuple(ids), tuple(word_of.tolist())), bool(straddling.any())


def _with_end(encoding: Encoding, end: Tokens) -> Encoding:
    """The tokens with those of the end after the last word, before closing special tokens."""
    ids, word_of = encoding.ids, encoding.word_of
    after = 1 + max(i for i, word in enumerate(word_of) if word != SPECIAL)
    # Behind the last token of text: [SEP] or </s> stay the last
    return Encoding(
        (*ids[:after], *end, *ids[after:]),
        (*word_of[:after], *[END_MARK] * len(end), *word_of[after:]),
    )


def _end_tokens(tokenizer: Any, end: str) -> Tokens:
    """The tokens of a sentence's end: one, or those of each of its signs."""
    if _writes_bytes(tokenizer) and not end.isascii():
        # Letters outside ASCII are names of bytes in such a vocabulary
        return tuple(tokenizer(end, add_special_tokens=False)["input_ids"])
    vocabulary = tokenizer.get_vocab()
    for signs in ([end], end.replace(" ", "")):
        # Byte-pair vocabularies that mark the ends of words have the mark as a word
        names = [sign if sign in vocabulary else sign + "</w>" for sign in signs]
        if vocabulary.keys() >= {*names}:
            return tuple(int(vocabulary[name]) for name in names)
    raise ModelError(
        f"The tokenizer has no token of its own for the end mark {end!r}. Use another mark, or a "
        f"rule that reads the text as it stands, such as pll-original."
    )


# Signs of beginnings and continuations, which are not letters of the text
_MARKERS = ("</w>", "##", "▁", "Ġ")


def _spell(
    tokenizer: Any, sentence: Sentence, ids: list[int], special: np.ndarray
) -> tuple[IntArray, IntArray]:
    """Spans of tokens and ends of words in the text that the tokens spell, without spaces."""
    pieces = _spelling(tokenizer, ids)
    # Special tokens spell nothing: they take no characters
    pieces = ["" if is_special else p for p, is_special in zip(pieces, special, strict=True)]
    lengths = np.array([len(piece) for piece in pieces])
    alone = [tokenizer.convert_tokens_to_ids(tokenizer.tokenize(word)) for word in sentence.words]
    words = ["".join(_spelling(tokenizer, of_word)) for of_word in alone]
    spelled = "".join(pieces)
    if not spelled.startswith("".join(words)):
        raise ModelError(
            f"The tokens of {sentence.text!r} cannot be matched to its words, which this tokenizer "
            f"spells differently in a sentence and alone."
        )
    ends = np.cumsum(lengths)  # of tokens, in characters of the spelling
    return np.stack([ends - lengths, ends], axis=1), np.cumsum([len(word) for word in words])


def _spelling(tokenizer: Any, ids: list[int]) -> list[str]:
    tokens: list[str] = tokenizer.convert_ids_to_tokens(ids)
    for marker in _MARKERS:
        tokens = [token.replace(marker, "") for token in tokens]
    return tokens


Place: TypeAlias = tuple[Sentence, int]
"""A kind of place, for tokenizers that cut words independently of each other: the shortest sentence
with such a place, where `a` stands for any word, and its 0-based position there."""


def kind_of_place(*, inner: bool, end: str = "") -> Place:
    """A kind of place.

    Args:
        inner: whether another word stands before it.
        end: the end of the sentence if it is the last word, otherwise empty.
    """
    word = "αα" if end.startswith(";") else "a"  # only Greek ends a question so
    return Sentence((word,) * (1 + inner + (not end)), end or "."), int(inner)


def place_of(sentence: Sentence, position: int) -> Place:
    """The kind of a 0-based position of a sentence."""
    last = position == len(sentence) - 1
    return kind_of_place(inner=position > 0, end=sentence.end if last else "")


@dataclass(frozen=True, eq=False)
class WordTokens:
    """The tokens of candidate words.

    Attributes:
        tokens: of each word.
        rest: for each word, the tokens that follow it in the sentence in which it was cut.
    """

    tokens: tuple[Tokens, ...]
    rest: tuple[Tokens, ...]

    @classmethod
    def of(cls, pairs: Iterable[tuple[Tokens, Tokens]]) -> WordTokens:
        """From the tokens of each word and those after it."""
        tokens, rest = tuple(zip(*pairs, strict=True)) or ((), ())
        return cls(tokens, rest)

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def lengths(self) -> IntArray:
        """Number of tokens of each word, (n_words,)."""
        return np.fromiter(map(len, self.tokens), np.int64, len(self.tokens))

    @cached_property
    def by_length(self) -> dict[int, tuple[IntArray, IntArray]]:
        """For each number of tokens, the fewest first: the words, ascending, and their tokens.

        The indices of these candidates are (n,), their tokens (n, length).
        """
        # Words of equal length fill a table without gaps, so that arrays can be indexed by it
        groups = {}
        for length in np.unique(self.lengths).tolist():
            words = np.flatnonzero(self.lengths == length)
            table = np.array([self.tokens[word] for word in words.tolist()], np.int64)
            groups[length] = words, table.reshape(len(words), length)
        return groups

    @cached_property
    def firsts(self) -> IntArray:
        """The first token of each word, (n_words,); 0 for a word without tokens."""
        return np.array([tokens[0] if tokens else 0 for tokens in self.tokens], np.int64)


def words_in_places(
    encode: Callable[[Sequence[Sentence]], Sequence[Encoding]],
) -> SizedCache[[tuple[str, ...], Place], WordTokens]:
    """A function that cuts words in a kind of place, each word once.

    Args:
        encode: cuts whole sentences into tokens.
    """
    cut_in: dict[Place, dict[str, tuple[Tokens, Tokens]]] = {}

    def look_up(words: tuple[str, ...], place: Place) -> WordTokens:
        # Words are kept singly: most words of the next call were in the last one too
        (frame, position), cut = place, cut_in.setdefault(place, {})
        new = [word for word in dict.fromkeys(words) if word not in cut]
        encodings = encode([frame.replace(position, word) for word in new])
        cut.update((w, word_and_rest(e, position)) for w, e in zip(new, encodings, strict=True))
        if len(cut) > WORDS:  # rather than to choose which to drop
            del cut_in[place]
        return WordTokens.of(cut[word] for word in words)

    return SizedCache(look_up, len, WORDS)


def word_and_rest(encoding: Encoding, position: int) -> tuple[Tokens, Tokens]:
    """The tokens of the word at a 0-based position, and all tokens after it."""
    start, stop = encoding.span(position)
    return encoding.ids[start:stop], encoding.ids[stop:]
