"""Addresses of servers, and keys, which occur only in the environment."""

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from contstim.errors import ModelError
from contstim.models.catalog import check_model, load_model, load_scorer
from contstim.models.loading import Loading
from contstim.models.server.address import (
    KEY_VARIABLE,
    ServerAddress,
    host_variable,
    key_of,
    parse_address,
)
from contstim.models.specifications import parse_model
from contstim.steps.scoring import ScoreSentences
from contstim.words.sentence import Sentence
from tests.models.server.fakes import MODEL, FakeServer, MakeFake

SECRET = "sk-Not.For/Anybody_77"


def test_all_parts_of_an_address_are_read() -> None:
    address = parse_address(
        "https://host:8000/v1/#org/model?tokenizer=a%2Bb&dialect=vllm&batch=3&timeout=2.5"
        "&concurrency=4&tolerance=0.01&window=512&max_tokens=0&draft=hf:x%40chain&patience=9"
    )
    assert address == ServerAddress(
        url="https://host:8000/v1",
        model="org/model",
        tokenizer="a+b",
        dialect="vllm",
        concurrency=4,
        batch=3,
        timeout=2.5,
        patience=9.0,
        tolerance=0.01,
        window=512,
        max_tokens=0,
        draft="hf:x@chain",
    )
    assert address.root == "https://host:8000"


NO_ADDRESSES = (
    *("host:8000/v1#m", "ftp://host/v1#m", "http://host:port/v1#m", "http:///v1#m"),
    *("http://[::1#m", "http://a..b/v1#m", "http://host/v 1#m"),
    "http://host/v\N{LATIN SMALL LETTER E WITH ACUTE}1#m",
)


@pytest.mark.parametrize(
    ("location", "message"),
    [
        *((location, "not the address of a server") for location in NO_ADDRESSES),
        ("http://host/v1", "must be followed by a model's name"),
        ("http://host/v1#m?colour=red", "option .* got 'colour'"),
        ("http://host/v1#m?batch=0", "'batch'.* must be greater than or equal to 1"),
        ("http://host/v1#m?batch=2&batch=3", "'batch'.* occur only once"),
        ("http://host/v1#m?batch", "'batch'.* must be a valid integer"),
        ("http://host/v1#m?timeout=nan", "'timeout'.* must be less than inf"),
        ("http://host/v1#m?tolerance=0.5", "'tolerance'.* must be less than or equal to 0.05"),
        ("http://host/v1#m?dialect=morse", "'dialect'.* must be 'completions', 'vllm' or 'sglang'"),
        ("http://host/v1#m?tokenizer=", "'tokenizer'.* must have at least 1 character"),
        ("http://host/v1#m?max_tokens=2", "'max_tokens'.* must be less than or equal to 1"),
    ],
)
def test_invalid_addresses_are_refused(location: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        check_model(parse_model(f"server:{location}"))


@pytest.mark.parametrize(
    "location",
    [
        f"http://me:{SECRET}@host/v1#m",
        f"http://host/v1?key={SECRET}#m",
        f"http://host/v1#m?api_key={SECRET}",
        f"http://host/v1#m?key={SECRET}",
    ],
)
def test_key_in_an_address_is_refused_and_not_printed(location: str) -> None:
    with pytest.raises(ModelError, match=KEY_VARIABLE) as error:
        check_model(parse_model(f"server:{location}"))
    assert SECRET not in str(error.value)


def test_key_of_a_server_overrides_the_general_key(monkeypatch: pytest.MonkeyPatch) -> None:
    address = parse_address("http://api.example.com:8000/v1#m")
    assert host_variable(address) == "CONTSTIM_SERVER_KEY_API_EXAMPLE_COM_8000"
    assert key_of(address) is None
    monkeypatch.setenv(KEY_VARIABLE, "for all")
    assert key_of(address) == "for all"
    monkeypatch.setenv(host_variable(address), "for this")
    assert key_of(address) == "for this"


@pytest.fixture
def log_text() -> Iterator[io.StringIO]:
    """Log messages of all libraries and levels."""
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    root = logging.getLogger()
    named = [x for x in root.manager.loggerDict.values() if isinstance(x, logging.Logger)]
    loggers = [root, *(logger for logger in named if not logger.propagate)]
    for logger in loggers:
        logger.addHandler(handler)
    level = root.level
    root.setLevel(logging.DEBUG)
    yield text
    root.setLevel(level)
    for logger in loggers:
        logger.removeHandler(handler)


def test_key_opens_the_server_and_is_never_written(
    make_fake: MakeFake,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    log_text: io.StringIO,
) -> None:
    sentences = tmp_path / "sentences.txt"
    sentences.write_text("She sleeps.\nWe go home.\n", encoding="utf-8")
    fake = make_fake(FakeServer, key=SECRET)
    with fake.running() as url:
        specification = f"tiny=server:{url}#{MODEL}?tokenizer={fake.location}"
        for key in (None, f"wrong {SECRET}"):
            if key is not None:
                monkeypatch.setenv(KEY_VARIABLE, key)
            with pytest.raises(ModelError, match=f"needs a key.*{KEY_VARIABLE}") as error:
                load_model(specification)
            assert SECRET not in repr(error.getrepr(showlocals=False))
        monkeypatch.setenv(KEY_VARIABLE, SECRET)
        out = tmp_path / "scores.csv"
        ScoreSentences(models=(specification,), sentences=sentences, out=out).run()
        assert SECRET not in repr(vars(load_model(specification)))
    output_files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.name for path in output_files} > {"scores.csv", "contstim.sqlite"}
    for path in output_files:
        assert SECRET.encode() not in path.read_bytes()
    assert SECRET not in "".join(capfd.readouterr()) + log_text.getvalue()
    record = json.loads((tmp_path / "scores.csv.meta.json").read_text(encoding="utf-8"))
    assert record["models"]["tiny"]["tolerance"] == 1e-3
    assert record["models"]["tiny"]["fingerprint"].startswith("server-")


def test_means_are_exact_and_words_are_known_without_server(make_fake: MakeFake) -> None:
    sentence = Sentence.parse("The old teacher reads a book.")
    fake = make_fake()
    with fake.in_process() as url:
        specification = f"server:{url}#{MODEL}?tokenizer={fake.location}"
        served = load_model(specification)
        mean = load_scorer(f"{specification}+mean").scores([sentence])[0]
        count = served.token_counts([sentence])[0]
        assert mean == pytest.approx(served.log_probs([sentence])[0] / count, abs=1e-5)
    # Without the server, words can be read, but not scored
    reader = load_scorer(specification, Loading(weights=False))
    assert reader.convention.fingerprint.startswith("tokenizer-")
    assert reader.knows(["dog", "<|endoftext|>"]).tolist() == [True, False]
    with pytest.raises(ModelError, match="cannot score"):
        reader.scores([sentence])
