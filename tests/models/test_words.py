"""Assignment of tokens to words, for every kind of tokenizer."""

import copy
import re
from typing import Any

import pytest
import transformers
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers.convert_slow_tokenizer import bytes_to_unicode

from contstim.errors import ModelError
from contstim.models.words import END_MARK, SPECIAL, Encoding, encode_batch, words_are_independent
from contstim.words.sentence import Sentence, is_word
from tests.examples import examples
from tests.models.tiny import Folder, Tokenizers

fast_tokenizer: Any = transformers.PreTrainedTokenizerFast
KINDS = ("bert", "roberta", "albert", "modernbert", "xlm", "gpt2", "spaced", "llama")
LETTERS: dict[int, str] = bytes_to_unicode()  # type: ignore[no-untyped-call]
TEXTS = (
    "The well-known girl didn't read.",
    "Don't say 'yes' to Mr. Smith!",
    "She paid $3.50 (or more) in the U.S.?",
    "naïve Füße 猫 dog.",
)


def encode(tokenizer: Any, sentence: Sentence, **options: Any) -> Encoding:
    return encode_batch(tokenizer, [sentence], **options)[0]


def token_ids(encoding: Encoding, word: int) -> list[int]:
    return [i for i, w in zip(encoding.ids, encoding.word_of, strict=True) if w == word]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", TEXTS)
def test_words_have_the_right_tokens(tokenizer_of: Tokenizers, kind: str, text: str) -> None:
    tokenizer, sentence = tokenizer_of(kind), Sentence.parse(text)
    encoding = encode(tokenizer, sentence)
    unsplit = encode(tokenizer, sentence, end_apart=False)
    assert list(unsplit.ids) == tokenizer(sentence.text)["input_ids"]
    inner = [word for word in encoding.word_of if word != SPECIAL]
    assert inner[-1] == END_MARK
    assert inner[:-1] == sorted(inner[:-1])
    assert set(inner[:-1]) == set(range(len(sentence)))
    for position in range(len(sentence)):
        ids = token_ids(encoding, position)
        if tokenizer.unk_token_id is None or tokenizer.unk_token_id not in ids:
            spelled = tokenizer.decode(ids).replace(" ", "").lower()
            word = sentence.words[position].lower()
            assert spelled in (word, word.replace("ï", "i").replace("ü", "u"))


def test_leading_space_makes_first_word_like_other_words(tokenizer_of: Tokenizers) -> None:
    tokenizer = tokenizer_of("gpt2")
    with_space = encode(tokenizer, Sentence.parse("the the"), leading_space=True)
    assert token_ids(with_space, 0) == token_ids(with_space, 1)
    plain = encode(tokenizer, Sentence.parse("the the"))
    assert plain.ids[0] != with_space.ids[0]


def test_end_mark_joined_to_a_word_is_separated() -> None:
    pieces = [("<unk>", 0.0), ("▁dog.", -1.0), ("▁dog", -2.0), ("▁the", -2.0), (".", -4.0)]
    tokenizer = Tokenizer(models.Unigram([*pieces, ("▁", -9.0)], unk_id=0))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    joining = fast_tokenizer(tokenizer_object=tokenizer, unk_token="<unk>")
    encoding = encode(joining, Sentence.parse("the dog."))
    assert joining.convert_ids_to_tokens(list(encoding.ids)) == ["▁the", "▁dog", "."]
    assert encoding.word_of == (0, 1, END_MARK)


@pytest.mark.parametrize(
    "text", ["राम गया।", '"dog."', "これは本です。」", "the dog!»", "Πού πας;"]
)
@pytest.mark.parametrize("kind", ["bert", "gpt2", "llama"])
@pytest.mark.parametrize("end_apart", [True, False])
def test_end_marks_belong_to_no_word(
    tokenizer_of: Tokenizers, kind: str, text: str, end_apart: bool
) -> None:
    """Witness: the tokenizer's own tokens; those of the end come last."""
    tokenizer, sentence = tokenizer_of(kind), Sentence.parse(text)
    encoding = encode(tokenizer, sentence, end_apart=end_apart)
    words = [word for word in encoding.word_of if word != SPECIAL]
    ends = words.count(END_MARK)
    assert ends > 0
    assert set(words[-ends:]) == {END_MARK}
    assert words[:-ends] == sorted(words[:-ends])
    assert list(encoding.ids) == tokenizer(text)["input_ids"]


def test_tokens_that_span_words_or_end_marks_are_refused() -> None:
    tokenizer = Tokenizer(models.Unigram([("<unk>", 0.0), ("▁dog!", -1.0), ("▁dog", -2.0)], 0))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    joining = fast_tokenizer(tokenizer_object=tokenizer, unk_token="<unk>")
    with pytest.raises(ModelError, match="no separate token for the end mark '!'"):
        encode(joining, Sentence.parse("dog!"))
    tokenizer = Tokenizer(models.WordLevel({"of the": 0, "<unk>": 1}, unk_token="<unk>"))
    joining = fast_tokenizer(tokenizer_object=tokenizer, unk_token="<unk>")
    with pytest.raises(ModelError, match="spans two words"):
        encode(joining, Sentence.parse("of the"))


@pytest.fixture(scope="module")
def slow_xlm(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """XLM's own tokenizer, which reports no offsets."""
    pytest.importorskip("sacremoses")
    backend = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["<s>", "</s>", "<pad>", "<unk>", "<special0>", "<special1>"]
    trainer = trainers.BpeTrainer(
        vocab_size=120, special_tokens=special, end_of_word_suffix="</w>", show_progress=False
    )
    backend.train_from_iterator([*TEXTS, "u.s. dogs see the cats."] * 3, trainer)
    folder = tmp_path_factory.mktemp("xlm")
    backend.model.save(str(folder))
    xlm: Any = transformers.XLMTokenizer
    return xlm(f"{folder}/vocab.json", f"{folder}/merges.txt")


@pytest.mark.parametrize("text", [*TEXTS, "dogs see cats", "He lives in the U.S", "Żółć 😀 dog"])
def test_tokenizers_without_offsets_are_matched_by_characters(slow_xlm: Any, text: str) -> None:
    assert not slow_xlm.is_fast
    assert words_are_independent(slow_xlm)  # judged by its vocabulary
    sentence = Sentence.parse(text)
    encoding = encode(slow_xlm, sentence)
    for position, word in enumerate(sentence.words):
        tokens = slow_xlm.convert_ids_to_tokens(token_ids(encoding, position))
        if "<unk>" not in tokens:
            spelled = "".join(tokens).replace("</w>", "")
            assert spelled == word.lower().replace("ï", "i").replace("ü", "u")
    ends = slow_xlm.convert_ids_to_tokens(token_ids(encoding, END_MARK))
    assert ends == [sentence.end + "</w>"]


@pytest.mark.parametrize(("kind", "word"), [("bert", "[MASK]"), ("gpt2", "<|endoftext|>")])
def test_special_tokens_are_not_words(tokenizer_of: Tokenizers, kind: str, word: str) -> None:
    with pytest.raises(ModelError, match="reads as a special token"):
        encode(tokenizer_of(kind), Sentence(("The", word, "ran")))


def word_tokens(tokenizer: Any, words: tuple[str, ...], position: int, space: bool) -> list[int]:
    options = {"leading_space": space, "special_tokens": False, "end_apart": True}
    return token_ids(encode(tokenizer, Sentence(words), **options), position)


@pytest.mark.parametrize("kind", KINDS)
@given(
    words=st.lists(
        st.text(
            st.sampled_from("abthe.,'!-3ïŻ猫😀ㅤ´½Ġ") | st.characters(exclude_categories=["Cs"]),
            min_size=1,
            max_size=5,
        ).filter(is_word),
        min_size=2,
        max_size=5,
    ).map(tuple),
    space=st.booleans(),
)
@settings(max_examples=examples(15))
def test_independent_words_have_the_same_tokens_in_all_contexts(
    tokenizer_of: Tokenizers, kind: str, words: tuple[str, ...], space: bool
) -> None:
    """Witness: the tokenizer itself, on the whole sentence and on each word next to `a`."""
    tokenizer = tokenizer_of(kind)
    assert words_are_independent(tokenizer)
    special = "|".join(map(re.escape, tokenizer.all_special_tokens))
    assume(not re.search(special, Sentence(words).text))
    for position, word in enumerate(words):
        prefix, suffix = ("a",) * (position > 0), ("a",) * (position < len(words) - 1)
        expected = word_tokens(tokenizer, (*prefix, word, *suffix), len(prefix), space)
        assert word_tokens(tokenizer, words, position, space) == expected


@pytest.mark.parametrize(
    ("token", "joins"),
    [
        *((token, True) for token in ("of the", "of ")),
        *((token, False) for token in ("  ", " of", "\u00a0 \u00a0", "x\u3000 y", "x\n y")),
    ],
)
@pytest.mark.parametrize("kind", ["gpt2", "bert", "llama"])
def test_tokens_that_join_words_make_words_dependent(
    tokenizer_of: Tokenizers, kind: str, token: str, joins: bool
) -> None:
    tokenizer = copy.deepcopy(tokenizer_of(kind))
    tokenizer.add_tokens(token)
    assert words_are_independent(tokenizer) == (not joins)


def make_byte_level(*texts: bytes) -> Any:
    """Return a byte-level tokenizer whose vocabulary consists of these bytes."""
    letters = {bytes([byte]): letter for byte, letter in LETTERS.items()}
    tokens = ["".join(letters[text[i : i + 1]] for i in range(len(text))) for text in texts]
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return fast_tokenizer(tokenizer_object=tokenizer)


@pytest.mark.parametrize(
    ("text", "joins"),
    [
        ("é la".encode(), True),
        ("　 　".encode(), False),
        (b" \xe3\x80", False),  # begins an ideographic space, and kana as well
        (b"\xa0 \xa0", True),  # also ends `à`
    ],
)
def test_byte_tokens_are_read_as_text(text: bytes, joins: bool) -> None:
    assert words_are_independent(make_byte_level(b"a", text)) == (not joins)


ADDED = "<tool_call>", "covid", " <think>"


@pytest.mark.parametrize("kind", ["bert", "electra", "gpt2", "llama", "roberta"])
@pytest.mark.parametrize("word", ["<tool_call>", "<TOOL_CALL>", "a<think>b", "<think>", "<Think>"])
def test_added_control_tokens_are_refused_in_every_letter_case(
    tiny_checkpoint: Folder, kind: str, word: str
) -> None:
    """Lower-case tokens that are not marked as special; witness: the tokenizer's own ids."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_checkpoint(kind))
    tokenizer.add_tokens([transformers.AddedToken(token, normalized=True) for token in ADDED])
    sentence = Sentence(("The", word, "ran"))
    control_ids = {
        id_ for id_, token in tokenizer.added_tokens_decoder.items() if token.content != "covid"
    } - {tokenizer.unk_token_id}
    read_ids = control_ids & set(tokenizer(sentence.text, add_special_tokens=False)["input_ids"])
    assert read_ids or word not in ("<tool_call>",)
    if read_ids or word.strip("ab") in map(str.strip, ADDED):
        with pytest.raises(ModelError, match="reads as a special token"):
            encode(tokenizer, sentence, special_tokens=False)
    else:
        assert not control_ids & set(encode(tokenizer, sentence, special_tokens=False).ids)
