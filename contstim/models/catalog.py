"""Model specifications, the families they name, and the models of the 2023 study.

A specification is `[family:]location[@rule][+transform]`, for instance `kenlm:trigram.arpa`. Families
load lazily: naming one imports nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from contstim.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contstim.models.base import LanguageModel


@dataclass(frozen=True)
class Family:
    """A kind of model: what it is, what loads it (`module:attribute`), the scoring rules it has.

    The first rule is the default. `endings` are file names that mean this family where none is
    given.
    """

    name: str
    summary: str
    loader: str
    rules: tuple[str, ...]
    endings: tuple[str, ...] = ()


@dataclass(frozen=True)
class CatalogueEntry:
    """A model of the 2023 study: its name here, its specification, and what it is."""

    name: str
    specification: str
    summary: str

    @property
    def loadable(self) -> bool:
        """Whether this version has the family."""
        return self.specification.partition(":")[0] in FAMILIES


@dataclass(frozen=True)
class Specification:
    """A parsed model specification; `rule` is empty for the family's default."""

    text: str
    family: str
    location: str
    rule: str = ""


FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family(
            name="kenlm",
            summary="n-gram model from an ARPA or KenLM binary file",
            loader="contstim.models.ngram.adapter:KenlmModel",
            rules=("log-likelihood",),
            endings=(".arpa", ".binary", ".klm"),
        ),
    )
}

CATALOGUE: dict[str, CatalogueEntry] = {
    entry.name: entry
    for entry in (
        CatalogueEntry("2-gram", "kenlm:bigram.arpa", "n-gram; train it on your text"),
        CatalogueEntry("3-gram", "kenlm:trigram.arpa", "n-gram; train it on your text"),
        CatalogueEntry("RNN", "rnn:rnn", "recurrent; train it on your text"),
        CatalogueEntry("LSTM", "lstm:lstm", "recurrent; train it on your text"),
        CatalogueEntry("bert-large-cased", "hf:bert-large-cased", "masked transformer"),
        CatalogueEntry("roberta-large", "hf:roberta-large", "masked transformer"),
        CatalogueEntry("xlm-mlm-en-2048", "hf:xlm-mlm-en-2048", "masked transformer"),
        CatalogueEntry(
            "electra-large-generator", "hf:google/electra-large-generator", "masked transformer"
        ),
        CatalogueEntry("gpt2-xl", "hf:gpt2-xl", "causal transformer"),
    )
}

_SPECIFICATION = re.compile(r"(?:(?P<family>[a-z][a-z0-9]+):)?(?P<location>[^@+]+)(?:@(?P<rule>[\w-]+))?")


def parse_specification(text: str) -> Specification:
    """Read `[family:]location[@rule]`, or a name of the catalogue.

    The family may be told by the file's ending.

    Raises:
        ModelError: malformed, an unknown family or rule; lists what would have worked.
    """
    known = CATALOGUE.get(text)
    match = _SPECIFICATION.fullmatch(known.specification if known else text)
    if match is None:
        raise ModelError(f"{text!r} is not a model: write [family:]location[@rule].")
    location, rule = match["location"], match["rule"] or ""
    family = match["family"] or _family_of(location)
    if family not in FAMILIES:
        raise ModelError(
            f"{text!r} does not name a model that this version can load. Families: "
            + "; ".join(f"{f.name}: ({f.summary})" for f in FAMILIES.values())
            + ". 'contstim models' lists them."
        )
    if rule and rule not in FAMILIES[family].rules:
        raise ModelError(
            f"{family} models have no rule {rule!r}; they have "
            f"{', '.join(FAMILIES[family].rules)}."
        )
    return Specification(text, family, location, rule)


def load_model(specification: str) -> LanguageModel:
    """Load one model; its name is the specification.

    Raises:
        ModelError: see `parse_specification`, or the file is missing or broken.
    """
    parsed = parse_specification(specification)
    module, _, attribute = FAMILIES[parsed.family].loader.partition(":")
    loader = cast("Callable[..., LanguageModel]", getattr(import_module(module), attribute))
    return loader(parsed.location, name=specification)


def load_models(specifications: Sequence[str]) -> list[LanguageModel]:
    """Load several models, refusing repeated names before any is loaded.

    Raises:
        ModelError: a name is given twice, or see `load_model`.
    """
    twice = sorted({s for s in specifications if specifications.count(s) > 1})
    if twice:
        raise ModelError(f"Every model is named once; given twice: {', '.join(twice)}.")
    for specification in specifications:
        parse_specification(specification)
    return [load_model(specification) for specification in specifications]


def _family_of(location: str) -> str:
    for family in FAMILIES.values():
        if location.endswith(family.endings) and family.endings:
            return family.name
    return ""
