"""Functions that check if files of a checkpoint belong together, and if its network works.

A causal network predicts a word only from the words before it. A masked network also reads the
words after it. `transformers` may load a network as the wrong kind without an error. For example,
it loads XLNet as a causal network. It also loads BERT as a causal network if BERT was saved without
`is_decoder`. `check_behaviour` compares the logits of two rows that differ in one token:

    row 0            the old house was not good for
    row 1            the old house water not good for
    logits differ    at the changed token and after it; in a masked network, also before it

Masked networks and classifiers read sentences of different lengths in one batch. Short sentences
are padded with tokens that the attention mask excludes. A classifier must give a row the same
logits with and without padding. If two rows of a masked network differ only in the padding, their
logits before the padding must be equal:

    row 0            the old house | for for for for    the tokens after | are padding
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
    from collections.abc import Iterator

    from torch import Tensor

    from contstim.models.checkpoints.loading import Checkpoint


# Types of integers in safetensors files
_INTEGERS = frozenset({"I8", "U8", "I16", "U16", "I32", "U32", "I64", "U64", "BOOL"})
# Names of weights that a file may contain although the network does not use them
_HARMLESS = re.compile(
    "|".join(
        (
            # heads for tasks other than predicting tokens
            r"(^|\.)pooler\.",  # BERT, RoBERTa, ALBERT: reads the first token
            r"(^|\.)seq_relationship\.",  # BERT: predicts whether a sentence follows another
            r"(^|\.)sop_classifier\.",  # ALBERT: predicts the order of sentences
            r"(^|\.)discriminator_predictions\.",  # ELECTRA: finds replaced tokens
            r"(^|\.)mask_predictions\.",  # DeBERTa 3: finds replaced tokens
            r"(^|\.)multiple_choice_head\.",  # GPT-2 with two heads
            r"(^|\.)contact_head\.",  # ESM
            # copies of the embedding and of the bias
            r"(^|\.)lm_head\.(decoder\.(weight|bias)|weight)$",
            r"(^|\.)predictions\.decoder\.(weight|bias)$",
            # values determined by the configuration
            r"(^|\.)(attn|attention|self_attn)\.(attention\.)?(masked_)?bias$",  # causal masks
            r"(^|\.)rotary_emb\.",
            r"(^|\.)(inv_freq|position_ids|token_type_ids|version|final_logits_bias)$",
        )
    )
)
# Names of weights that belong to a head, the part of a network that computes the output
_HEAD = re.compile(
    r"^(cls|lm_head|predictions|generator_predictions|generator_lm_head|lm_predictions|pred_layer|"
    r"vocab_[a-z_]+|mlm|embed_out|head|score|classifier|qa_outputs)\.|^decoder\.(weight|bias)$"
)


def without_weights(model_class: Any, config: Any, *, trust_remote_code: bool) -> Any:
    """Build a network whose weights have shapes, but no values.

    `model_class` is an auto class of `transformers`, such as `AutoModelForCausalLM`.
    """
    import torch
    from transformers.initialization import no_init_weights

    with torch.device("meta"), no_init_weights():
        network = model_class.from_config(config, trust_remote_code=trust_remote_code)
    # Without initialisation, `from_config` does not tie weights
    network.tie_weights()
    return network


def _integer_tensors(location: str) -> Iterator[str]:
    from safetensors import safe_open

    for path in Path(location).glob("*.safetensors"):
        with safe_open(path, "pt") as file:
            names = file.keys()
            yield from (n for n in names if file.get_slice(n).get_dtype() in _INTEGERS)


def check_weights(
    location: str, kind: str, model: Any, report: dict[str, Any], *, new_head: bool = False
) -> None:
    """Refuse a network with weights that are missing, unused or not finite.

    `kind` is a noun phrase for the network. `report` is the loading report of `transformers`, with
    the names of missing and unexpected weights. The head is the part of a network that computes its
    output. With `new_head`, the head may be missing, and weights of an old head may be unused.

    Raises:
        ModelError: if weights are missing, unused or not finite; or if weights are stored as
            integers although the network is not quantized.
    """
    missing = sorted(report["missing_keys"])
    if new_head:
        # The head and BERT's pooler are new; all other weights must be present
        body = f"{model.base_model_prefix}."
        missing = [name for name in missing if name.startswith(body) and ".pooler." not in name]
    if missing:
        head = "classification" if "classifier" in kind else "language-modelling"
        raise ModelError(
            f"{location} is not a complete {kind}: {len(missing)} weights are missing, such "
            f"as {missing[0]}. Save it with its {head} head."
        )
    # Unused heads for other tasks are no error. With a new head, the unused old head is no error
    spare = sorted(
        name
        for name in report["unexpected_keys"]
        if not _HARMLESS.search(name) and not (new_head and _HEAD.search(name))
    )
    if spare:
        raise ModelError(
            f"{location} contains {len(spare)} weights that do not belong to the {kind} of its "
            f"config.json, such as {spare[0]}. Use the config.json that was saved with them."
        )
    _check_finite(location, model)


def _check_finite(location: str, model: Any) -> None:
    import torch

    quantised = getattr(model.config, "quantization_config", None) is not None
    integer_names = set() if quantised else set(_integer_tensors(location))
    for name, weight in with_values(model, model.named_parameters()):
        if name in integer_names:
            raise ModelError(
                f"{location}: the weight {name} is stored as integers without quantization. Save "
                "it in float32, bfloat16 or float16."
            )
        if not weight.is_floating_point():
            continue
        # The sum is fast and takes no memory, but it may overflow. If it does, check each value
        values = weight.detach()
        if not torch.isfinite(values.sum(dtype=torch.float32)) and not torch.isfinite(values).all():
            raise ModelError(
                f"{location}: the weight {name} has values that are not finite. The file is "
                "damaged, or the training diverged."
            )


# Words that every tokenizer of English can encode
_WORDS = (
    "the of and a to in is was he for it with as his on be at by this had not are but from or have "
    "an dog house water people time day read walk old small good"
).split()

# Maximum number of unused rows in an embedding that is padded to a multiple of 128 rows
_MAX_PADDING_ROWS = 127
_SPARE_SHARE = 1 / 20  # allowed share of unused rows; published models have at most 2.4 %
_CAPITALS_SHARE = 1 / 20  # maximum share of tokens with capitals if text is lowercased
# A merge is a rule of BPE that builds a token from two shorter ones. Special tokens have no merge,
# so some tokens without a merge are allowed
_UNREACHED_SHARE = 1 / 20  # maximum share of tokens without a merge
_REMEDY = "Put the tokenizer files of the model into the folder."


def check_tokenizer(location: str, tokenizer: Any, model: Any) -> None:
    """Refuse a tokenizer that cannot belong to a network.

    If files are missing, `transformers` creates a tokenizer whose only tokens are five special
    tokens.

    Raises:
        ModelError: if the tokenizer is much smaller than the embedding; if it has tokens without a
            row in the embedding; if it lowercases text although it has tokens with capitals; or if
            it lacks most of its merges. See also `check_words`.
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
    rounded_up = _MAX_PADDING_ROWS if n_rows % 8 == 0 else 0
    sizes = f"{location} has a tokenizer of {len(tokens):,} tokens for a network of {n_rows:,}"
    if missing > max(rounded_up, n_rows * _SPARE_SHARE):
        raise ModelError(f"{sizes}. Check that its files exist, such as tokenizer.json. {_REMEDY}")
    # A special token needs a row in the embedding only if the tokenizer adds it to texts
    special = set(tokenizer.all_special_ids) - set(tokenizer("a")["input_ids"])
    if beyond := {i: token for token, i in tokens.items() if i >= n_rows and i not in special}:
        raise ModelError(f"{sizes}: {beyond[min(beyond)]!r} has the id {min(beyond):,}. {_REMEDY}")


def check_words(location: str, tokenizer: Any) -> None:
    """Refuse a tokenizer that cannot read ordinary English words, or has one id for two tokens.

    Raises:
        ModelError: if the tokenizer fails a check.
    """
    _check_unique_ids(location, tokenizer)
    unknown = tokenizer.unk_token_id
    rows = tokenizer(_WORDS, add_special_tokens=False)["input_ids"]
    unread = [w for w, row in zip(_WORDS, rows, strict=True) if not row or unknown in row]
    has_few_distinct = len({tuple(row) for row in rows}) < len(_WORDS) / 2
    if 2 * len(unread) > len(_WORDS) or has_few_distinct:
        raise ModelError(
            f"{location} has a tokenizer that cannot read ordinary English words, such as "
            f"{', '.join(unread[:3] or _WORDS[:3])}. Check that its files are complete. {_REMEDY}"
        )


def _check_unique_ids(location: str, tokenizer: Any) -> None:
    special = set(tokenizer.all_special_tokens)
    tokens: dict[int, str] = {}
    for token, number in tokenizer.get_vocab().items():
        first_token = tokens.setdefault(number, token)
        if first_token != token and not special.issuperset((token, first_token)):
            raise ModelError(
                f"{location} has a tokenizer with the number {number:,} for both {first_token!r} "
                f"and {token!r}, so the network cannot distinguish them. {_REMEDY}"
            )


def _check_capitals(location: str, tokenizer: Any, tokens: dict[str, int]) -> None:
    """Refuse a tokenizer that lowercases text although its vocabulary has capitals.

    BERT's tokenizer lowercases text unless `tokenizer_config.json` disables this.
    """
    upper, lower = tokenizer(["Old Trees", "old trees"], add_special_tokens=False)["input_ids"]
    if upper != lower:
        return
    special = set(tokenizer.all_special_tokens)
    capitals = sum(token != token.lower() for token in tokens if token not in special)
    if capitals > _CAPITALS_SHARE * len(tokens):
        raise ModelError(
            f"{location} has a tokenizer that converts text to lower case although "
            f"{capitals:,} of its tokens have capitals. Check tokenizer_config.json. {_REMEDY}"
        )


def _check_merges(location: str, tokenizer: Any) -> None:
    """Refuse a BPE tokenizer that lacks most of its merges; it would split words into letters."""
    if not tokenizer.is_fast:
        return
    model = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    if model.get("type") != "BPE":
        return
    merged = {"".join(pair if isinstance(pair, list) else pair.split()) for pair in model["merges"]}
    unreached = [
        token
        for token in model["vocab"]
        if len(token.removesuffix("</w>")) > 1
        and token not in merged
        and not (token.startswith("<") and token.endswith(">"))  # special, or a byte
    ]
    if len(unreached) > _UNREACHED_SHARE * len(model["vocab"]):
        raise ModelError(
            f"{location}: merges.txt is missing or truncated. Therefore {len(unreached):,} of "
            f"the tokenizer's {len(model['vocab']):,} tokens, such as {unreached[0]!r}, can never "
            f"occur. {_REMEDY}"
        )


_PROBE_TEXT = "the old house was not good for people but the small dog had water"
_PROBE_LENGTH = 7  # tokens: three before the changed token and three after it
_MAX_ROUNDING_ERRORS = 64  # maximum difference of logits that should be equal, in rounding errors
# The effect of a token is the largest change of a logit if the token is replaced
_PADDING_SHARE = 0.01  # maximum effect of padding on a classifier, relative to a token's effect
# Second maximum for differences of logits that should be equal, relative to a token's effect. For
# language models, the smaller of the two maxima is the limit
_ROUNDING_SHARE = 0.1


def check_behaviour(checkpoint: Checkpoint) -> None:
    """Refuse a network whose outputs depend on the wrong tokens or are not finite.

    Raises:
        ModelError: if the network fails a check, or cannot compute in its precision.
    """
    import torch

    from contstim.models.batching import out_of_memory
    from contstim.models.precision import precision_of

    rows, position = _probe_rows(checkpoint)
    if rows is None:
        return
    try:
        logits = _logits(checkpoint, rows)
    except RuntimeError as error:
        precision = precision_of(checkpoint.model)
        if precision == "float32" or out_of_memory(error):
            raise
        # `transformers` computes some tables of DeBERTa and XLNet only in float32
        raise ModelError(
            f"{checkpoint.location} cannot compute in {precision} ({first_line(error)}). Use dtype "
            "float32."
        ) from error
    # nan and infinity are invalid; unused tokens of a padded embedding may have minus infinity
    is_invalid = torch.isnan(logits) | torch.isposinf(logits)
    if bool(is_invalid.any()) or bool(torch.isneginf(logits).all(dim=-1).any()):
        half = ", or its values are too large for float16" if logits.dtype == torch.float16 else ""
        raise ModelError(
            f"{checkpoint.location} computes values that are not finite for an ordinary sentence. "
            f"Its weights or its config.json are damaged{half}."
        )
    # Rounding error of the median logit, not of the largest one, which may represent infinity
    unit = float(torch.finfo(logits.dtype).eps * logits.abs().float().median())
    # The difference of two infinite logits is nan
    changes = (logits[0] - logits[1]).nan_to_num(0.0).abs().amax(dim=-1)  # (l,) or ()
    if checkpoint.kind == "classifier":
        _require_change(checkpoint, changes, unit, "its input")
        # The logits of a classifier may be near 0, so the limit also depends on a token's effect
        allowed = max(_MAX_ROUNDING_ERRORS * unit, _PADDING_SHARE * float(changes.max()))
        _check_padding(checkpoint, rows[0], position, allowed)
        return
    changes_before, changes_after = changes[:position], changes[position + 1 :]
    _require_change(checkpoint, changes_after, unit, "the words before")
    allowed = min(_MAX_ROUNDING_ERRORS * unit, _ROUNDING_SHARE * float(changes_after.max()))
    if checkpoint.kind == "masked":
        _require_change(checkpoint, changes_before, unit, "the words that follow")
        _check_padding(checkpoint, rows[0], position, allowed)
    elif float(changes_before.max()) > allowed:
        raise ModelError(
            f"{checkpoint.location} is not a causal language model: its predictions of a word "
            "depend on later words. Networks that read both sides (XLNet, BERT without is_decoder) "
            "do not predict the next word. Save BERT and similar models as masked models."
        )


def _probe_rows(checkpoint: Checkpoint) -> tuple[Tensor | None, int]:
    """Return two rows of tokens, (2, l), and the index where they differ.

    The rows are None if the probe text has fewer than three tokens, or if all its tokens are equal.
    """
    import torch

    ids = checkpoint.tokenizer(_PROBE_TEXT, add_special_tokens=False)["input_ids"]
    length = min(_PROBE_LENGTH, len(ids), checkpoint.window or _PROBE_LENGTH)
    row, position = ids[:length], length // 2
    alternatives = [token for token in ids if token != row[position]] if length >= 3 else []
    if not alternatives:
        return None, 0
    changed = [*row[:position], alternatives[-1], *row[position + 1 :]]
    return torch.tensor([row, changed], device=checkpoint.device), position


def _logits(checkpoint: Checkpoint, rows: Tensor) -> Tensor:
    """Return logits, (2, l, V); for a classifier, (2, n_labels)."""
    import torch

    model: Any = checkpoint.model
    with torch.inference_mode():
        if checkpoint.kind == "classifier":
            # One row at a time: the published GPT-2 has no padding token, so it refuses batches
            return torch.cat([model(input_ids=row[None]).logits for row in rows])
        masked = checkpoint.kind == "masked"
        options = {"attention_mask": torch.ones_like(rows)} if masked else {"use_cache": True}
        return torch.as_tensor(model(input_ids=rows, **options).logits)


def _check_padding(checkpoint: Checkpoint, row: Tensor, length: int, allowed: float) -> None:
    """Refuse a network whose outputs depend on the padding after the first `length` tokens.

    For a masked network, the outputs for two rows with different padding tokens are compared. A
    classifier may find the end of a text by means of the padding token, so this token cannot be
    changed. Its output for the padded row is compared with its output for the row without padding.
    """
    import torch

    model: Any = checkpoint.model
    padded = row.repeat(2, 1)  # (2, l)
    attention = torch.ones_like(padded)
    attention[:, length:] = 0
    with torch.inference_mode():
        if checkpoint.kind == "classifier":
            pad = model.config.get_text_config().pad_token_id
            if pad is None:  # such classifiers read texts one by one, without padding
                return
            padded[:, length:] = pad
            with_padding = model(input_ids=padded[:1], attention_mask=attention[:1]).logits
            bare = model(input_ids=row[None, :length], attention_mask=attention[:1, :length]).logits
            difference = with_padding - bare
        else:
            padded[0, length:], padded[1, length:] = row[-1], row[0]
            logits = model(input_ids=padded, attention_mask=attention).logits[:, :length]
            difference = logits[0] - logits[1]
    if float(difference.nan_to_num(0.0).abs().max()) > allowed:
        raise ModelError(
            f"{checkpoint.location} reads the padding tokens of a batch, although they are "
            "masked. The score of a sentence would depend on the other sentences of its batch, "
            "as in FNet and ConvBERT. Use another model."
        )


def _require_change(checkpoint: Checkpoint, changes: Tensor, unit: float, condition: str) -> None:
    if float(changes.max()) <= unit:
        kind = checkpoint.kind if checkpoint.kind == "classifier" else f"{checkpoint.kind} model"
        raise ModelError(
            f"The output of {checkpoint.location} does not depend on {condition}. The network is "
            f"not a trained {kind}, or config.json does not belong to its weights."
        )
