"""Check that a tokenizer belongs to a network: as large as its embedding, able to read English."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from contstim.errors import ModelError

_WORDS = (
    *("the", "of", "and", "a", "to", "in", "is", "was", "he", "for", "it", "with", "as", "his"),
    *("on", "be", "at", "by", "this", "had", "not", "are", "but", "from", "or", "have", "an"),
    *("dog", "house", "water", "people", "time", "day", "read", "walk", "old", "small", "good"),
)
"""Words that every tokenizer of English can write."""

_PADDING = 127  # rows by which an embedding is rounded up to a multiple of 128
_SPARE_SHARE = 1 / 20  # of an embedding that nobody writes to; 2.4 % at most in published models
_CAPITALS_SHARE = 1 / 20
_UNREACHED_SHARE = 1 / 20  # special tokens and spare ones need no merge
_SUFFIX = "</w>"


def check_tokenizer(location: str, tokenizer: Any, model: Any) -> None:
    """Refuse a tokenizer that cannot be the one that a network was trained with.

    The library makes up a tokenizer of its five special tokens where the files are missing.

    Args:
        location: where both came from.
        tokenizer: a `transformers` tokenizer.
        model: the network.

    Raises:
        ModelError: it is far smaller or larger than the embedding, reads ordinary words as unknown,
            or lowers capitals that it has tokens for.
    """
    tokens = tokenizer.get_vocab()
    embedding = model.get_input_embeddings()
    n_rows = int(getattr(embedding, "weight", embedding).shape[0])
    _check_size(location, tokenizer, tokens, n_rows)
    check_words(location, tokenizer)
    _check_capitals(location, tokenizer, tokens)
    if Path(location).is_dir() and not (Path(location) / "tokenizer.json").is_file():
        _check_merges(location, tokenizer)


def _check_size(location: str, tokenizer: Any, tokens: dict[str, int], n_rows: int) -> None:
    missing = n_rows - len(tokens)
    rounded_up = _PADDING if n_rows % 8 == 0 else 0
    if missing > max(rounded_up, n_rows * _SPARE_SHARE):
        raise ModelError(
            f"{location} has a tokenizer of {len(tokens):,} tokens for a network of {n_rows:,}. "
            f"Are its files there (tokenizer.json; or vocab.txt, or vocab.json with merges.txt)? "
            f"Put those of the model into the folder."
        )
    special = set(tokenizer.all_special_ids) - set(tokenizer("a")["input_ids"])  # never read
    beyond = {token: i for token, i in tokens.items() if i >= n_rows and i not in special}
    if beyond:
        token, number = min(beyond.items(), key=lambda item: item[1])
        raise ModelError(
            f"{location} has a tokenizer of {len(tokens):,} tokens for a network of {n_rows:,}: "
            f"{token!r} is number {number:,}. Put the model's own tokenizer into the folder."
        )


def check_words(location: str, tokenizer: Any) -> None:
    """Refuse a tokenizer that reads ordinary words as unknown, or two words as one number.

    Raises:
        ModelError: see above.
    """
    _check_numbers(location, tokenizer)
    unknown = tokenizer.unk_token_id
    rows = tokenizer(list(_WORDS), add_special_tokens=False)["input_ids"]
    unread = [w for w, row in zip(_WORDS, rows, strict=True) if not row or unknown in row]
    alike = len({tuple(row) for row in rows}) < len(_WORDS) / 2
    if 2 * len(unread) > len(_WORDS) or alike:
        raise ModelError(
            f"{location} has a tokenizer that cannot read ordinary English words, such as "
            f"{', '.join(unread[:3] or _WORDS[:3])}. Are its files there and whole? Put those of "
            f"the model into the folder."
        )


def _check_numbers(location: str, tokenizer: Any) -> None:
    """Each token has a number of its own; special ones may share theirs among themselves."""
    special = set(tokenizer.all_special_tokens)
    tokens: dict[int, str] = {}
    for token, number in tokenizer.get_vocab().items():
        other = tokens.setdefault(number, token)
        if other != token and not special.issuperset((token, other)):
            raise ModelError(
                f"{location} has a tokenizer with the number {number:,} for both {other!r} and "
                f"{token!r}, which the network could not tell apart. Put the model's own tokenizer "
                f"into the folder."
            )


def _check_capitals(location: str, tokenizer: Any, tokens: dict[str, int]) -> None:
    """A vocabulary with capitals is never read in lower case.

    BERT's tokenizer lowers them unless `tokenizer_config.json` says otherwise.
    """
    upper, lower = tokenizer(["Old Trees", "old trees"], add_special_tokens=False)["input_ids"]
    if upper != lower:
        return
    special = set(tokenizer.all_special_tokens)
    capitals = sum(token != token.lower() for token in tokens if token not in special)
    if capitals > _CAPITALS_SHARE * len(tokens):
        raise ModelError(
            f"{location} has a tokenizer that turns capitals into small letters although its "
            f"vocabulary has {capitals:,} tokens with capitals. Is tokenizer_config.json there and "
            f"whole? Put the model's own into the folder."
        )


def _check_merges(location: str, tokenizer: Any) -> None:
    """Without its merges, byte-pair encoding spells every word; files of text can be cut unseen."""
    if not tokenizer.is_fast:
        return
    model = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    if model.get("type") != "BPE":
        return
    merged = {"".join(pair if isinstance(pair, list) else pair.split()) for pair in model["merges"]}
    unreached = [
        token
        for token in model["vocab"]
        if len(token.removesuffix(_SUFFIX)) > 1
        and token not in merged
        and not (token.startswith("<") and token.endswith(">"))  # special, or a byte
    ]
    if len(unreached) > _UNREACHED_SHARE * len(model["vocab"]):
        raise ModelError(
            f"{location}: merges.txt is missing or cut: {len(unreached):,} of the tokenizer's "
            f"{len(model['vocab']):,} tokens, such as {unreached[0]!r}, can never be written. Put "
            f"the model's own file into the folder."
        )
