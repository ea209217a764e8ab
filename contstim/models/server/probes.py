"""Probes before the first score, and the fingerprint that tells one model from another.

Silent faults of servers are many: values shifted by a token, values of generated tokens in place of
those that were sent, values that depend on what else the server is doing, a beginning that is read
twice or not at all. Each would give a score to every sentence, and no error. So a few probes are
sent first, and compared with what the server says when it generates:

    tokens sent                    BOS     The     garden    er
    value echoed                   none    -2.1    -7.3     -0.4
    asked: what follows BOS?               -2.1
    asked: what follows BOS The?                   not among the 20 told, of which the last has -6.8
    asked: what follows BOS The garden?                      -0.4

A value that is told must be the one echoed; one that is not told must be below all that are. Other
probes are built of tokens that the server itself tells, so that there is a value for all of them.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.models.base import short_hash
from contstim.models.server.client import ServerFaultError
from contstim.models.server.service import CHANGED, ONE_MODEL, OTHER_TOKENS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.files.arrays import FloatArray
    from contstim.models.server.service import ScoringService
    from contstim.models.words import Tokens

LEAST_TOLERANCE = 1e-4
"""Nats by which two values may always differ."""

_TEXTS = (
    "We go.",
    "She reads a book.",
    "The dog never sleeps here.",
    "Nobody remembered the names of the children after the long winter.",
)
_LONG = 80  # tokens: more than the 16 to 64 of a block in which servers keep what they have read
_STEPS = 8  # tokens of a path that the server itself tells
_UNLIKELY = 8  # tokens that are not among those told
_MOST = 1.01  # the sum of probabilities, rounding included
_SAME = 1e-6  # nats between two values that cannot be told apart
_ROUNDING = 1e-5  # nats that float32 leaves of a step
_HALVES = (8, 11)  # bits of a number in bfloat16 and in float16


def fingerprint(service: ScoringService, *facts: object) -> str:
    """A hash of the model's name, version and behaviour, and of whatever else makes scores.

    Scores are rounded so coarsely that the tolerance seldom leads across a border. Where it does, a
    model has a second fingerprint and is scored anew; two models never share theirs by it.
    """
    # Equal shares of a score are equal steps of its logarithm
    sizes = np.clip([-score_of(values) for _, values in service.probes], 1e-3, 1e6)
    share = 4 * service.address.tolerance
    steps = [round(math.log(size) / share) for size in sizes.tolist()]
    return short_hash(json.dumps([service.address.model, service.version, steps, *facts]))


def check_unchanged(service: ScoringService) -> None:
    """Refuse a server whose model, or form of values, has changed since the probe.

    Raises:
        ServerFaultError: the first probes have other values.
        ModelError: the server cannot be reached.
    """
    rows, values = zip(*service.probes[:2], strict=True)
    for now, before in zip(service.echo(rows), values, strict=True):
        allowed = tolerance_in_nats(score_of(before), service.address.tolerance)
        difference = _difference(now, before)
        if difference > allowed:
            what = f"A probe differs by {difference:.4f} nats from what it had at first, where"
            service.refuse(CHANGED, f"{what} {allowed:.4f} is allowed. {ONE_MODEL}")


def tolerance_in_nats(score: float, tolerance: float) -> float:
    """The difference that a score may have, nats."""
    return max(LEAST_TOLERANCE, tolerance * abs(score))


def score_of(values: FloatArray) -> float:
    """The sum of a row's values, nats, the first token's aside."""
    return float(np.nansum(values))


def probe_server(service: ScoringService, tokenizer: Any, context: Tokens) -> None:
    """Try a server out, and keep with the service what it gave.

    Args:
        service: the server.
        tokenizer: a `transformers` tokenizer, by which sentences are cut.
        context: what is read before every sentence.

    Raises:
        ServerFaultError: the server has a fault; says which.
        ModelError: it cannot be reached, or refuses a request.
    """
    service.version, service.window = _facts(service)
    texts = [tuple(tokenizer(text, add_special_tokens=False)["input_ids"]) for text in _TEXTS]
    service.settle_fields(context + texts[0])
    rows = [context + ids for ids in texts]
    _check_texts(service, rows)
    # Probes that begin alike, longer than a block of what servers keep
    length = min(_LONG, (service.window or _LONG + 2) - 2 - len(context))
    many = (sum(texts, ()) * _LONG)[: length - 1]
    rows += [(*context, *many, ids[0]) for ids in texts[:2]]
    rows += [context + row for row in _uncommon_rows(tokenizer)]
    values = _check_stability(service, rows)
    _check_steps(service, values)
    special = frozenset(tokenizer.all_special_ids)
    sentence, of_sentence, begin = rows[len(texts) - 1], values[len(texts) - 1], len(context)
    _check_paths(service, [context, sentence[: begin + 3]], special)
    told = service.alternatives([sentence[:place] for place in range(begin, len(sentence))])
    _check_told(service, sentence, of_sentence, told)
    _check_unlikely(service, sentence[: begin + 1], told[1], special)
    _check_beginning(service, sentence, of_sentence)
    service.probes = list(zip(rows, values, strict=True))


def _facts(service: ScoringService) -> tuple[str, int | None]:
    """The version of the server and the model's window, where it tells them."""
    address, client = service.address, service.client
    try:
        listed: Any = client.get(f"{address.url}/models")
        models = {str(each["id"]): each for each in listed["data"]}
    except (LookupError, TypeError):  # it does not tell
        models = {}
    if models and address.model not in models:
        known = ", ".join(sorted(models)[:10])
        service.refuse("it has no model of that name", f"It has {known}. Write it after the '#'.")
    window = models.get(address.model, {}).get("max_model_len")
    told = (client.get(service.url(url)) for url in service.dialect.version_urls)
    versions = (
        facts["version"] for facts in told if isinstance(facts, dict) and "version" in facts
    )
    return str(next(versions, "")), window if isinstance(window, int) and window > 0 else None


def _uncommon_rows(tokenizer: Any) -> list[Tokens]:
    """A word letter by letter, which a server that cuts texts anew would cut otherwise."""
    letters = [tokenizer(sign, add_special_tokens=False)["input_ids"] for sign in "garden"]
    row = tuple(token for ids in letters for token in ids)
    again = tokenizer(tokenizer.decode(row), add_special_tokens=False)["input_ids"]
    return [row] if tuple(again) != row else []


def _check_texts(service: ScoringService, rows: Sequence[Tokens]) -> None:
    """The texts of the tokens, where told, are those of the sentences that they came from."""
    service.echo(rows)
    for text, told in zip(_TEXTS, service.texts, strict=True):
        expected, actual = _bare(text), _bare(told)
        # Some servers give the text that was generated and not the text that was sent
        if expected not in actual and 2 * len(actual) > len(expected):
            service.refuse(
                "its tokens stand for other texts than those of the tokenizer",
                f"{text!r} came back as {told[:80]!r}. Name the model's own: '?tokenizer='.",
            )


def _bare(text: str) -> str:
    """A text without what tokenizers do to spaces and capitals."""
    return "".join(sign for sign in text.casefold() if not (sign.isspace() or sign in "▁ġ"))


def _check_stability(service: ScoringService, rows: list[Tokens]) -> list[FloatArray]:
    """The values of rows, the same in two orders and in requests of two sizes."""
    backwards = rows[::-1]
    values = [service.echo([row])[0] for row in rows]
    others = [
        [service.echo([row])[0] for row in backwards][::-1],
        service.echo(rows, batch=len(rows)),
        service.echo(backwards, batch=len(rows))[::-1],
        # Several requests at once, each with rows that begin alike
        service.echo([*rows, *rows], batch=1)[len(rows) :],
    ]
    for other in others:
        for before, now in zip(values, other, strict=True):
            _check_share(
                service,
                "its values depend on the order or the number of requests",
                before,
                _difference(now, before),
                "Serve the model in float32, switch off prefix caching",
            )
    return values


def _check_steps(service: ScoringService, rows: Sequence[FloatArray]) -> None:
    """Scores cannot be off by more than the tolerance for want of digits."""
    steps = _steps(np.concatenate([row[1:] for row in rows]))
    ends = np.cumsum([len(row) - 1 for row in rows])
    for row, of_row in zip(rows, np.split(steps, ends[:-1]), strict=True):
        advice = f"Its steps are of up to {of_row.max():.4g} nats: have it write more digits"
        _check_share(service, "its values are rounded", row, float(of_row.sum()) / 2, advice)


def _steps(values: FloatArray) -> FloatArray:
    """Distances of values from those next to them that could be told, nats; 0 if not rounded.

    Decimals have one step; in half precision it doubles from each octave to the next.
    """
    for digits in range(4):
        if np.abs(values - values.round(digits)).max() < _ROUNDING:
            return np.full(len(values), 10.0**-digits)
    mantissas, octaves = np.frexp(values)
    for bits in _HALVES:
        if (np.ldexp(mantissas, bits) % 1 == 0).all():
            return np.asarray(np.ldexp(1.0, octaves - bits), np.float64)
    return np.zeros(len(values))


def _check_share(
    service: ScoringService, fault: str, row: FloatArray, difference: float, advice: str
) -> None:
    """Refuse a server whose scores may be off by more than the tolerance."""
    score, allowed = abs(score_of(row)), service.address.tolerance
    if difference > tolerance_in_nats(score, allowed):
        share = difference / max(score, LEAST_TOLERANCE)
        digit: float = 10.0 ** math.floor(math.log10(share))
        service.refuse(
            fault,
            f"A probe may be off by {share:.2g} of its score, where {allowed:g} is allowed. "
            f"{advice}, or, where that is small enough for the study, allow it with "
            f"'&tolerance={math.ceil(share / digit) * digit:g}' (0.05 at most).",
        )


def _check_paths(
    service: ScoringService, starts: Sequence[Tokens], special: frozenset[int]
) -> None:
    """Tokens that the server tells when it generates are echoed with the values it told.

    By turns the likeliest token and the least likely of those told, so that neighbours have unlike
    values.
    """
    paths = list(starts)
    told: list[list[dict[int, float]]] = [[] for _ in starts]  # before each token of a path
    for step in range(_STEPS):
        for number, likely in enumerate(service.alternatives(paths)):
            plain = sorted((v, token) for token, v in likely.items() if token not in special)
            if not plain:
                service.refuse(
                    "it tells too little when it generates for its values to be checked",
                    f"Asked for {service.cap} alternatives to a token, it told none that the "
                    f"tokenizer knows. Try another dialect ('&dialect=vllm' or sglang).",
                )
            paths[number] = (*paths[number], plain[-1 if step % 2 == 0 else 0][1])
            told[number].append(likely)
    for path, values, of_path in zip(paths, service.echo(paths), told, strict=True):
        _check_told(service, path, values, of_path)


def _check_told(
    service: ScoringService, row: Tokens, values: FloatArray, told: Sequence[dict[int, float]]
) -> None:
    """A row's last tokens have the values told when the server generates, or lower ones.

    Args:
        service: the server.
        row: the tokens.
        values: what was echoed of them.
        told: the alternatives before each of the last tokens; one that is not among them must be
            less likely than all.
    """
    allowed = tolerance_in_nats(score_of(values), service.address.tolerance)
    begin = len(row) - len(told)
    is_told = np.array([token in likely for token, likely in zip(row[begin:], told, strict=True)])
    expected = [
        likely.get(token, _least(likely)) for token, likely in zip(row[begin:], told, strict=True)
    ]
    off = np.maximum(values[begin:] - expected, np.where(is_told, -np.inf, 0.0))
    if np.abs(off).max() > allowed or abs(off[is_told].sum()) > allowed:
        place = int(np.abs(off).argmax())
        most = "" if is_told[place] else " at most"
        service.refuse(
            "its values are not the log-probabilities by which it generates",
            f"Token {begin + place + 1} of a probe was echoed with {values[begin + place]:.4f} "
            f"nats, and generated after the same tokens with {expected[place]:.4f}{most}.",
        )


def _check_unlikely(
    service: ScoringService, prefix: Tokens, told: dict[int, float], special: frozenset[int]
) -> None:
    """Tokens that are not told have values of their own, below those told, and not too many."""
    # Spread over as much of the vocabulary as is sure to be there
    spread = np.linspace(0, max(*prefix, *told), 3 * _UNLIKELY).astype(int).tolist()
    others = [t for t in dict.fromkeys(spread) if t not in {*told, *special}][:_UNLIKELY]
    if len(others) < 3:  # a vocabulary hardly larger than what is told
        return
    last = np.array([row[-1] for row in service.echo([(*prefix, token) for token in others])])
    total = float(np.exp([*told.values(), *last]).sum())
    allowed = tolerance_in_nats(score_of(last), service.address.tolerance)
    if np.ptp(last) < _SAME or (last > _least(told) + allowed).any() or total > _MOST:
        service.refuse(
            "its values of unlikely tokens are made up",
            f"It tells {len(told)} alternatives to a token, down to {_least(told):.4f} nats; "
            f"{len(last)} other tokens have {', '.join(f'{v:.4f}' for v in last[:4])}, …",
        )


def _least(alternatives: dict[int, float]) -> float:
    """The log-probability that tokens which are not among the likeliest cannot exceed, nats.

    The lowest that is told may be of the token that was drawn, which is told in any case.
    """
    return min(sorted(alternatives.values())[1:], default=0.0)


def _check_beginning(service: ScoringService, row: Tokens, values: FloatArray) -> None:
    """The first token is read: without it, later ones have other values."""
    try:
        (without,) = service.echo([row[1:]])
    except ServerFaultError:
        return  # it puts a beginning where there is none, and says so: ours always have one
    if np.abs(without[1:] - values[2:]).max() < _SAME:
        what = "All others have the same values without the token that begins a text."
        service.refuse(OTHER_TOKENS, what)


def _difference(values: FloatArray, others: FloatArray) -> float:
    """The largest difference between values of the same tokens or their sums, nats."""
    by_token = float(np.nanmax(np.abs(values - others), initial=0.0))
    return max(by_token, abs(score_of(values) - score_of(others)))
