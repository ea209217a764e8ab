"""Contexts: tokens that a causal model reads before the first word of a sentence.

The default context is the first usable candidate of this list:

    1. tokens that the tokenizer puts before each text     `[gMASK]<sop>` (GLM), `<s>` (Llama)
    2. the beginning-of-sequence token                      `<|endoftext|>` (GPT-2)
    3. the end-of-sequence token, which separates documents `<|endoftext|>` (Qwen's base models)
    4. any other token that separates documents             `<|endoftext|>` (models tuned to chat)

A token is usable if it is a special token of the vocabulary and not a chat mark. A chat mark, such
as ChatML's `<|im_start|>`, opens or closes a turn of a conversation. After a chat mark, a model
expects the name of a speaker. So it gives the first words of a sentence far too little probability.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from contstim.errors import ModelError
from contstim.words.sentence import special_sign

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contstim.models.words import Tokens

# Patterns for names of tokens. A name has no signs: `<|end_of_text|>` has the name "end of text"
_SEPARATOR = re.compile(
    r"(.* )?end ?of ?(text|document|sentence|sequence)|(eos|eod|end of doc)( token| id)?"
)
_BEGINNING = re.compile(
    r"(.* )?(begin|start) ?of ?(text|document|sentence|sequence)|bos( token| id)?"
)
# Chat marks of ChatML, Llama 3 and 4, Gemma, Phi, GLM, Command-R, Mistral, Granite, EXAONE, gpt-oss
# and other models
_CHAT = re.compile(
    r"im .*|(eot|eom|inst)( id)?|(end|start)$|(start|end)?of ?turn"
    r"|(.* )?(turn|endofturn|role|header|user|assistant|system|human|chatbot|prompter|observation"
    r"|utterance|message|channel|return|call|ipython|inst|prompt)( .*)?"
)
_LETTERS = re.compile(r"[^a-z]+")
_CONVERSATION = [
    {"role": role, "content": text}
    for role, text in (("user", "a"), ("assistant", "b"), ("user", "c"), ("assistant", "d"))
]


def context_of(tokenizer: Any, config: Any, text: str | None, location: str) -> Tokens:
    """Return the tokens of a context, or of the default context.

    A context may name special tokens, such as `<|endoftext|>`. Some tokenizers put tokens before
    every text. If all these added tokens are usable, and the context does not begin with them, the
    added tokens are put before the context. A space at the end of a context belongs to the first
    word of the sentence.

    Args:
        tokenizer: `transformers` tokenizer.
        config: text configuration of the network; None if it is unknown.
        text: context; None for the default.
        location: location of the checkpoint or tokenizer, for messages.

    Raises:
        ModelError: if the text is blank; if it contains a special token or character that the
            tokenizer or the network does not know; or if there is no usable default context.
    """
    if text is None:
        return _default(tokenizer, config, location)
    if not text.strip():
        raise ModelError(
            f"context must be a text such as '. ' or '<|endoftext|>', got {text!r}. Remove the "
            "context to use the default."
        )
    special_tokens = sorted(_special_tokens(tokenizer).values(), key=len, reverse=True)
    ordinary_text = re.sub("|".join(map(re.escape, special_tokens)) or r"(?!)", " ", text)
    if (sign := special_sign(ordinary_text)) is not None:
        names = ", ".join(candidate_contexts(tokenizer, config)[:-1])
        raise ModelError(
            f"context must not contain unknown special tokens, got {sign!r} in {text!r}. The "
            f"tokenizer of {location} reads {sign!r} as ordinary characters. Special tokens of the "
            f"tokenizer: {names or 'none'}."
        )
    ids = tuple(tokenizer(text.removesuffix(" "), add_special_tokens=False)["input_ids"])
    for token in ids:
        if not _is_readable(token, tokenizer, config):
            sign = tokenizer.convert_ids_to_tokens(token)
            raise ModelError(
                f"context must have tokens that the network of {location} reads, got {sign!r} in "
                f"{text!r}: its id is {token:,}, and the network has {config.vocab_size:,} tokens. "
                "Use another text."
            )
    if tokenizer.unk_token_id in ids and str(tokenizer.unk_token) not in text:
        raise ModelError(
            f"context must have characters that the tokenizer of {location} knows, got "
            f"{text!r}. A part of this text becomes {tokenizer.unk_token!r}. Use another text."
        )
    added_ids = _added_before(tokenizer)
    if any(_fault(token, tokenizer, config, added=True) for token in added_ids):
        added_ids = ()
    # The text may already begin with some of the added tokens. For example, the tokenizer adds
    # `[gMASK]<sop>`, and the text begins with `<sop>`. No token must be read twice, so put only the
    # first n added tokens, here `[gMASK]`, before the text
    n = next(n for n in range(len(added_ids) + 1) if added_ids[n:] == ids[: len(added_ids) - n])
    return (*added_ids[:n], *ids)


def candidate_contexts(tokenizer: Any, config: Any) -> tuple[str, ...]:
    """Return contexts for a test of how the context affects scores.

    These are `. ` and the special tokens that begin or end texts. A chat mark is included if the
    tokenizer or the configuration declares it as the beginning or end of a sequence.
    """
    declared = (token for _, token in _declared(tokenizer, config))
    ids = dict.fromkeys((*_separators(tokenizer), *declared))
    special = _special_tokens(tokenizer)
    readable = (i for i in ids if i in special and _is_readable(i, tokenizer, config))
    return (*dict.fromkeys(special[token] for token in readable), ". ")


def is_chat_mark(token: int, tokenizer: Any, *, by_name: bool = False) -> bool:
    """Return True if a token opens or closes a turn of a conversation.

    A token is such a chat mark if it has a typical name, or if the chat template uses it to open or
    close turns. With `by_name`, only the name is considered.
    """
    sign = str(tokenizer.convert_ids_to_tokens(token))
    name = _name(sign)
    if sign in {"<s>", "</s>"} or _SEPARATOR.fullmatch(name) or _BEGINNING.fullmatch(name):
        return False
    # <start> and <end> are chat marks only if they contain bars, as in <|start|>
    has_chat_name = _CHAT.fullmatch(name) and not (name in {"start", "end"} and "|" not in sign)
    return bool(has_chat_name) or (not by_name and sign in _signs_of_turns(tokenizer))


def _default(tokenizer: Any, config: Any, location: str) -> Tokens:
    added_ids = _added_before(tokenizer)
    faults = [*filter(None, (_fault(t, tokenizer, config, added=True) for t in added_ids))]
    if added_ids and not faults:
        return added_ids
    for role, token in _declared(tokenizer, config):
        fault = _fault(token, tokenizer, config)
        if not fault:
            return (token,)
        faults.append(f"{role} {fault}")
    for token in _separators(tokenizer):
        if not _fault(token, tokenizer, config):
            return (token,)
    raise ModelError(
        f"{location} has no token to read before the first word: "
        f"{'; '.join(dict.fromkeys(faults)) or 'its tokenizer names no beginning of a sequence'}. "
        f"None of the {len(tokenizer):,} tokens of its vocabulary separates documents. Set a "
        f"context: `context = \". \"` for the model in a study file, or --context 'NAME=. '."
    )


def _declared(tokenizer: Any, config: Any) -> Iterator[tuple[str, int]]:
    """Yield role and id of each token that is declared as beginning or end of a sequence.

    The role is `bos_token_id` or `eos_token_id`.
    """
    for role in ("bos_token_id", "eos_token_id"):
        for source in (tokenizer, config):
            value = getattr(source, role, None)
            for token in value if isinstance(value, list) else [value]:
                if isinstance(token, int):
                    yield role, token


def _separators(tokenizer: Any) -> list[int]:
    special = sorted(_special_tokens(tokenizer).items())
    return [i for i, sign in special if sign == "</s>" or _SEPARATOR.fullmatch(_name(sign))]


def _is_readable(token: int, tokenizer: Any, config: Any) -> bool:
    rows = getattr(config, "vocab_size", None) or token + 1
    return 0 <= token < rows and (token < len(tokenizer) or token in _special_tokens(tokenizer))


def _fault(token: int, tokenizer: Any, config: Any, *, added: bool = False) -> str:
    """Return the reason why a token cannot be a context; an empty text if it can be a context.

    If `added`, the tokenizer puts the token before every text. Some chat templates, such as that of
    Llama 2, repeat this token before each turn, although it is no chat mark. So only the token's
    name is checked, not its use in the template.
    """
    size = len(tokenizer)
    if not _is_readable(token, tokenizer, config):
        rows = getattr(config, "vocab_size", None) or size
        return f"{token} is not in the vocabulary of {min(size, rows):,} tokens"
    sign = tokenizer.convert_ids_to_tokens(token)
    if token not in _special_tokens(tokenizer):
        return f"{token} ({sign!r}, of {size:,} tokens) is not a special token"
    if is_chat_mark(token, tokenizer, by_name=added):
        return f"{token} ({sign!r}, of {size:,} tokens) opens or closes a turn of a chat"
    return ""


def _special_tokens(tokenizer: Any) -> dict[int, str]:
    """Return special tokens by id; plain words that are declared special are omitted."""
    added = tokenizer.added_tokens_decoder.items()
    signs = {i: token.content for i, token in added if token.special}
    for sign in map(str, tokenizer.all_special_tokens):
        i = tokenizer.convert_tokens_to_ids(sign)
        if i is not None and tokenizer.convert_ids_to_tokens(i) == sign:  # not the unknown token
            signs[i] = sign
    return {i: sign for i, sign in signs.items() if not sign.isalpha()}


def _added_before(tokenizer: Any) -> Tokens:
    framed, plain = (tokenizer("a", add_special_tokens=s)["input_ids"] for s in (True, False))
    starts = range(len(framed) - len(plain) + 1)
    start = next((i for i in starts if framed[i : i + len(plain)] == plain), 0)
    return tuple(framed[:start])


def _name(sign: str) -> str:
    return _LETTERS.sub(" ", sign.lower()).strip()


def _signs_of_turns(tokenizer: Any) -> set[str]:
    """Return the special tokens that a chat template puts before, between and after turns.

    A token that occurs only once, at the start, is omitted, because it begins the text, not a turn.
    """
    if not tokenizer.chat_template:
        return set()
    signs = sorted(set(_special_tokens(tokenizer).values()), key=len, reverse=True)
    pattern = re.compile("|".join(map(re.escape, signs)) or r"(?!)")
    try:
        text = str(tokenizer.apply_chat_template(_CONVERSATION, tokenize=False))
    except Exception:  # third-party code
        return set(pattern.findall(str(tokenizer.chat_template)))
    numbers = Counter(pattern.findall(text))
    leading = re.match(rf"(?:\s*(?:{pattern.pattern}))*", text)
    first = pattern.findall(leading[0]) if leading else []
    return {sign for sign, number in numbers.items() if number > 1 or sign not in first}
