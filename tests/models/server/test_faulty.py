"""Faulty servers: refused by the names of their faults, or survived without a wrong score."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contstim.errors import ModelError
from contstim.models.scoring import score_sentences
from contstim.models.server import client
from contstim.models.server.address import parse_address
from contstim.models.server.client import ServerFaultError
from contstim.models.server.model import ServerModel, load_server
from contstim.store import Store
from contstim.words.sentence import Sentence
from tests.models.server.fakes import MODEL, FakeOf, FakeServer, Network, Reply, Row
from tests.models.tiny import TEXTS

SENTENCES = [Sentence.parse(text) for text in TEXTS]
DIALECTS = ("completions", "vllm", "sglang")


class ShiftedLeft(FakeServer):
    """Each token has the value of the token after it, the last that of a generated one."""

    def answers(self, values: list[float | None], row: Row) -> tuple[list[float | None], Row]:
        return [None, *values[2:], -1.0][: len(row)], row


class GeneratedOnly(FakeServer):
    """Nothing is said of the tokens that were sent (llama.cpp's server)."""

    def answers(self, values: list[float | None], row: Row) -> tuple[list[float | None], Row]:
        del values, row
        return [], []


class GeneratedForEchoed(FakeServer):
    """As many values as tokens, all of tokens that were generated: chance-level accuracies."""

    def answers(self, values: list[float | None], row: Row) -> tuple[list[float | None], Row]:
        del values
        likeliest = self.network(row).max(axis=1).tolist()
        return [None, *likeliest[: len(row) - 1]], row


class OrderDependent(FakeServer):
    """Of blocks that were read before, the values are those of another place (prefix caching)."""

    block = 16

    def values(self, row: Row, log_probs: np.ndarray) -> list[float | None]:
        values = super().values(row, log_probs)
        seen = self.__dict__.setdefault("seen", set())
        begin = tuple(row[: self.block])
        if len(row) >= self.block and begin in seen:
            values[1 : self.block] = values[1 : self.block][::-1]
        seen.add(begin)
        return values


class SizeDependent(FakeServer):
    """All rows of a request but the first are off by the padding that they were read with."""

    def completions(self, body: Any) -> Reply:
        return self._spoil(super().completions(body), "choices")

    def generate(self, body: Any) -> Reply:
        reply = super().generate(body)
        return Reply(self._spoil(Reply({"parts": reply.body}), "parts").body["parts"])

    def _spoil(self, reply: Reply, parts: str) -> Reply:
        for part in reply.body[parts][1:]:
            if "logprobs" in part:
                part["logprobs"]["token_logprobs"][1] = -5.0
            for entry in part.get("prompt_logprobs", [])[1:2]:
                next(iter(entry.values()))["logprob"] = -5.0
            if "meta_info" in part:
                part["meta_info"]["input_token_logprobs"][1][0] = -5.0
        return reply


class BeginningTwice(FakeServer):
    def reads(self, row: Row) -> Row:
        return [row[0], *row]


class BeginningTwiceHidden(BeginningTwice):
    """Nothing betrays it but the number of tokens that it says it has read."""

    def answers(self, values: list[float | None], row: Row) -> tuple[list[float | None], Row]:
        return [None, *values[2:]][: len(row) - 1], row[1:]

    def completions(self, body: Any) -> Reply:
        reply = super().completions(body)
        if "usage" in reply.body:
            reply.body["usage"]["prompt_tokens"] += len(body["prompt"])
        return reply

    def generate(self, body: Any) -> Reply:
        reply = super().generate(body)
        for part in reply.body:
            part["meta_info"]["prompt_tokens"] += 1
        return reply


class BeginningNever(FakeServer):
    """The first token is not read; the answer is filled up so that nothing seems to lack."""

    def reads(self, row: Row) -> Row:
        return row[1:] or row

    def answers(self, values: list[float | None], row: Row) -> tuple[list[float | None], Row]:
        return [None, None, *values[1:]][: len(row) + 1], [0, *row]


class Retokenising(FakeServer):
    """Writes the tokens as a text and cuts it anew."""

    def reads(self, row: Row) -> Row:
        return list(self.tokenizer(self.tokenizer.decode(row))["input_ids"])


class Truncating(FakeServer):
    def reads(self, row: Row) -> Row:
        return row[-10:]


class NotANumber(FakeServer):
    """Now and then, as half precision overflows."""

    value = float("nan")

    def values(self, row: Row, log_probs: np.ndarray) -> list[float | None]:
        values = super().values(row, log_probs)
        if self.is_tired and len(row) > 12:
            values[3] = self.value
        return values


class Infinite(NotANumber):
    """Now and then a token is impossible."""

    value = -float("inf")


class Probabilities(FakeServer):
    def values(self, row: Row, log_probs: np.ndarray) -> list[float | None]:
        return [None if v is None else float(np.exp(v)) for v in super().values(row, log_probs)]


class NothingBeyondTwenty(FakeServer):
    """Of tokens that are not among the twenty likeliest, nothing is said."""

    def values(self, row: Row, log_probs: np.ndarray) -> list[float | None]:
        values = super().values(row, log_probs)
        for place in range(1, len(row)):
            least = float(np.sort(log_probs[place - 1])[-self.cap])
            value = values[place]
            if value is not None and value < least:
                values[place] = self.instead(least)
        return values

    def instead(self, least: float) -> float | None:
        del least
        return None


class TwentiethBeyondTwenty(NothingBeyondTwenty):
    def instead(self, least: float) -> float | None:
        return least


class Rounded(FakeServer):
    """Writes one decimal."""

    def read(self, row: Row) -> tuple[list[float | None], Row, np.ndarray, int]:
        exact = self.network
        try:
            self.network = lambda row: exact(row).round(1)
            return super().read(row)
        finally:
            self.network = exact


class Silent(FakeServer):
    """Tells no alternatives when it generates, so that nothing can be compared."""

    def likeliest(self, following: np.ndarray, n: int, drawn: int) -> dict[int, float]:
        del following, n, drawn
        return {}


class Tempered(FakeServer):
    """Generates at a temperature, and echoes without."""

    def next_values(self, log_probs: np.ndarray) -> np.ndarray:
        warm: np.ndarray = log_probs[-1] / 0.7
        return np.asarray(warm - np.log(np.exp(warm).sum()))


class Incomplete(FakeServer):
    """One part of an answer is missing, whenever there are several."""

    def replies(self, reply: Reply) -> Reply:
        parts = reply.body if isinstance(reply.body, list) else reply.body.get("choices", [])
        if len(parts) > 1:
            del parts[-1]
        return reply


class Renamed(FakeServer):
    """Its answers call the model otherwise after a while."""

    def replies(self, reply: Reply) -> Reply:
        if self.is_tired:
            if isinstance(reply.body, list):
                for part in reply.body:
                    part["meta_info"]["weight_version"] = "7"
            else:
                reply.body["model"] = "another"
        return reply


OTHER_TOKENS = "it reads other tokens than those sent"
NO_LOG_PROB = "it gives a token no value, or one that cannot be a log-probability"
OTHER_VALUES = "its values are not the log-probabilities that it uses to generate"
UNSTABLE = "its values depend on the order or the number of requests"
INVENTED = "its values of unlikely tokens are made up"
ROUNDED = "its values are rounded"
UNTESTABLE = "its generated answers contain too few values"
INCOMPLETE = "its answer is incomplete"
CHANGED = "the model at the address, or its answers, have changed"

REFUSED: dict[type[FakeServer], set[str]] = {
    ShiftedLeft: {OTHER_VALUES},
    GeneratedOnly: {OTHER_TOKENS},
    GeneratedForEchoed: {OTHER_VALUES},
    OrderDependent: {UNSTABLE},
    SizeDependent: {UNSTABLE},
    BeginningTwice: {OTHER_TOKENS},
    BeginningTwiceHidden: {OTHER_TOKENS},
    BeginningNever: {NO_LOG_PROB},
    Retokenising: {OTHER_TOKENS},
    Truncating: {OTHER_TOKENS},
    NotANumber: {NO_LOG_PROB},
    Probabilities: {NO_LOG_PROB},
    NothingBeyondTwenty: {NO_LOG_PROB},
    TwentiethBeyondTwenty: {INVENTED, OTHER_VALUES},
    Infinite: {NO_LOG_PROB},
    Rounded: {ROUNDED},
    Tempered: {OTHER_VALUES, INVENTED},
    Silent: {UNTESTABLE},
    Incomplete: {INCOMPLETE},
    Renamed: {CHANGED},
}


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses a hundredth as long."""
    monkeypatch.setattr(client, "_FIRST_PAUSE", 0.005)
    monkeypatch.setattr(client, "_MAX_PAUSE", 0.05)


def scores(fake: FakeServer, url: str, options: str = "", patience: float = 3.0) -> np.ndarray:
    address = parse_address(f"{url}#{MODEL}?patience={patience}{options}")
    served = ServerModel(address, fake.tokenizer)
    fake.is_tired = True
    return served.log_probs(SENTENCES)


def expected(fake: FakeServer, sentences: list[Sentence]) -> list[float]:
    """Witness: the network's own sums."""
    network: Any = fake.network
    rows = fake.tokenizer([sentence.text for sentence in sentences])["input_ids"]
    return [network.score([fake.tokenizer.bos_token_id, *row], 1) for row in rows]


OF_TOKENS = [kind for kind in REFUSED if kind.__name__.startswith(("Beg", "Ret", "Tru", "Gen"))]
"""Faults that are told by the tokens, and must be seen without them too."""

OF_FORMS = (
    SizeDependent,
    BeginningTwiceHidden,
    Retokenising,
    NotANumber,
    NothingBeyondTwenty,
    Tempered,
    Silent,
    Incomplete,
    Renamed,
)
"""Faults that each dialect tells in its own form."""

CASES = [
    *((kind, "completions", True) for kind in REFUSED),
    *((kind, "completions", False) for kind in OF_TOKENS),
    *((kind, dialect, True) for kind in OF_FORMS for dialect in ("vllm", "sglang")),
]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("faulty", "dialect", "tells_ids"),
    CASES,
    ids=[f"{kind.__name__}-{dialect}{'' if ids else '-texts'}" for kind, dialect, ids in CASES],
)
def test_a_faulty_server_is_refused_by_name(
    faulty: type[FakeServer], dialect: str, tells_ids: bool, fake_of: FakeOf
) -> None:
    fake = fake_of(faulty, tells_ids=tells_ids)
    with fake.at_hand() as url, pytest.raises(ServerFaultError) as caught:
        scores(fake, url, f"&dialect={dialect}")
    assert any(f"cannot be used: {fault}" in str(caught.value) for fault in REFUSED[faulty])


# What passes is survived: the scores are those of the local network, each of them


class Burst(FakeServer):
    """Refuses one request in three, with a status that passes."""

    def replies(self, reply: Reply) -> Reply:
        n = len(self.requests)
        if n % 3 == 0:
            status = (429, 500, 503)[n % 9 // 3]
            return Reply({"error": "later"}, status, {"Retry-After": "0"} if n % 2 else {})
        return reply


class CutOff(FakeServer):
    """Breaks off in the middle of one answer in four."""

    def replies(self, reply: Reply) -> Reply:
        return replace(reply, cut=len(self.requests) % 4 == 0)


class ForgetsOnce(Incomplete):
    """Lacks a part of one answer in five."""

    def replies(self, reply: Reply) -> Reply:
        return super().replies(reply) if len(self.requests) % 5 == 0 else reply


class Slow(FakeServer):
    """Takes longer than is allowed, for a while."""

    def replies(self, reply: Reply) -> Reply:
        return replace(reply, pause=0.7 if self.is_tired and self.rng.random() < 0.3 else 0.0)


class FewAlternatives(FakeServer):
    """Tells five alternatives and refuses to tell more: no fault."""

    cap = 5


class Strict(FakeServer):
    """Refuses fields that it does not know: no fault either."""

    def completions(self, body: Any) -> Reply:
        if "return_tokens_as_token_ids" in body:
            return Reply({"error": "unrecognised field"}, 400)
        return super().completions(body)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("faulty", "dialect"),
    [
        (FakeServer, "completions&max_tokens=0"),
        *((kind, "completions") for kind in (FakeServer, Burst, CutOff, Slow)),
        *((kind, "completions") for kind in (ForgetsOnce, FewAlternatives, Strict)),
        *((kind, "vllm") for kind in (FakeServer, ForgetsOnce, Strict)),
        *((kind, "sglang") for kind in (FakeServer, ForgetsOnce, FewAlternatives)),
    ],
)
def test_what_passes_is_survived_without_a_wrong_score(
    faulty: type[FakeServer], dialect: str, fake_of: FakeOf
) -> None:
    fake = fake_of(faulty)
    with fake.running() if faulty in {Burst, CutOff, Slow} else fake.at_hand() as url:
        served = scores(fake, url, f"&dialect={dialect}&batch=5&timeout=0.5")
    own = expected(fake, SENTENCES)
    np.testing.assert_allclose(served, own, rtol=0, atol=1e-4)


@pytest.mark.usefixtures("quick")
def test_a_server_that_stays_slow_is_given_up(fake_of: FakeOf) -> None:
    class Asleep(FakeServer):
        def replies(self, reply: Reply) -> Reply:
            return replace(reply, pause=0.3 if self.is_tired else 0.0)

    fake = fake_of(Asleep)
    with fake.running() as url, pytest.raises(ModelError, match=r"took more than 0\.2 seconds"):
        scores(fake, url, "&timeout=0.2", patience=0.5)


@pytest.mark.usefixtures("quick")
def test_nobody_there_is_said_at_once() -> None:
    with FakeServer(lambda row: np.zeros((len(row), 2)), None).running() as url:
        pass  # the port is free again
    address = parse_address(f"{url}#{MODEL}?patience=0.2")
    with pytest.raises(ModelError, match="Run the command again when the server works"):
        client.Client(address).get(f"{url}/models")


# A restart in the middle of the work


def other_network(network: Network) -> Network:
    """The like of it: near in kind, another model."""

    def read(row: Row) -> np.ndarray:
        warm = network(row) / 1.5
        return np.asarray(warm - np.log(np.exp(warm).sum(axis=1, keepdims=True)))

    return read


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_after_a_restart_only_the_same_model_is_accepted(dialect: str, fake_of: FakeOf) -> None:
    fake = fake_of()
    options = f"tokenizer={fake.location}&dialect={dialect}&patience=5"
    with fake.running() as url:
        served = load_server(f"{url}#{MODEL}?{options}", name="served")
        first = served.log_probs(SENTENCES[:5])
    port = int(url.rpartition(":")[2].partition("/")[0])
    with fake.running(port):
        second = served.log_probs(SENTENCES[5:10])
    own = expected(fake, SENTENCES[:10])
    np.testing.assert_allclose([*first, *second], own, rtol=0, atol=1e-4)
    fake.network = other_network(fake.network)
    with fake.running(port), pytest.raises(ServerFaultError) as caught:
        served.log_probs(SENTENCES[10:])
    assert CHANGED in str(caught.value)


CHANGES: dict[str, Callable[[np.ndarray, np.random.Generator], np.ndarray]] = {
    "in base 2": lambda values, _: values / np.log(2),
    "shifted": lambda values, _: np.roll(values, -1),
    "noisy": lambda values, rng: values - rng.exponential(0.5, len(values)),
}


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("change", CHANGES)
def test_values_that_change_behind_a_connection_that_was_kept_are_not_given_out(
    change: str, fake_of: FakeOf, tmp_path: Path
) -> None:
    """One sentence, a moment after the probes; and none is stored."""

    class Changed(FakeServer):
        def values(self, row: Row, log_probs: np.ndarray) -> list[float | None]:
            values = super().values(row, log_probs)
            if self.is_tired:
                exact = np.array(values[1:], np.float64)
                values[1:] = CHANGES[change](exact, self.rng).tolist()
            return values

    fake = fake_of(Changed)
    with fake.at_hand() as url:
        served = load_server(f"{url}#{MODEL}?tokenizer={fake.location}", name="served")
        served.log_probs(SENTENCES[:1])
        fake.is_tired = True
        for score in (served.log_probs, served.token_log_probs):
            with pytest.raises(ServerFaultError) as caught:
                score(SENTENCES[:1])
            assert CHANGED in str(caught.value)
        with Store(tmp_path / "store.sqlite") as store:
            with pytest.raises(ServerFaultError):
                score_sentences([served], SENTENCES, store=store)
            kept = store.log_probs(served.convention.fingerprint, [s.text for s in SENTENCES])
            assert np.isnan(kept).all()


@pytest.mark.usefixtures("quick")
def test_what_is_as_coarse_as_the_tolerance_says_is_taken(fake_of: FakeOf) -> None:
    """Witness: the network in this process; the message says which tolerance is enough."""
    fake = fake_of(Rounded)
    with fake.at_hand() as url:
        with pytest.raises(ServerFaultError, match=r"steps of up to 0\.1 nats") as caught:
            scores(fake, url)
        (told,) = re.findall(r"the option tolerance=([0-9.]+)", str(caught.value))
        served = scores(fake, url, f"&tolerance={told}")
    own = expected(fake, SENTENCES)
    np.testing.assert_allclose(served, own, rtol=float(told))


def test_another_model_behind_the_address_has_another_fingerprint(fake_of: FakeOf) -> None:
    fake = fake_of()
    fingerprints = []
    for host, change in (("a", ""), ("b", ""), ("a", "network"), ("a", "version")):
        if change == "network":
            fake.network = other_network(fake.network)
        if change == "version":
            fake.version = "10.0"
        with fake.at_hand(host) as url:
            location = f"{url}#{MODEL}?tokenizer={fake.location}"
            fingerprints.append(load_server(location, name="served").convention.fingerprint)
    assert fingerprints[0] == fingerprints[1]  # at another address: it is the same model
    assert len(set(fingerprints)) == 3


def test_a_foreign_tokenizer_and_a_wrong_name_are_refused(
    fake_of: FakeOf, tiny_checkpoint: Callable[[str], Any]
) -> None:
    fake = fake_of()
    with fake.running() as url:
        for dialect in DIALECTS:
            foreign = f"tokenizer={tiny_checkpoint('spaced')}&patience=3&dialect={dialect}"
            with pytest.raises(ServerFaultError) as caught:
                load_server(f"{url}#{MODEL}?{foreign}", name="served")
            assert "its tokens represent other texts" in str(caught.value)
        with pytest.raises(
            ServerFaultError, match=f"no model of this name. Its models are {MODEL}"
        ):
            load_server(f"{url}#gpt5?tokenizer={fake.location}", name="served")
