"""Faulty servers are refused with the name of the fault, or used without a wrong score."""

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
from tests.models.server.fakes import MODEL, FakeServer, MakeFake, Network, Reply, Row, Values
from tests.models.tiny import TEXTS

SENTENCES = [Sentence.parse(text) for text in TEXTS]
DIALECTS = ("completions", "vllm", "sglang")


class ShiftedLeft(FakeServer):
    """Each token has the value of the next token; the last has that of a generated token."""

    def answers(self, values: Values, row: Row) -> tuple[Values, Row]:
        return [None, *values[2:], -1.0][: len(row)], row


class GeneratedOnly(FakeServer):
    """Reports no values of the tokens in the request (llama.cpp's server)."""

    def answers(self, values: Values, row: Row) -> tuple[Values, Row]:
        del values, row
        return [], []


class GeneratedForEchoed(FakeServer):
    """Reports as many values as tokens, but of generated tokens, which gives chance accuracy."""

    def answers(self, values: Values, row: Row) -> tuple[Values, Row]:
        del values
        largest = self.network(row).max(axis=1).tolist()
        return [None, *largest[: len(row) - 1]], row


class OrderDependent(FakeServer):
    """Reports values of other positions for blocks that it read before (prefix caching)."""

    block = 16

    def values(self, row: Row, log_probs: np.ndarray) -> Values:
        values = super().values(row, log_probs)
        seen = self.__dict__.setdefault("seen", set())
        begin = tuple(row[: self.block])
        if len(row) >= self.block and begin in seen:
            values[1 : self.block] = values[1 : self.block][::-1]
        seen.add(begin)
        return values


class SizeDependent(FakeServer):
    """Padding changes the values of all rows of a request except the first."""

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
    def replace_row(self, row: Row) -> Row:
        return [row[0], *row]


class BeginningTwiceHidden(BeginningTwice):
    """Only the reported number of tokens reveals the fault."""

    def answers(self, values: Values, row: Row) -> tuple[Values, Row]:
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
    """Does not read the first token, but fills the answer, so that nothing seems missing."""

    def replace_row(self, row: Row) -> Row:
        return row[1:] or row

    def answers(self, values: Values, row: Row) -> tuple[Values, Row]:
        return [None, None, *values[1:]][: len(row) + 1], [0, *row]


class Retokenising(FakeServer):
    """Decodes the tokens to a text and tokenizes it again."""

    def replace_row(self, row: Row) -> Row:
        return list(self.tokenizer(self.tokenizer.decode(row))["input_ids"])


class Truncating(FakeServer):
    def replace_row(self, row: Row) -> Row:
        return row[-10:]


class NotANumber(FakeServer):
    """Sometimes reports nan, as when half precision overflows."""

    value = float("nan")

    def values(self, row: Row, log_probs: np.ndarray) -> Values:
        values = super().values(row, log_probs)
        if self.is_probed and len(row) > 12:
            values[3] = self.value
        return values


class Infinite(NotANumber):
    """Sometimes reports that a token is impossible."""

    value = -float("inf")


class Probabilities(FakeServer):
    def values(self, row: Row, log_probs: np.ndarray) -> Values:
        return [None if v is None else float(np.exp(v)) for v in super().values(row, log_probs)]


class NothingBeyondTwenty(FakeServer):
    """Reports no values of tokens outside the twenty likeliest."""

    def values(self, row: Row, log_probs: np.ndarray) -> Values:
        values = super().values(row, log_probs)
        for position in range(1, len(row)):
            smallest = float(np.sort(log_probs[position - 1])[-self.cap])
            value = values[position]
            if value is not None and value < smallest:
                values[position] = self.replace_value(smallest)
        return values

    def replace_value(self, smallest: float) -> float | None:
        del smallest
        return None


class TwentiethBeyondTwenty(NothingBeyondTwenty):
    def replace_value(self, smallest: float) -> float | None:
        return smallest


class Rounded(FakeServer):
    """Rounds values to one decimal."""

    def read_row(self, row: Row) -> tuple[Values, Row, np.ndarray, int]:
        exact = self.network
        try:
            self.network = lambda row: exact(row).round(1)
            return super().read_row(row)
        finally:
            self.network = exact


class Silent(FakeServer):
    """Reports no alternatives of generated tokens, so that nothing can be compared."""

    def select_likeliest(self, following: np.ndarray, n: int, sampled: int) -> dict[int, float]:
        del following, n, sampled
        return {}


class Tempered(FakeServer):
    """Generates with a temperature, but echoes without a temperature."""

    def next_values(self, log_probs: np.ndarray) -> np.ndarray:
        warm: np.ndarray = log_probs[-1] / 0.7
        return np.asarray(warm - np.log(np.exp(warm).sum()))


class Incomplete(FakeServer):
    """Omits one part of an answer with several parts."""

    def replace_reply(self, reply: Reply) -> Reply:
        parts = reply.body if isinstance(reply.body, list) else reply.body.get("choices", [])
        if len(parts) > 1:
            del parts[-1]
        return reply


class Renamed(FakeServer):
    """Reports another name of the model after the probes."""

    def replace_reply(self, reply: Reply) -> Reply:
        if self.is_probed:
            if isinstance(reply.body, list):
                for part in reply.body:
                    part["meta_info"]["weight_version"] = "7"
            else:
                reply.body["model"] = "another"
        return reply


OTHER_TOKENS = "it reads other tokens than those sent"
NO_LOG_PROB = "it gives a token no value, or a value that cannot be a log-probability"
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


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make pauses a hundred times shorter."""
    monkeypatch.setattr(client, "_FIRST_PAUSE", 0.005)
    monkeypatch.setattr(client, "_MAX_PAUSE", 0.05)


def score_served(fake: FakeServer, url: str, options: str = "", patience: float = 3) -> np.ndarray:
    address = parse_address(f"{url}#{MODEL}?patience={patience}{options}")
    served = ServerModel(address, fake.tokenizer)
    fake.is_probed = True
    return served.log_probs(SENTENCES)


def score_locally(fake: FakeServer, sentences: list[Sentence]) -> list[float]:
    """Witness: sums computed by the network itself."""
    network: Any = fake.network
    rows = fake.tokenizer([sentence.text for sentence in sentences])["input_ids"]
    return [network.score([fake.tokenizer.bos_token_id, *row], 1) for row in rows]


TOKEN_FAULTS = [kind for kind in REFUSED if kind.__name__.startswith(("Beg", "Ret", "Tru", "Gen"))]
"""Faults that tokens reveal, and that must be found without tokens as well."""

DIALECT_FAULTS = (
    *(SizeDependent, BeginningTwiceHidden, Retokenising, NotANumber, NothingBeyondTwenty),
    *(Tempered, Silent, Incomplete, Renamed),
)
"""Faults that look different in each dialect."""

CASES = [
    *((kind, "completions", True) for kind in REFUSED),
    *((kind, "completions", False) for kind in TOKEN_FAULTS),
    *((kind, dialect, True) for kind in DIALECT_FAULTS for dialect in ("vllm", "sglang")),
]


@pytest.mark.parametrize(
    ("faulty", "dialect", "returns_ids"),
    CASES,
    ids=[f"{kind.__name__}-{dialect}{'' if ids else '-texts'}" for kind, dialect, ids in CASES],
)
def test_faulty_server_is_refused_by_name(
    faulty: type[FakeServer], dialect: str, returns_ids: bool, make_fake: MakeFake
) -> None:
    fake = make_fake(faulty, returns_ids=returns_ids)
    with fake.in_process() as url, pytest.raises(ServerFaultError) as error:
        score_served(fake, url, f"&dialect={dialect}")
    assert any(f"cannot be used: {fault}" in str(error.value) for fault in REFUSED[faulty])


# Temporary faults are survived: all scores equal those of the local network


class Burst(FakeServer):
    """Refuses one request in three with a temporary status."""

    def replace_reply(self, reply: Reply) -> Reply:
        n = len(self.requests)
        if n % 3 == 0:
            status = (429, 500, 503)[n % 9 // 3]
            return Reply({"error": "later"}, status, {"Retry-After": "0"} if n % 2 else {})
        return reply


class CutOff(FakeServer):
    """Breaks off one answer in four."""

    def replace_reply(self, reply: Reply) -> Reply:
        return replace(reply, cut=len(self.requests) % 4 == 0)


class ForgetsOnce(Incomplete):
    """Omits a part of one answer in five."""

    def replace_reply(self, reply: Reply) -> Reply:
        return super().replace_reply(reply) if len(self.requests) % 5 == 0 else reply


class Slow(FakeServer):
    """Sometimes exceeds the time limit."""

    def replace_reply(self, reply: Reply) -> Reply:
        return replace(reply, pause=0.7 if self.is_probed and self.rng.random() < 0.3 else 0.0)


class FewAlternatives(FakeServer):
    """Reports at most five alternatives, which is no fault."""

    cap = 5


class Strict(FakeServer):
    """Refuses unknown fields, which is no fault."""

    def completions(self, body: Any) -> Reply:
        if "return_tokens_as_token_ids" in body:
            return Reply({"error": "unrecognised field"}, 400)
        return super().completions(body)


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
def test_temporary_faults_do_not_change_scores(
    faulty: type[FakeServer], dialect: str, make_fake: MakeFake
) -> None:
    fake = make_fake(faulty)
    with fake.running() if faulty in {Burst, CutOff, Slow} else fake.in_process() as url:
        served = score_served(fake, url, f"&dialect={dialect}&batch=5&timeout=0.5")
    local_scores = score_locally(fake, SENTENCES)
    np.testing.assert_allclose(served, local_scores, rtol=0, atol=1e-4)


def test_permanently_slow_server_is_refused(make_fake: MakeFake) -> None:
    class Asleep(FakeServer):
        def replace_reply(self, reply: Reply) -> Reply:
            return replace(reply, pause=0.3 if self.is_probed else 0.0)

    fake = make_fake(Asleep)
    with fake.running() as url, pytest.raises(ModelError, match=r"took more than 0\.2 seconds"):
        score_served(fake, url, "&timeout=0.2", patience=0.5)


def test_unreachable_server_is_reported() -> None:
    with FakeServer(lambda row: np.zeros((len(row), 2)), None).running() as url:
        pass  # the port is free again
    address = parse_address(f"{url}#{MODEL}?patience=0.2")
    with pytest.raises(ModelError, match="Run the command again when the server works"):
        client.Client(address).get(f"{url}/models")


# A restart during the work


def make_other_network(network: Network) -> Network:
    """Return another model that is similar to a network."""

    def compute_log_probs(row: Row) -> np.ndarray:
        warm = network(row) / 1.5
        return np.asarray(warm - np.log(np.exp(warm).sum(axis=1, keepdims=True)))

    return compute_log_probs


@pytest.mark.parametrize("dialect", DIALECTS)
def test_after_a_restart_only_the_same_model_is_accepted(dialect: str, make_fake: MakeFake) -> None:
    fake = make_fake()
    options = f"tokenizer={fake.location}&dialect={dialect}&patience=5"
    with fake.running() as url:
        served = load_server(f"{url}#{MODEL}?{options}", name="served")
        first = served.log_probs(SENTENCES[:5])
    port = int(url.rpartition(":")[2].partition("/")[0])
    with fake.running(port):
        second = served.log_probs(SENTENCES[5:10])
    local_scores = score_locally(fake, SENTENCES[:10])
    np.testing.assert_allclose([*first, *second], local_scores, rtol=0, atol=1e-4)
    fake.network = make_other_network(fake.network)
    with fake.running(port), pytest.raises(ServerFaultError) as error:
        served.log_probs(SENTENCES[10:])
    assert CHANGED in str(error.value)


CHANGES: dict[str, Callable[[np.ndarray, np.random.Generator], np.ndarray]] = {
    "in base 2": lambda values, _: values / np.log(2),
    "shifted": lambda values, _: np.roll(values, -1),
    "noisy": lambda values, rng: values - rng.exponential(0.5, len(values)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changed_values_on_an_open_connection_are_refused(
    change: str, make_fake: MakeFake, tmp_path: Path
) -> None:
    """Values of one sentence change directly after the probes; no value is stored."""

    class Changed(FakeServer):
        def values(self, row: Row, log_probs: np.ndarray) -> Values:
            values = super().values(row, log_probs)
            if self.is_probed:
                exact = np.array(values[1:], np.float64)
                values[1:] = CHANGES[change](exact, self.rng).tolist()
            return values

    fake = make_fake(Changed)
    with fake.in_process() as url:
        served = load_server(f"{url}#{MODEL}?tokenizer={fake.location}", name="served")
        served.log_probs(SENTENCES[:1])
        fake.is_probed = True
        for score in (served.log_probs, served.token_log_probs):
            with pytest.raises(ServerFaultError) as error:
                score(SENTENCES[:1])
            assert CHANGED in str(error.value)
        with Store(tmp_path / "store.sqlite") as store:
            with pytest.raises(ServerFaultError):
                score_sentences([served], SENTENCES, store=store)
            stored = store.log_probs(served.convention.fingerprint, [s.text for s in SENTENCES])
            assert np.isnan(stored).all()


def test_rounding_within_the_tolerance_is_accepted(make_fake: MakeFake) -> None:
    """Witness: the network in this process; the error names a sufficient tolerance."""
    fake = make_fake(Rounded)
    with fake.in_process() as url:
        with pytest.raises(ServerFaultError, match=r"steps of up to 0\.1 nats") as error:
            score_served(fake, url)
        (sufficient,) = re.findall(r"the option tolerance=([0-9.]+)", str(error.value))
        served = score_served(fake, url, f"&tolerance={sufficient}")
    local_scores = score_locally(fake, SENTENCES)
    np.testing.assert_allclose(served, local_scores, rtol=float(sufficient))


def test_fingerprint_depends_on_the_model_not_the_address(make_fake: MakeFake) -> None:
    fake = make_fake()
    fingerprints = []
    for host, change in (("a", ""), ("b", ""), ("a", "network"), ("a", "version")):
        if change == "network":
            fake.network = make_other_network(fake.network)
        if change == "version":
            fake.version = "10.0"
        with fake.in_process(host) as url:
            location = f"{url}#{MODEL}?tokenizer={fake.location}"
            fingerprints.append(load_server(location, name="served").convention.fingerprint)
    assert fingerprints[0] == fingerprints[1]  # the same model at another address
    assert len(set(fingerprints)) == 3


def test_wrong_tokenizer_or_model_name_is_refused(
    make_fake: MakeFake, tiny_checkpoint: Callable[[str], Any]
) -> None:
    fake = make_fake()
    with fake.running() as url:
        for dialect in DIALECTS:
            wrong_tokenizer = f"tokenizer={tiny_checkpoint('spaced')}&patience=3&dialect={dialect}"
            with pytest.raises(ServerFaultError) as error:
                load_server(f"{url}#{MODEL}?{wrong_tokenizer}", name="served")
            assert "it and the tokenizer decode tokens to different texts" in str(error.value)
        with pytest.raises(ServerFaultError, match=f"Its models are {MODEL}"):
            load_server(f"{url}#gpt5?tokenizer={fake.location}", name="served")
