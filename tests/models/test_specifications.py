"""Parsing of `[NAME=]SPECIFICATION`, by hand and as a property."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contstim.errors import ModelError
from contstim.models.base import conventions
from contstim.models.catalog import load_model, load_models, load_scorer
from contstim.models.specifications import (
    RESERVED_NAMES,
    parse_model,
    parse_models,
    split_revision,
    with_context,
    without_context,
)
from tests.examples import examples


@pytest.mark.parametrize(
    ("text", "name", "specification"),
    [
        ("gpt2=hf:gpt2@chain", "gpt2", "hf:gpt2@chain"),
        ("my model 2.0_b-c = kenlm:a.arpa", "my model 2.0_b-c", "kenlm:a.arpa"),
        ("hf:gpt2", "hf:gpt2", "hf:gpt2"),
        ("kenlm:runs/a=b.arpa", "kenlm:runs/a=b.arpa", "kenlm:runs/a=b.arpa"),
        ("./a=b.arpa", "./a=b.arpa", "./a=b.arpa"),
        ("a=b=c.arpa", "a", "b=c.arpa"),
        ("llama=server:host:80/v1?tokenizer=x", "llama", "server:host:80/v1?tokenizer=x"),
        ("server:host:80/v1?tokenizer=x", *["server:host:80/v1?tokenizer=x"] * 2),
        ("été=hf:gpt2", "été", "hf:gpt2"),
    ],
)
def test_name_precedes_the_first_equals_sign(text: str, name: str, specification: str) -> None:
    """Witness: names and specifications separated by hand."""
    parsed = parse_model(text)
    assert (parsed.name, parsed.specification) == (name, specification)


@pytest.mark.parametrize(
    "text",
    [
        "hf:gpt2",
        "a=hf:gpt2@chain+mean",
        "hf:./b=c",
        "s=server:host:80/v1#m?tokenizer=x",
        "server:host:80/v1#m?tokenizer=x",
        "gpt2-xl",
    ],
)
@pytest.mark.parametrize("context", [". ", "<|endoftext|>", "a=b:/@+?context=%20", "“é”\n", ""])
def test_context_is_part_of_the_specification(text: str, context: str) -> None:
    plain = parse_model(text)
    model = with_context(plain, context)
    assert parse_model(model.text) == model
    assert parse_model(model.specification, "x") == replace(model, name="x")
    assert replace(model, specification=plain.specification, context=None) == plain
    assert without_context(model.specification) == (plain.specification, context)
    assert with_context(model, "other") == with_context(plain, "other")
    assert len(parse_models([plain, replace(model, name="x")])) == 2


@pytest.mark.parametrize(
    ("location", "name", "revision"),
    [
        ("gpt2", "gpt2", ""),
        ("gpt2:main", "gpt2", "main"),
        ("org/name-1.5_b:v1.0", "org/name-1.5_b", "v1.0"),
        ("org/name:refs/pr/12", "org/name", "refs/pr/12"),
        (f"org/name:{'0af' * 13}0", "org/name", f"{'0af' * 13}0"),
        *(
            (path, path, "")
            for path in r"C:\models\gpt2 C:/models/gpt2 C:gpt2 \\host\share:v1 /a/b:c ./b:c ~/b:c "
            "a/b/c:d small:quantized.gguf http://host:8000/v1 a:b:c a:".split()
        ),
    ],
)
def test_revisions_are_split_from_hub_names(location: str, name: str, revision: str) -> None:
    """Witness: names and revisions split by hand; paths and addresses are not split."""
    assert split_revision(location) == (name, revision)
    parsed = parse_model(f"m=hf:{location}@chain+mean")
    assert (parsed.location, parsed.rule, parsed.transform) == (location, "chain", "mean")


NAMES = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9 ._-]{0,20}[A-Za-z0-9])?", fullmatch=True)


@settings(max_examples=examples(15))
@given(NAMES.filter(lambda name: name.lower() not in RESERVED_NAMES), st.text("a=/:.", min_size=1))
def test_model_text_is_parsed_to_the_same_model(name: str, location: str) -> None:
    """Property: parsing the text of a parsed model returns it."""
    model = parse_model(f"kenlm:{location}", name)
    assert parse_model(model.text) == model


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("=hf:gpt2", "The name of a model must"),
        ("-q=hf:gpt2", "The name of a model must"),
        ("..=hf:gpt2", "The name of a model must"),
        ("$x$=hf:gpt2", "letters, digits, spaces"),
        ("[bold]=hf:gpt2", "letters, digits, spaces"),
        ("a\nb=hf:gpt2", "letters, digits, spaces"),
        ("x" * 61 + "=hf:gpt2", "at most 60 characters, got 61"),
        ("Sentence=hf:gpt2", "column or row of this name"),
        ("ceiling=hf:gpt2", "column or row of this name"),
        ("nonsense:model", "does not name a model"),
        ("model.xyz", "does not name a model"),
        ("some-name", r"does not name a model .* hf: \(causal or masked"),
        ("kenlm:", "does not name a model"),
        ("", r"must be \[family:\]location"),
        ("kenlm:a.arpa@chain", "have no rule 'chain'"),
        ("server:http://h/v1#m?tokenizer=gpt2@chain", "server models have no rule 'chain'"),
        ("hf:gpt2@chains", "no rule 'chains'; they have log-likelihood, chain, chain-sampled"),
        ("hf:gpt2+median", r"got '\+median'"),
        ("hf:gpt2+slor", r"transform .* got '\+slor'"),
        ("hf:gpt2+mean:3", r"transform .* got '\+mean'"),
        *((f"{model}:a?context=a", "must be left out") for model in ("kenlm", "rnn", "classifier")),
    ],
)
def test_invalid_names_and_models_are_refused(text: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        parse_models([text])


def test_record_contains_the_specification(trained: Path) -> None:
    specification = f"kenlm:{trained / '2gram.arpa'}"
    named, plain = load_model(f"big={specification}"), load_model(specification)
    assert (named.name, plain.name) == ("big", specification)
    assert named.convention == plain.convention
    records = conventions([named, plain])
    assert records["big"] == records[specification]
    assert records["big"]["specification"] == specification
    mean = load_scorer(f"per token={specification}+mean")
    assert conventions([mean])["per token"]["specification"] == f"{specification}+mean"


def test_single_model_is_a_text_or_a_list_and_has_a_repr(trained: Path) -> None:
    specification = f"kenlm:{trained / '2gram.arpa'}"
    (from_text,), (from_list,) = load_models(specification), load_models([specification])
    assert repr(from_text) == repr(from_list) == f"<NgramModel {specification!r}>"
    with pytest.raises(
        ModelError, match=r"text such as .*several models must be a list of such texts, got 3"
    ):
        load_models(3)  # type: ignore[arg-type]
