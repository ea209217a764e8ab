"""Context that a causal model reads before the first word of a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from contstim.errors import ModelError

if TYPE_CHECKING:
    Tokens: TypeAlias = tuple[int, ...]


def context_tokens(
    tokenizer: Any, location: str, *, prompt: str | None, window: int | None, config: Any
) -> Tokens:
    """The prompt, or else the tokens that begin a sequence; one token or more.

    Args:
        tokenizer: a `transformers` tokenizer.
        location: where it came from, for messages.
        prompt: a text before the sentence; None for none.
        window: how many tokens the network reads; None where there is no limit.
        config: the network's text configuration, or None where only the tokenizer is at hand.

    Raises:
        ModelError: a blank prompt, one that fills the window, or nothing to begin with.
    """
    if prompt is None:
        context = _beginning(tokenizer, config)
    elif not prompt.strip():
        raise ModelError(f"The prompt {prompt!r} is blank; give a text such as '. ', or none.")
    else:
        framed = tokenizer(prompt.removesuffix(" "), return_special_tokens_mask=True)
        ids, special = framed["input_ids"], framed["special_tokens_mask"]
        while special and special[-1]:  # what closes a text, such as an end-of-sequence token
            ids, special = ids[:-1], special[:-1]
        context = tuple(ids)
    if not context:
        raise ModelError(
            f"{location} has nothing to read before the first word: its tokenizer "
            f"names no beginning of a sequence. Give a prompt, such as '. '."
        )
    if window is not None and len(context) >= window:
        raise ModelError(
            f"The prompt has {len(context):,} tokens and {location} reads at most "
            f"{window:,}: shorten it."
        )
    return context


def wants_space(tokenizer: Any) -> bool:
    """True if a word at the start of a text is cut otherwise than after a space."""
    return not tokenizer.tokenize("a")[0].startswith(("Ġ", "▁"))


def _beginning(tokenizer: Any, config: Any) -> Tokens:
    """The tokens that begin a sequence: those that the tokenizer puts before every text.

    If it puts none, the beginning-of-sequence token; models without it (Qwen) begin with the end of
    another text.
    """
    # What comes before the tokens of a text, such as GLM's `[gMASK]<sop>`
    framed, plain = (tokenizer("a", add_special_tokens=s)["input_ids"] for s in (True, False))
    starts = range(len(framed) - len(plain) + 1)
    start = next((i for i in starts if framed[i : i + len(plain)] == plain), 0)
    if start:
        return tuple(framed[:start])
    of_network = (getattr(config, f"{name}_token_id", None) for name in ("bos", "eos"))
    # Without a configuration, the tokenizer's end of a text has to do
    of_tokenizer = tokenizer.eos_token_id if config is None else None
    for option in (tokenizer.bos_token_id, *of_network, of_tokenizer):
        token = option[0] if isinstance(option, list) else option
        if token is not None:
            return (int(token),)
    return ()
