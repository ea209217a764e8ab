"""Check on one sentence that a network reads the tokens that its kind promises to read.

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

from typing import TYPE_CHECKING, Any

from contstim.errors import ModelError
from contstim.models.checkpoints.source import first_line

if TYPE_CHECKING:
    import torch

    from contstim.models.checkpoints.checkpoint import Checkpoint

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
    if bool(torch.isnan(logits).any() | torch.isposinf(logits).any()) or bool(
        torch.isneginf(logits).all(dim=-1).any()
    ):
        half = logits.dtype == torch.float16
        raise ModelError(
            f"{checkpoint.location} answers an ordinary sentence with values that are not finite "
            f"numbers. Its weights or its config.json are damaged"
            + (", or its numbers do not fit float16: use dtype float32." if half else ".")
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
            f"says of earlier ones, by up to {float(before.max()):.3g} in a logit. Networks that "
            f"read both sides (XLNet, BERT without is_decoder) have no probability of the next "
            f"word; save BERT and its kin as masked language models."
        )


def _rows(checkpoint: Checkpoint) -> tuple[torch.Tensor | None, int]:
    """Two rows of tokens, (2, l), and the place where they differ; None for odd tokenizers."""
    import torch

    tokenizer = checkpoint.tokenizer
    ids = tokenizer(_TEXT, add_special_tokens=False)["input_ids"]
    length = min(_LENGTH, len(ids), checkpoint.window or _LENGTH)
    if length < 3:
        return None, 0
    row, place = ids[:length], length // 2
    others = [token for token in ids if token != row[place]]
    if not others:
        return None, 0
    changed = [*row[:place], others[-1], *row[place + 1 :]]
    return torch.tensor([row, changed], device=checkpoint.device), place


def _logits(checkpoint: Checkpoint, rows: torch.Tensor) -> torch.Tensor:
    """(2, l, V), or of a classifier (2, labels)."""
    import torch

    model: Any = checkpoint.model
    with torch.inference_mode():
        if checkpoint.kind == "causal":
            output = model(input_ids=rows, use_cache=True)
            return torch.as_tensor(output.logits)
        if checkpoint.kind == "masked":
            output = model(input_ids=rows, attention_mask=torch.ones_like(rows))
            return torch.as_tensor(output.logits)
        # one at a time: GPT-2 as published knows no padding and refuses more
        return torch.cat([model(input_ids=row[None]).logits for row in rows])


def _refuse_filling(checkpoint: Checkpoint, row: torch.Tensor, length: int, allowed: float) -> None:
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
            f"although it is told to ignore them; they change its answers by up to {change:.3g} in "
            f"a logit. Scores of such networks (FNet, ConvBERT) would depend on the other "
            f"sentences of a batch: use another model."
        )


def _require(checkpoint: Checkpoint, changes: torch.Tensor, unit: float, what: str) -> None:
    if float(changes.max()) <= unit:
        kind = checkpoint.kind if checkpoint.kind == "classifier" else f"{checkpoint.kind} model"
        raise ModelError(
            f"{checkpoint.location} answers the same whatever {what} may be: it is not a trained "
            f"{kind}, or config.json is not the one that its weights were saved with."
        )
