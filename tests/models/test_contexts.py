"""Default and chosen contexts of causal models, with tokenizers like those of published models."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import transformers
from tokenizers import Tokenizer, decoders, pre_tokenizers, processors
from tokenizers import models as tokenizer_models

from contstim.errors import ModelError
from contstim.models.contexts import candidate_contexts, context_of, is_chat_mark

hf: Any = transformers
_WORDS = ["Non", "The", "dog", "barks", "a"]
_CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}"
    "{% endfor %}"
)
_LLAMA_2 = (
    "{% for m in messages %}{% if m['role'] == 'user' %}"
    "{{ bos_token + '[INST] ' + m['content'] + ' [/INST]' }}"
    "{% else %}{{ ' ' + m['content'] + ' ' + eos_token }}{% endif %}{% endfor %}"
)
_LLAMA_3 = (
    "{{ bos_token }}{% for m in messages %}{{ '<|start_header_id|>' + m['role'] + "
    "'<|end_header_id|>\n\n' + m['content'] + '<|eot_id|>' }}{% endfor %}"
)
_GEMMA = (
    "{{ bos_token }}{% for m in messages %}{{ '<start_of_turn>' + m['role'] + '\n' + m['content'] "
    "+ '<end_of_turn>\n' }}{% endfor %}"
)
_PHI = (
    "{% for m in messages %}{{ '<|' + m['role'] + '|>\n' + m['content'] + '<|end|>\n' }}"
    "{% endfor %}{{ eos_token }}"
)
_GLM = (
    "[gMASK]<sop>{% for m in messages %}{{ '<|' + m['role'] + '|>\n' + m['content'] }}{% endfor %}"
)
_UNKNOWN_MARKS = "{{ bos_token }}{% for m in messages %}<Q>{{ m['content'] }}<A>{% endfor %}"
_BROKEN = "{{ raise_exception('no system prompt') }}<|begin|>{{ '<Q>' }}"


def _make_tokenizer(
    folder: Path,
    special: list[str],
    *,
    bos: str | None = None,
    eos: str | None = None,
    adds: list[str] | None = None,
    template: str | None = None,
) -> Any:
    """A tokenizer of a few words, saved and loaded from its folder."""
    vocabulary = {token: i for i, token in enumerate(["<unk>", *_WORDS, *special])}
    backend = Tokenizer(tokenizer_models.WordLevel(vocabulary, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    backend.decoder = decoders.WordPiece()
    backend.add_special_tokens(special)
    if adds:
        ids = [(token, vocabulary[token]) for token in adds]
        frame = processors.TemplateProcessing(single=[*adds, "$A"], special_tokens=ids)
        backend.post_processor = frame
    ends = {f"{end}_token": t for end, t in (("bos", bos), ("eos", eos)) if t is not None}
    tokenizer = hf.PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>", **ends)
    tokenizer.chat_template = template
    tokenizer.save_pretrained(folder)
    return hf.AutoTokenizer.from_pretrained(folder)


def _config(bos: int | None = None, eos: int | list[int] | None = None) -> Any:
    return SimpleNamespace(bos_token_id=bos, eos_token_id=eos, vocab_size=1000)


_END, _STOP = "<|endoftext|>", "<｜end▁of▁sentence｜>"
_CHAT = [_END, "<|im_start|>", "<|im_end|>"]

# Special tokens of a tokenizer, its options, its template, and the default context
DEFAULTS: dict[str, tuple[str, dict[str, Any], str | None, str]] = {
    "qwen": (" ".join(_CHAT), {"eos": "<|im_end|>"}, _CHATML, "<|endoftext|>"),
    "gpt2": (_END, {"bos": _END, "eos": _END}, None, _END),
    "llama-2": ("<s> </s>", {"bos": "<s>", "eos": "</s>", "adds": ["<s>"]}, _LLAMA_2, "<s>"),
    "llama-3": (
        "<|begin_of_text|> <|end_of_text|> <|start_header_id|> <|end_header_id|> <|eot_id|>",
        {"bos": "<|begin_of_text|>", "eos": "<|eot_id|>"},
        _LLAMA_3,
        "<|begin_of_text|>",
    ),
    "gemma": (
        "<bos> <eos> <start_of_turn> <end_of_turn>",
        {"bos": "<bos>", "eos": "<end_of_turn>"},
        _GEMMA,
        "<bos>",
    ),
    "phi-3": (
        "<s> <|endoftext|> <|user|> <|assistant|> <|end|>",
        {"bos": "<s>", "eos": "<|endoftext|>"},
        _PHI,
        "<s>",
    ),
    "glm": (
        "[gMASK] <sop> <|user|> <|assistant|> <|endoftext|>",
        {"eos": "<|user|>", "adds": ["[gMASK]", "<sop>"]},
        _GLM,
        "[gMASK] <sop>",
    ),
    "deepseek without bos": (f"{_STOP} <｜User｜>", {"bos": "<｜User｜>"}, None, _STOP),
    "adds a chat mark": (f"<|im_start|> {_END}", {"adds": ["<|im_start|>"]}, None, _END),
    "template begins with bos": ("<X> <Q> <A>", {"bos": "<X>"}, _UNKNOWN_MARKS, "<X>"),
    "marks of the template alone": (
        "<Q> <A> <eos>",
        {"bos": "<Q>", "eos": "<A>"},
        _UNKNOWN_MARKS,
        "<eos>",
    ),
    "template that fails": ("<Q> <eos>", {"bos": "<Q>"}, _BROKEN, "<eos>"),
    "bos is a word": ("<|endoftext|>", {"bos": "Non"}, None, "<|endoftext|>"),
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_default_context(tmp_path: Path, name: str) -> None:
    special, options, template, expected = DEFAULTS[name]
    tokenizer = _make_tokenizer(tmp_path, special.split(), template=template, **options)
    tokens = context_of(tokenizer, _config(), None, "here")
    assert " ".join(tokenizer.convert_ids_to_tokens(tokens)) == expected


@pytest.mark.parametrize(
    ("special", "options", "config", "expected"),
    [
        (["<bos>"], {}, _config(bos=6), "<bos>"),
        (["<|endoftext|>"], {}, _config(eos=[6, 1]), "<|endoftext|>"),
        (["<|endoftext|>"], {}, _config(bos=1), "<|endoftext|>"),
        (["<|endoftext|>"], {}, _config(bos=50256), "<|endoftext|>"),
        # The network has no row for the token, as after `add_special_tokens` without resizing
        (["<eos>", "<bos>"], {"bos": "<bos>"}, SimpleNamespace(vocab_size=7), "<eos>"),
    ],
)
def test_configuration_can_name_the_context_token(
    tmp_path: Path, special: list[str], options: dict[str, Any], config: Any, expected: str
) -> None:
    tokenizer = _make_tokenizer(tmp_path, special, **options)
    tokens = context_of(tokenizer, config, None, "here")
    assert tokenizer.convert_ids_to_tokens(tokens) == [expected]


@pytest.mark.parametrize(
    ("special", "options", "config", "facts"),
    [
        ([], {}, _config(), ["names no beginning", "6 tokens"]),
        ([], {}, _config(bos=1), ["1 ('Non', of 6 tokens)", "not a special token"]),
        ([], {"bos": "Non"}, _config(), ["1 ('Non', of 6 tokens)", "not a special token"]),
        ([], {}, _config(bos=50256), ["50256 is not in the vocabulary of 6 tokens"]),
        ([], {}, _config(bos=-1), ["-1 is not in the vocabulary of 6 tokens"]),
        (["<|im_end|>"], {"eos": "<|im_end|>"}, _config(), ["6 ('<|im_end|>', of 7 tokens)"]),
    ],
)
def test_model_without_a_usable_context_token_is_refused(
    tmp_path: Path, special: list[str], options: dict[str, Any], config: Any, facts: list[str]
) -> None:
    tokenizer = _make_tokenizer(tmp_path, special, **options)
    with pytest.raises(ModelError) as raised:
        context_of(tokenizer, config, None, "here")
    for fact in (*facts, "--context"):
        assert fact in str(raised.value)


@pytest.mark.parametrize(
    ("adds", "text", "expected"),
    [
        ([], "<|endoftext|>", ["<|endoftext|>"]),
        ([], "The dog ", ["The", "dog"]),
        ([], "<|endoftext|>The", ["<|endoftext|>", "The"]),
        (["<s>"], "<s>", ["<s>"]),
        (["<s>"], "<s>The", ["<s>", "The"]),
        (["<s>"], "The", ["<s>", "The"]),
        (["<s>"], "<|endoftext|>", ["<s>", "<|endoftext|>"]),
        (["<s>", "<sop>"], "<s><sop>The", ["<s>", "<sop>", "The"]),
        (["<s>", "<sop>"], "<sop>The", ["<s>", "<sop>", "The"]),
        (["<|im_start|>"], "The", ["The"]),
        (["<|im_start|>"], "<|im_start|>", ["<|im_start|>"]),
    ],
)
def test_special_tokens_in_a_context_are_read_once(
    tmp_path: Path, adds: list[str], text: str, expected: list[str]
) -> None:
    special = ["<s>", "<sop>", "<|endoftext|>", "<|im_start|>"]
    tokenizer = _make_tokenizer(tmp_path, special, bos="<s>", adds=adds)
    tokens = context_of(tokenizer, _config(), text, "here")
    assert tokenizer.convert_ids_to_tokens(tokens) == expected


@pytest.mark.parametrize(
    "text",
    ["", " ", "<bos>", "The <|endoftext|>", "[CLS]", "<|im_start|>user", "<｜User｜>", "The zebra"],
)
def test_blank_or_unknown_contexts_are_refused(tmp_path: Path, text: str) -> None:
    tokenizer = _make_tokenizer(tmp_path, ["<s>"], bos="<s>")
    with pytest.raises(ModelError, match="context must"):
        context_of(tokenizer, _config(), text, "here")


def test_tokens_without_weights_are_refused_as_contexts(tmp_path: Path) -> None:
    # As after `add_special_tokens` without `resize_token_embeddings`
    tokenizer = _make_tokenizer(tmp_path, ["<eos>", "<bos>"], bos="<bos>", eos="<eos>")
    config = SimpleNamespace(vocab_size=7)
    assert candidate_contexts(tokenizer, config) == ("<eos>", ". ")
    with pytest.raises(ModelError, match=r"'<bos>'.* id is 7, .* has 7 tokens"):
        context_of(tokenizer, config, "The <bos>", "here")


def test_candidate_contexts_are_tokens_that_begin_or_end_texts(tmp_path: Path) -> None:
    tokenizer = _make_tokenizer(tmp_path, [*_CHAT, "<file>"], bos="<|im_start|>", eos="<|im_end|>")
    expected = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", ". ")
    assert candidate_contexts(tokenizer, _config()) == expected


CHAT_MARKS = """
<|im_start|> <|im_end|> <|im_sep|> <|im_user|> <|start_header_id|> <|eot_id|> <|eom_id|> <|eot|>
<|header_start|> <start_of_turn> <end_of_turn> <|turn> <|user|> <|assistant|> <|system|> <|end|>
<|start|> <|message|> <|channel|> <|return|> <|observation|> <|START_OF_TURN_TOKEN|>
<|CHATBOT_TOKEN|> <|USER_TOKEN|> [INST] [/INST] [SYSTEM_PROMPT] <|start_of_role|> <|end_of_turn|>
[|endofturn|] [|assistant|] <|prompter|> <end_of_utterance> <｜Assistant｜>
""".split()
OTHER_TOKENS = """
<s> </s> <bos> <eos> [BOS] [EOS] <|endoftext|> <|end_of_text|> <|begin_of_text|> <BOS_TOKEN>
<EOS_TOKEN> <｜begin▁of▁sentence｜> <｜end▁of▁sentence｜> <|startoftext|> <eod> [gMASK] <sop> [CLS]
<|rwkv_tokenizer_end_of_text|> <start> <|endofdocument|> <extra_id_0>
""".split()


@pytest.mark.parametrize("token", [*CHAT_MARKS, *OTHER_TOKENS])
def test_chat_marks_are_recognized_by_name(tmp_path: Path, token: str) -> None:
    tokenizer = _make_tokenizer(tmp_path, [token])
    is_mark = is_chat_mark(tokenizer.convert_tokens_to_ids(token), tokenizer)
    assert is_mark is (token in CHAT_MARKS)
