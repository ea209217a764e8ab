from __future__ import annotations

from pathlib import Path

import pytest

from contstim.errors import ModelError
from contstim.models.catalog import load_models
from contstim.models.families import FAMILIES
from contstim.models.specifications import CATALOGUE, parse_specification


def test_the_catalogue_lists_the_nine_models_of_2023() -> None:
    """Witness: the paper's list of models."""
    assert list(CATALOGUE) == [
        "2-gram",
        "3-gram",
        "RNN",
        "LSTM",
        "bert-large-cased",
        "roberta-large",
        "xlm-mlm-en-2048",
        "electra-large-generator",
        "gpt2-xl",
    ]


@pytest.mark.parametrize(
    ("text", "family", "location", "rule"),
    [
        ("kenlm:trigram.arpa", "kenlm", "trigram.arpa", ""),
        ("runs/trigram.arpa", "kenlm", "runs/trigram.arpa", ""),
        ("kenlm:/a/b.bin@log-likelihood", "kenlm", "/a/b.bin", "log-likelihood"),
        ("2-gram", "kenlm", "bigram.arpa", ""),
    ],
)
def test_specifications_by_hand(text: str, family: str, location: str, rule: str) -> None:
    found = parse_specification(text)
    assert (found.family, found.location, found.rule) == (family, location, rule)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense:model", "does not name a model"),
        ("model.xyz", "does not name a model"),
        ("", "is not a model"),
        ("kenlm:", "does not name a model"),
        ("kenlm:a.arpa@chain", "have no rule 'chain'"),
    ],
)
def test_an_unusable_specification_says_what_would_work(text: str, message: str) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        parse_specification(text)
    assert any(name in str(caught.value) for name in [*FAMILIES, "family:"])


def test_repeated_models_are_refused_before_any_is_loaded(tmp_path: Path) -> None:
    missing = f"kenlm:{tmp_path / 'missing.arpa'}"
    with pytest.raises(ModelError, match="given twice"):
        load_models([missing, missing])
