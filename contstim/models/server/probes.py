"""Tests of a server before the first score, and the fingerprint of a served model.

Servers may have faults that give wrong scores without an error. A server may

* shift values by one token,
* return values of generated tokens instead of the tokens sent to it,
* return values that depend on other requests, or
* read the first token twice or not at all.

So a few short texts, the probes, are scored first. For each token of a probe, the server echoes a
value, the token's log-probability. When the server generates text, it also reports the likeliest
next tokens, the alternatives, with their values. The echoed values are compared with the values of
the alternatives. In this example, every text begins with the token BOS:

    tokens sent                    BOS     The     garden    er
    value echoed                   none    -2.1    -7.3     -0.4
    alternatives after BOS                 -2.1
    alternatives after BOS The                     not in the top 20, the last of which has -6.8
    alternatives after BOS The garden                        -0.4

If a token is among the alternatives, its echoed value must equal the reported value. The echoed
value of any other token must be lower than all reported values (for one exception, see `_least`).
Some probes are built from reported alternatives, token by token, so that the expected value of each
of these tokens is known.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.models.base import short_hash
from contstim.models.server.client import ServerFaultError
from contstim.models.server.service import CHANGED, ONE_MODEL, OTHER_TOKENS, ScoringService

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.files.arrays import FloatArray
    from contstim.models.words import Tokens

LEAST_TOLERANCE = 1e-4
"""Difference of two values that is always allowed, nats."""

_TEXTS = (
    "We go.",
    "She reads a book.",
    "The dog never sleeps here.",
    "Nobody remembered the names of the children after the long winter.",
)
_LONG_PROBE = 80  # tokens; a server caches prefixes of texts in blocks of 16 to 64 tokens
_STEPS = 8  # number of tokens of a probe that consists of reported alternatives
_UNLIKELY = 8  # number of checked tokens that the server does not list as alternatives
_MAX_TOTAL = 1.01  # maximum sum of probabilities, including rounding errors
_SAME = 1e-6  # nats; values that differ by less are equal
_ROUNDING = 1e-5  # nats; rounding error of float32


def fingerprint(service: ScoringService, *facts: object) -> str:
    """Return a hash of the model's name, the server's version, probe scores and other facts.

    Scores of probes are rounded so coarsely that differences within the tolerance rarely change the
    hash. If the hash changes, sentences are scored again.
    """
    # The tolerance is a proportion of a score. On a logarithmic scale, all scores can therefore be
    # rounded with the same step
    sizes = np.clip([-score_of(values) for _, values in service.probes], 1e-3, 1e6)
    share = 4 * service.address.tolerance
    steps = [round(math.log(size) / share) for size in sizes.tolist()]
    return short_hash(json.dumps([service.address.model, service.version, steps, *facts]))


def check_unchanged(service: ScoringService) -> None:
    """Refuse a server if values of probes have changed since `probe_server` tested it.

    Raises:
        ServerFaultError: if a value of the first two probes has changed by more than the tolerance.
        ModelError: if the server cannot be reached.
    """
    rows, values = zip(*service.probes[:2], strict=True)
    for now, stored in zip(service.echo(rows), values, strict=True):
        allowed = tolerance_in_nats(score_of(stored), service.address.tolerance)
        difference = _difference(now, stored)
        if difference > allowed:
            detail = f"A probe differs by {difference:.4f} nats from its first value; at most"
            service.refuse(CHANGED, f"{detail} {allowed:.4f} are allowed. {ONE_MODEL}")


def tolerance_in_nats(score: float, tolerance: float) -> float:
    """Return the allowed difference of a score, nats."""
    return max(LEAST_TOLERANCE, tolerance * abs(score))


def score_of(values: FloatArray) -> float:
    """Return the sum of a row's values, nats; ignore the value of the first token, which is nan."""
    return float(np.nansum(values))


def probe_server(service: ScoringService, tokenizer: Any, context: Tokens) -> None:
    """Test a server, and store the probes and their values in the service.

    Raises:
        ServerFaultError: if the server fails a test.
        ModelError: if the server cannot be reached or refuses a request.
    """
    service.version, service.window = _facts(service)
    texts = [tuple(tokenizer(text, add_special_tokens=False)["input_ids"]) for text in _TEXTS]
    service.settle_fields(context + texts[0])
    rows = [context + ids for ids in texts]
    _check_texts(service, rows)
    # Probes with a common prefix that is longer than a block of a server's cache
    length = min(_LONG_PROBE, (service.window or _LONG_PROBE + 2) - 2 - len(context))
    repeated = (sum(texts, ()) * _LONG_PROBE)[: length - 1]
    rows += [(*context, *repeated, ids[0]) for ids in texts[:2]]
    rows += [context + row for row in _uncommon_rows(tokenizer)]
    values = _check_stability(service, rows)
    _check_steps(service, values)
    special = frozenset(tokenizer.all_special_ids)
    sentence, sentence_values, begin = rows[len(texts) - 1], values[len(texts) - 1], len(context)
    _check_paths(service, [context, sentence[: begin + 3]], special)
    reported = service.alternatives([sentence[:n] for n in range(begin, len(sentence))])
    _check_reported(service, sentence, sentence_values, reported)
    _check_unlikely(service, sentence[: begin + 1], reported[1], special)
    _check_beginning(service, sentence, sentence_values)
    service.probes = list(zip(rows, values, strict=True))


def _facts(service: ScoringService) -> tuple[str, int | None]:
    """Return the server's version (or an empty text) and the model's window (or None)."""
    address, client = service.address, service.client
    try:
        listed: Any = client.get(f"{address.url}/models")
        models = {str(entry["id"]): entry for entry in listed["data"]}
    except (LookupError, TypeError):  # the server does not list its models
        models = {}
    if models and address.model not in models:
        detail = f"Its models are {', '.join(sorted(models)[:10])}. Write one after the '#'."
        service.refuse("it has no model of this name", detail)
    window = models.get(address.model, {}).get("max_model_len")
    answers = (client.get(service.url(url)) for url in service.dialect.version_urls)
    versions = (
        facts["version"] for facts in answers if isinstance(facts, dict) and "version" in facts
    )
    return str(next(versions, "")), window if isinstance(window, int) and window > 0 else None


def _uncommon_rows(tokenizer: Any) -> list[Tokens]:
    """Return a row of tokens that the tokenizer would not produce: the letters of a word.

    The row reveals a server that decodes tokens and tokenizes the resulting text: such a server
    reads different tokens from those sent. If the tokenizer splits words into letters, the result
    is empty.
    """
    letters = [tokenizer(sign, add_special_tokens=False)["input_ids"] for sign in "garden"]
    row = tuple(token for ids in letters for token in ids)
    again = tokenizer(tokenizer.decode(row), add_special_tokens=False)["input_ids"]
    return [row] if tuple(again) != row else []


def _check_texts(service: ScoringService, rows: Sequence[Tokens]) -> None:
    """Check that the server reports, for the tokens of each sentence, the sentence's text."""
    service.echo(rows)
    for text, reported in zip(_TEXTS, service.texts, strict=True):
        expected, actual = _without_spaces_and_case(text), _without_spaces_and_case(reported)
        # A text of at most half the expected length is accepted, because some servers report the
        # generated text instead of the sent text
        if expected not in actual and 2 * len(actual) > len(expected):
            service.refuse(
                "it and the tokenizer decode tokens to different texts",
                f"The server decoded the tokens of {text!r} as {reported[:80]!r}. In the "
                "server's address, set `tokenizer` to the model's tokenizer.",
            )


def _without_spaces_and_case(text: str) -> str:
    return "".join(sign for sign in text.casefold() if not (sign.isspace() or sign in "▁ġ"))


def _check_stability(service: ScoringService, rows: list[Tokens]) -> list[FloatArray]:
    """Return the values of rows. Check that order and size of requests do not change the values."""
    backwards = rows[::-1]
    values = [service.echo([row])[0] for row in rows]
    repetitions = [
        [service.echo([row])[0] for row in backwards][::-1],
        service.echo(rows, batch=len(rows)),
        service.echo(backwards, batch=len(rows))[::-1],
        # Concurrent requests with common prefixes
        service.echo([*rows, *rows], batch=1)[len(rows) :],
    ]
    fault = "its values depend on the order or the number of requests"
    advice = "Serve the model in float32, or switch off prefix caching"
    for repetition in repetitions:
        for first_value, new_value in zip(values, repetition, strict=True):
            difference = _difference(new_value, first_value)
            _check_share(service, fault, first_value, difference, advice)
    return values


def _check_steps(service: ScoringService, rows: Sequence[FloatArray]) -> None:
    """Refuse servers that round log-probabilities more coarsely than the tolerance."""
    steps = _steps(np.concatenate([row[1:] for row in rows]))
    ends = np.cumsum([len(row) - 1 for row in rows])
    for row, row_steps in zip(rows, np.split(steps, ends[:-1]), strict=True):
        advice = (
            "The server rounds log-probabilities to steps of up to "
            f"{row_steps.max():.4g} nats: set the server to return more digits"
        )
        _check_share(service, "its values are rounded", row, float(row_steps.sum()) / 2, advice)


def _steps(values: FloatArray) -> FloatArray:
    """Return the rounding step at each value, nats; 0 if values are not rounded.

    The step is constant for rounded decimals. In half precision, the step doubles with each power
    of two.
    """
    for digits in range(4):
        if np.abs(values - values.round(digits)).max() < _ROUNDING:
            return np.full(len(values), 10.0**-digits)
    mantissas, octaves = np.frexp(values)
    for bits in (8, 11):  # bits of a number in bfloat16 and in float16
        if (np.ldexp(mantissas, bits) % 1 == 0).all():
            return np.asarray(np.ldexp(1.0, octaves - bits), np.float64)
    return np.zeros(len(values))


def _check_share(
    service: ScoringService, fault: str, row: FloatArray, difference: float, advice: str
) -> None:
    """Refuse a server if `difference`, the possible error of a row's score (nats), is too large.

    The message contains `fault` and `advice`. `fault` must be a clause that gives the reason.
    `advice` must not end in a full stop.
    """
    score, allowed = abs(score_of(row)), service.address.tolerance
    if difference > tolerance_in_nats(score, allowed):
        share = difference / max(score, LEAST_TOLERANCE)
        digit: float = 10.0 ** math.floor(math.log10(share))
        service.refuse(
            fault,
            f"The relative error of a probe may be {share:.2g}; at most {allowed:g} is "
            f"allowed. {advice}. If this error is small enough for the study, you can instead set "
            f"the option tolerance={math.ceil(share / digit) * digit:g} of the address (0.05 at "
            "most).",
        )


def _check_paths(
    service: ScoringService, starts: Sequence[Tokens], special: frozenset[int]
) -> None:
    """Check that reported alternatives are echoed with their reported values.

    Each of `starts` is the beginning of a row of tokens. It is continued alternately with the
    likeliest and the least likely alternative, so that adjacent tokens have different values.
    """
    paths = list(starts)
    reported: list[list[dict[int, float]]] = [[] for _ in starts]  # for each token of a path
    for step in range(_STEPS):
        for index, likely in enumerate(service.alternatives(paths)):
            plain = sorted((v, token) for token, v in likely.items() if token not in special)
            if not plain:
                service.refuse(
                    "its generated answers contain too few values for a check",
                    f"Of {service.cap} requested alternatives to a token, it returned none that "
                    "the tokenizer knows. Set the option `dialect` of the address to vllm or "
                    "sglang.",
                )
            paths[index] = (*paths[index], plain[-1 if step % 2 == 0 else 0][1])
            reported[index].append(likely)
    for path, values, path_reported in zip(paths, service.echo(paths), reported, strict=True):
        _check_reported(service, path, values, path_reported)


def _check_reported(
    service: ScoringService, row: Tokens, values: FloatArray, reported: Sequence[dict[int, float]]
) -> None:
    """Compare the echoed values of a row's last tokens with the reported alternatives.

    `reported` contains the alternatives for each of these tokens. A token among the alternatives
    must have its reported value. The value of any other token must not exceed the value that
    `_least` returns for the alternatives. Deviations up to the tolerance are allowed.
    """
    allowed = tolerance_in_nats(score_of(values), service.address.tolerance)
    begin = len(row) - len(reported)
    pairs = [*zip(row[begin:], reported, strict=True)]
    is_reported = np.array([token in likely for token, likely in pairs])
    expected = [likely.get(token, _least(likely)) for token, likely in pairs]
    errors = np.maximum(values[begin:] - expected, np.where(is_reported, -np.inf, 0.0))
    if np.abs(errors).max() > allowed or abs(errors[is_reported].sum()) > allowed:
        worst = int(np.abs(errors).argmax())
        suffix = "" if is_reported[worst] else " at most"
        service.refuse(
            "its values are not the log-probabilities that it uses to generate",
            f"The echoed value of token {begin + worst + 1} of a probe is "
            f"{values[begin + worst]:.4f} nats. Its value in generation, after the same tokens, is "
            f"{expected[worst]:.4f}{suffix}.",
        )


def _check_unlikely(
    service: ScoringService, prefix: Tokens, likely: dict[int, float], special: frozenset[int]
) -> None:
    """Check the echoed values of tokens that are not among the alternatives after a prefix.

    The values must not all be equal. They must not exceed the second-lowest value of the
    alternatives (see `_least`) by more than the tolerance. The probabilities of these tokens and of
    the alternatives must add up to at most 1.
    """
    # Ids from 0 to the largest known id, at equal distances
    spread = np.linspace(0, max(*prefix, *likely), 3 * _UNLIKELY).astype(int).tolist()
    unlikely = [t for t in dict.fromkeys(spread) if t not in {*likely, *special}][:_UNLIKELY]
    if len(unlikely) < 3:  # nearly all tokens of the vocabulary are reported
        return
    last = np.array([row[-1] for row in service.echo([(*prefix, token) for token in unlikely])])
    total = float(np.exp([*likely.values(), *last]).sum())
    allowed = tolerance_in_nats(score_of(last), service.address.tolerance)
    if np.ptp(last) < _SAME or (last > _least(likely) + allowed).any() or total > _MAX_TOTAL:
        service.refuse(
            "its values of unlikely tokens are made up",
            f"The server returns {len(likely)} alternatives to a token, down to "
            f"{_least(likely):.4f} nats. The values of {len(last)} other tokens are "
            f"{', '.join(f'{v:.4f}' for v in last[:4])}, …",
        )


def _least(alternatives: dict[int, float]) -> float:
    """Return the value that no token outside the alternatives may exceed, nats.

    This is the second-lowest reported value. The lowest value does not count: it may belong to the
    sampled token, which servers report even if unreported tokens are likelier.
    """
    return min(sorted(alternatives.values())[1:], default=0.0)


def _check_beginning(service: ScoringService, row: Tokens, values: FloatArray) -> None:
    """Check that the server reads the first token: later values must change without this token."""
    try:
        (without,) = service.echo([row[1:]])
    except ServerFaultError:
        # The response does not match the request, because the server adds a missing first token.
        # This addition changes no score, because rows to score always begin with the context
        return
    if np.abs(without[1:] - values[2:]).max() < _SAME:
        detail = "Without the first token of a text, the values of all later tokens do not change."
        service.refuse(OTHER_TOKENS, detail)


def _difference(values: FloatArray, reference: FloatArray) -> float:
    """Return the largest difference between token values or between their sums, nats."""
    by_token = float(np.nanmax(np.abs(values - reference), initial=0.0))
    return max(by_token, abs(score_of(values) - score_of(reference)))
