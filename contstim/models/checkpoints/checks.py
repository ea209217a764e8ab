"""Checks that configuration, weights and tokenizer belong together, and that the network reads.

`check_weights` makes sure that all weights were there, had a place, and are numbers,
`check_tokenizer` that the tokenizer is as large as the embedding and reads English, and
`check_behaviour` that the network reads what its kind promises.

A causal network predicts from the words before, and from nothing else. The library loads as causal
some networks that read both sides (XLNet; BERT saved without `is_decoder`), and as masked some that
read one side. Two rows that differ in one token, read in one pass, show which places depend on it:

    row 0            the old house was not good for
    row 1            the old house had not good for
    logits differ    causal: at the token and after it; masked: before it too

Masked networks and classifiers read sentences of several lengths in one batch, the short ones
filled up with tokens that they are told to ignore. Two rows that differ in these alone must not
differ elsewhere:

    row 0            the old house | for for for for    what follows | is to be ignored
    row 1            the old house | the the the the
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contstim.errors import ModelError
from contstim.models.checkpoints.source import first_line
from contstim.models.tensors import with_values

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch import Tensor

    from contstim.models.checkpoints.loading import Checkpoint


_INTEGERS = frozenset({"I8", "U8", "I16", "U16", "I32", "U32", "I64", "U64", "BOOL"})
_HARMLESS = re.compile(
    "|".join(
        (
            # heads for tasks beside that of predicting tokens
            r"(^|\.)pooler\.",  # BERT, RoBERTa, ALBERT: of the first token
            r"(^|\.)seq_relationship\.",  # BERT: next sentence
            r"(^|\.)sop_classifier\.",  # ALBERT: order of sentences
            r"(^|\.)discriminator_predictions\.",  # ELECTRA
            r"(^|\.)mask_predictions\.",  # DeBERTa 3: replaced tokens
            r"(^|\.)multiple_choice_head\.",  # GPT-2 with two heads
            r"(^|\.)contact_head\.",  # ESM
            # further copies of the embedding and of the bias
            r"(^|\.)lm_head\.(decoder\.(weight|bias)|weight)$",
            r"(^|\.)predictions\.decoder\.(weight|bias)$",
            # what follows from the configuration
            r"(^|\.)(attn|attention|self_attn)\.(attention\.)?(masked_)?bias$",  # causal masks
            r"(^|\.)rotary_emb\.",
            r"(^|\.)(inv_freq|position_ids|token_type_ids|version|final_logits_bias)$",
        )
    )
)
_HEAD = re.compile(
    r"^(cls|lm_head|predictions|generator_predictions|generator_lm_head|lm_predictions|pred_layer|"
    r"vocab_[a-z_]+|mlm|embed_out|head|score|classifier|qa_outputs)\.|^decoder\.(weight|bias)$"
)


def without_weights(model_class: Any, config: Any, *, trust_remote_code: bool) -> Any:
    """The network that a configuration describes, with the shapes of its weights only.

    Args:
        model_class: an auto class of `transformers`.
        config: its configuration.
        trust_remote_code: whether it may run code of its own.
    """
    import torch
    from transformers.initialization import no_init_weights

    with torch.device("meta"), no_init_weights():
        network = model_class.from_config(config, trust_remote_code=trust_remote_code)
    # Left undone where nothing is initialised: the output would count beside its embedding
    network.tie_weights()
    return network


def _integer_tensors(location: str) -> set[str]:
    """Names of the tensors that a folder's safetensors files keep as whole numbers."""
    from safetensors import safe_open

    names: set[str] = set()
    for path in Path(location).glob("*.safetensors"):
        with safe_open(path, "pt") as file:
            kinds = {name: file.get_slice(name).get_dtype() for name in file.keys()}  # noqa: SIM118
        names |= {name for name, kind in kinds.items() if kind in _INTEGERS}
    return names


def check_weights(
    location: str, what: str, model: Any, report: dict[str, Any], *, new_head: bool = False
) -> None:
    """Refuse a network with weights that are missing, left over, or not numbers.

    Args:
        location: where it came from.
        what: its kind, as a noun phrase.
        model: the network.
        report: what the library says of the weights' names.
        new_head: whether the head starts anew, and another's may be left over.

    Raises:
        ModelError: names one of the weights.
    """
    missing = sorted(report["missing_keys"])
    if new_head:
        # the head, with BERT's pooler, stands on the network; what is below it must be there
        body = f"{model.base_model_prefix}."
        missing = [name for name in missing if name.startswith(body) and ".pooler." not in name]
    if missing:
        head = "classification" if "classifier" in what else "language-modelling"
        raise ModelError(
            f"{location} is not a complete {what}: {len(missing)} of its weights would start at "
            f"random, among them {missing[0]}. Was it saved with its {head} head?"
        )
    spare = left_over(report["unexpected_keys"], new_head=new_head)
    if spare:
        raise ModelError(
            f"{location} holds {len(spare)} weights that have no place in the {what} of its "
            f"config.json, among them {spare[0]}. Is that the one they were saved with?"
        )
    _check_finite(location, model)


def left_over(names: Iterable[str], *, new_head: bool = False) -> list[str]:
    """The weights without a place that matter, such as a layer; unused heads do not.

    Args:
        names: of weights that the network has no place for.
        new_head: whether heads of language models are expected among them.
    """
    return sorted(
        name
        for name in names
        if not _HARMLESS.search(name) and not (new_head and _HEAD.search(name))
    )


def _check_finite(location: str, model: Any) -> None:
    import torch

    quantised = getattr(model.config, "quantization_config", None) is not None
    whole = set() if quantised else _integer_tensors(location)
    for name, weight in with_values(model, model.named_parameters()):
        if name in whole:
            raise ModelError(
                f"{location}: the weight {name} is kept as whole numbers without a quantization. "
                f"Save it in float32, bfloat16 or float16."
            )
        if not weight.is_floating_point():
            continue
        # a sum takes one pass and no memory; infinite if large, which is then looked at again
        values = weight.detach()
        if not torch.isfinite(values.sum(dtype=torch.float32)) and not torch.isfinite(values).all():
            raise ModelError(
                f"{location}: the weight {name} holds values that are not finite numbers: the file "
                f"is damaged, or its training diverged."
            )


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
_OWN = "Put those of the model into the folder."


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
    said = f"{location} has a tokenizer of {len(tokens):,} tokens for a network of {n_rows:,}"
    if missing > max(rounded_up, n_rows * _SPARE_SHARE):
        raise ModelError(f"{said}. Are its files there, such as tokenizer.json? {_OWN}")
    special = set(tokenizer.all_special_ids) - set(tokenizer("a")["input_ids"])  # never read
    beyond = {i: token for token, i in tokens.items() if i >= n_rows and i not in special}
    if beyond:
        raise ModelError(f"{said}: {beyond[min(beyond)]!r} is number {min(beyond):,}. {_OWN}")


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
            f"{', '.join(unread[:3] or _WORDS[:3])}. Are its files there and whole? {_OWN}"
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
                f"{token!r}, which the network could not tell apart. {_OWN}"
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
            f"{location} has a tokenizer that turns capitals into small letters although "
            f"{capitals:,} of its tokens have capitals. Is tokenizer_config.json whole? {_OWN}"
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
            f"{len(model['vocab']):,} tokens, such as {unreached[0]!r}, are never written. {_OWN}"
        )


_TEXT = "the old house was not good for people but the small dog had water"
_LENGTH = 7  # tokens: enough for three before and three after
_ROUNDINGS = 64  # how many rounding errors may add up where nothing should change
_FILLING = 0.01  # of the effect of another word, what padding may do to a classifier's answer
_FAINT = 0.1  # of the largest change that is seen, what may be due to rounding


def check_behaviour(checkpoint: Checkpoint) -> None:
    """Refuse a network that reads the wrong tokens, or whose outputs are not numbers.

    Args:
        checkpoint: a checkpoint with its weights.

    Raises:
        ModelError: names the reason.
    """
    import torch

    from contstim.models.batching import out_of_memory
    from contstim.models.precision import precision_of

    rows, place = _rows(checkpoint)
    if rows is None:
        return
    try:
        logits = _logits(checkpoint, rows)
    except RuntimeError as error:
        precision = precision_of(checkpoint.model)
        if precision == "float32" or out_of_memory(error):
            raise
        # Some networks (DeBERTa, XLNet) hold tables that the library computes in float32 only
        raise ModelError(
            f"{checkpoint.location} does not compute in {precision}: use dtype float32 "
            f"({first_line(error)})."
        ) from error
    # No nan and no infinity; tokens that only fill up an embedding may have minus infinity.
    impossible = torch.isnan(logits) | torch.isposinf(logits)
    if bool(impossible.any()) or bool(torch.isneginf(logits).all(dim=-1).any()):
        half = " or do not fit float16" if logits.dtype == torch.float16 else ""
        raise ModelError(
            f"{checkpoint.location} answers an ordinary sentence with values that are not finite "
            f"numbers: its weights or its config.json are damaged{half}."
        )
    # one rounding error of a usual logit; the largest may be a stand-in for infinity
    unit = float(torch.finfo(logits.dtype).eps * logits.abs().float().median())
    # impossible tokens are minus infinity, and their difference is nan
    changes = (logits[0] - logits[1]).nan_to_num(0.0).abs().amax(dim=-1)  # (l,) or ()
    if checkpoint.kind == "classifier":
        _require(checkpoint, changes, unit, "what it reads")
        # One of two logits may be next to 0: what rounding is, another word's effect says better.
        enough = max(_ROUNDINGS * unit, _FILLING * float(changes.max()))
        _refuse_filling(checkpoint, rows[0], place, enough)
        return
    before, after = changes[:place], changes[place + 1 :]  # of the token that differs
    _require(checkpoint, after, unit, "the words before")
    allowed = min(_ROUNDINGS * unit, _FAINT * float(after.max()))
    if checkpoint.kind == "masked":
        _require(checkpoint, before, unit, "the words that follow")
        _refuse_filling(checkpoint, rows[0], place, allowed)
        return
    if float(before.max()) > allowed:
        raise ModelError(
            f"{checkpoint.location} is not a causal language model: a later word changes what it "
            f"says of earlier ones. Networks that read both sides (XLNet, BERT without is_decoder) "
            f"have no probability of the next word; save BERT and its kin as masked models."
        )


def _rows(checkpoint: Checkpoint) -> tuple[Tensor | None, int]:
    """Two rows of tokens, (2, l), and the place where they differ; None for odd tokenizers."""
    import torch

    ids = checkpoint.tokenizer(_TEXT, add_special_tokens=False)["input_ids"]
    length = min(_LENGTH, len(ids), checkpoint.window or _LENGTH)
    row, place = ids[:length], length // 2
    others = [token for token in ids if token != row[place]] if length >= 3 else []
    if not others:
        return None, 0
    changed = [*row[:place], others[-1], *row[place + 1 :]]
    return torch.tensor([row, changed], device=checkpoint.device), place


def _logits(checkpoint: Checkpoint, rows: Tensor) -> Tensor:
    """(2, l, V), or of a classifier (2, labels)."""
    import torch

    model: Any = checkpoint.model
    with torch.inference_mode():
        if checkpoint.kind == "classifier":
            # one at a time: GPT-2 as published knows no padding and refuses more
            return torch.cat([model(input_ids=row[None]).logits for row in rows])
        masked = checkpoint.kind == "masked"
        more = {"attention_mask": torch.ones_like(rows)} if masked else {"use_cache": True}
        return torch.as_tensor(model(input_ids=rows, **more).logits)


def _refuse_filling(checkpoint: Checkpoint, row: Tensor, length: int, allowed: float) -> None:
    """Refuse a network that reads what fills up a row behind its first `length` tokens.

    Causal networks never read what follows. A classifier finds the end of a text by the padding
    token alone, so that its short row is compared with the same one unfilled.
    """
    import torch

    model: Any = checkpoint.model
    filled = row.repeat(2, 1)  # (2, l)
    attention = torch.ones_like(filled)
    attention[:, length:] = 0
    with torch.inference_mode():
        if checkpoint.kind == "classifier":
            pad = model.config.get_text_config().pad_token_id
            if pad is None:  # then the adapter fills up nothing
                return
            filled[:, length:] = pad
            whole = model(input_ids=filled[:1], attention_mask=attention[:1]).logits
            bare = model(input_ids=row[None, :length], attention_mask=attention[:1, :length]).logits
            difference = whole - bare
        else:
            filled[0, length:], filled[1, length:] = row[-1], row[0]
            logits = model(input_ids=filled, attention_mask=attention).logits[:, :length]
            difference = logits[0] - logits[1]
    change = float(difference.nan_to_num(0.0).abs().max())
    if change > allowed:
        raise ModelError(
            f"{checkpoint.location} reads the tokens that fill up a short sentence in a batch "
            f"although it is told to ignore them. Scores of such networks (FNet, ConvBERT) would "
            f"depend on the other sentences of a batch: use another model."
        )


def _require(checkpoint: Checkpoint, changes: Tensor, unit: float, what: str) -> None:
    if float(changes.max()) <= unit:
        kind = checkpoint.kind if checkpoint.kind == "classifier" else f"{checkpoint.kind} model"
        raise ModelError(
            f"{checkpoint.location} answers the same whatever {what} may be: it is not a trained "
            f"{kind}, or config.json is not the one that its weights were saved with."
        )
