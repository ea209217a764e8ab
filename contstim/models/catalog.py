"""Model specifications, the families they name, and the models of the 2023 study.

A specification is `[family:]location[@rule][+transform]`, for instance `kenlm:trigram.arpa` or
`hf:gpt2@chain+mean`; a name may stand before it, as in `gpt2=hf:gpt2@chain`. Families load lazily:
naming one imports nothing.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, cast

from contstim.documents import read_json_object
from contstim.errors import ModelError
from contstim.files import is_file
from contstim.models.given import GivenModel
from contstim.models.masked.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Unpack

    from contstim.models.base import LanguageModel, Scorer
    from contstim.models.checkpoints import Device, Precision

CAUSAL_RULES = ("log-likelihood", "chain")
CLASSIFIER_RULES = ("signed-confidence",)


RECURRENT_CONFIGURATION = "recurrent.json"
"""The file by which a folder is known to hold a recurrent model."""


@dataclass(frozen=True)
class Family:
    """A kind of model.

    Attributes:
        name: what a specification begins with.
        summary: what it is.
        loader: `module:attribute`, called with the location, `name` and the options it takes.
        rules: scoring rules; the first is the default unless the loader chooses by checkpoint.
        options: which of `family`, `rule`, `device`, `dtype`, `prompt`, `trust_remote_code` and
            `weights` the loader takes.
        endings: file names that mean this family where none is given.
        checker: `module:attribute`, called with the location and `trust_remote_code`: refuses in a
            moment what cannot be loaded; where there is none, the location must exist.
    """

    name: str
    summary: str
    loader: str
    rules: tuple[str, ...]
    options: tuple[str, ...] = ()
    endings: tuple[str, ...] = ()
    checker: str = ""


class LoadOptions(TypedDict, total=False):
    """Options of loading a model; see `load_scorer`."""

    device: Device
    dtype: Precision
    prompt: str | None
    trust_remote_code: bool
    weights: bool


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
    """A parsed model specification.

    Attributes:
        family: a key of `FAMILIES`.
        location: a file, a folder, or a name on the hub.
        rule: empty for the default.
        transform: a key of `TRANSFORMS`, or empty.
        argument: what the transform is given, such as a file.
    """

    family: str
    location: str
    rule: str = ""
    transform: str = ""
    argument: str = ""


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
        Family(
            name="hf",
            summary="causal or masked transformer from a folder or the Hugging Face hub",
            loader="contstim.models.transformer:load_transformer",
            checker="contstim.models.checkpoints.source:check_source",
            rules=tuple(dict.fromkeys((*CAUSAL_RULES, *RULES))),
            options=("rule", "device", "dtype", "prompt", "trust_remote_code", "weights"),
        ),
        Family(
            name="classifier",
            summary="classifier of sequences that says how surely a sentence is acceptable; its "
            "scores are not log-probabilities",
            loader="contstim.models.classifier.adapter:load_classifier",
            checker="contstim.models.checkpoints.source:check_source",
            rules=CLASSIFIER_RULES,
            options=("device", "dtype", "trust_remote_code"),
        ),
        *(
            Family(
                name=kind,
                summary=f"{what} from a folder that contstim trained",
                loader="contstim.models.recurrent.loading:load_recurrent",
                rules=(rule,),
                options=("family", "device"),
            )
            for kind, what, rule in (
                ("rnn", "recurrent network of words", "log-likelihood"),
                ("lstm", "long short-term memory of words", "log-likelihood"),
                ("bilstm", "LSTM that reads from both sides", "pseudo-log-likelihood"),
            )
        ),
    )
}

TRANSFORMS: dict[str, str] = {
    "mean": "+mean: log p / number of tokens that the rule scores",
    "slor": "+slor:UNIGRAM.arpa: (log p - unigram log p of the words) / number of words",
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

_SPECIFICATION = re.compile(
    r"(?:(?P<family>[a-z][a-z0-9]+):)?(?P<location>.+?)(?:@(?P<rule>[\w-]+))?"
    r"(?:\+(?P<transform>[a-z]+)(?::(?P<argument>.+))?)?"
)


def parse_specification(text: str) -> Specification:
    """Read `[family:]location[@rule][+transform]`; the location may be a name of the catalogue.

    The family may be told by the file's ending or by a file in the folder.

    Raises:
        ModelError: malformed, an unknown family, rule or transform; lists what would have worked.
    """
    match = _SPECIFICATION.fullmatch(text)
    if match is None:
        raise ModelError(f"{text!r} is not a model: write [family:]location[@rule][+transform].")
    family, location = match["family"], match["location"]
    if family is None and location in CATALOGUE:
        family, _, location = CATALOGUE[location].specification.partition(":")
    family = family or _family_of(location)
    if family not in FAMILIES:
        raise ModelError(
            f"{text!r} does not name a model that this version can load. Families: "
            + "; ".join(f"{f.name}: ({f.summary})" for f in FAMILIES.values())
            + ". 'contstim models' lists them."
        )
    rule, transform, argument = (match[g] or "" for g in ("rule", "transform", "argument"))
    if rule and rule not in FAMILIES[family].rules:
        raise ModelError(
            f"{family} models have no rule {rule!r}; they have {', '.join(FAMILIES[family].rules)}."
        )
    if transform and (transform not in TRANSFORMS or bool(argument) != (transform == "slor")):
        raise ModelError(
            f"'+{transform}' in {text!r} is not a transform; there are "
            f"{'; '.join(TRANSFORMS.values())}."
        )
    return Specification(family, location, rule, transform, argument)


def given_models(texts: Sequence[str]) -> list[GivenModel]:
    """Read models as they are given, `[NAME=]SPECIFICATION` each, before any is loaded.

    Raises:
        ModelError: a name or a model is given twice, or see `GivenModel` and `parse_specification`.
    """
    given = [GivenModel.parse(text) for text in texts]
    _refuse_repeated([model.name for model in given])
    same: dict[Specification, GivenModel] = {}
    for model in given:
        parsed = parse_specification(model.specification)
        other = same.setdefault(_plain(parsed), model)
        if other is not model:
            raise ModelError(
                f"{other.text} and {model.text} are the same model given twice. Leave one of them "
                f"out."
            )
    return given


def _refuse_repeated(names: Sequence[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ModelError(
            f"Every model has a name of its own; given twice: {', '.join(twice)}. Leave one of "
            f"them out, or tell them apart as NAME=MODEL."
        )


def _plain(parsed: Specification) -> Specification:
    """The same for all ways to write a path."""
    return replace(parsed, location=os.path.normpath(parsed.location))


def check_model(specification: str, *, trust_remote_code: bool = False) -> None:
    """Refuse in a moment a model that cannot be loaded: nothing there, or nothing readable.

    Weights and tokenizer are left unread, and so is what lies on the hub.

    Raises:
        ModelError: see `parse_specification`; or the file or folder is missing, or its
            configuration damaged.
    """
    parsed = parse_specification(specification)
    checker = FAMILIES[parsed.family].checker
    if checker:
        check = cast("Callable[..., None]", _attribute(checker))
        check(parsed.location, trust_remote_code=trust_remote_code)
    elif not Path(parsed.location).exists():
        raise ModelError(
            f"There is no {FAMILIES[parsed.family].summary} at {parsed.location}. Give its path; "
            f"'contstim train' makes one."
        )


def _attribute(path: str) -> object:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


def load_scorer(
    specification: str,
    *,
    name: str | None = None,
    device: Device = "auto",
    dtype: Precision = "auto",
    prompt: str | None = None,
    trust_remote_code: bool = False,
    weights: bool = True,
) -> Scorer:
    """Load whatever a specification names: a language model, a transform of one, a classifier.

    Args:
        specification: see `parse_specification`; without `name`, `NAME=` may stand before it.
        name: what to call it; by default the name that is given, or the specification.
        device: where networks run; `auto` is a GPU where there is one.
        dtype: what transformers compute in; `auto` is float32.
        prompt: what causal transformers read before a sentence; other models read nothing.
        trust_remote_code: whether transformers may run Python code that comes with the checkpoint.
        weights: False where only words and tokens are asked about: transformers are then left
            without their weights, and score nothing.

    Raises:
        ModelError: see `parse_specification`, or the model is missing, broken, or has no such rule.
    """
    chosen = GivenModel(name, specification) if name else GivenModel.parse(specification)
    parsed = parse_specification(chosen.specification)
    family = FAMILIES[parsed.family]
    given = {
        "family": parsed.family,
        "rule": parsed.rule,
        "device": device,
        "dtype": dtype,
        "prompt": prompt,
        "trust_remote_code": trust_remote_code,
        "weights": weights,
    }
    loader = cast("Callable[..., Scorer]", _attribute(family.loader))
    model = loader(
        parsed.location,
        name=chosen.name,
        **{option: given[option] for option in family.options},
    )
    if parsed.transform:
        from contstim.models.transforms import transformed

        model = transformed(model, parsed.transform, parsed.argument, name=chosen.name)
    model.specification = chosen.specification
    return model


def load_scorers(specifications: Sequence[str], **options: Unpack[LoadOptions]) -> list[Scorer]:
    """Load several scorers, refusing repeated ones before any is loaded.

    Args:
        specifications: `[NAME=]SPECIFICATION` each.
        options: see `load_scorer`.

    Raises:
        ModelError: a name or a model is given twice, or see `load_scorer`.
    """
    return [
        load_scorer(given.specification, name=given.name, **options)
        for given in given_models(specifications)
    ]


def load_model(
    specification: str, *, name: str | None = None, **options: Unpack[LoadOptions]
) -> LanguageModel:
    """Load a language model, which searches take; see `load_scorer` for the arguments.

    Raises:
        ModelError: see `load_scorer`; or the scores are not log-probabilities.
    """
    return _language_model(load_scorer(specification, name=name, **options))


def load_models(
    specifications: Sequence[str], **options: Unpack[LoadOptions]
) -> list[LanguageModel]:
    """Load several language models; see `load_scorers` and `load_model`.

    Raises:
        ModelError: see `load_scorers`; or the scores of one are not log-probabilities.
    """
    return [_language_model(scorer) for scorer in load_scorers(specifications, **options)]


def _language_model(scorer: Scorer) -> LanguageModel:
    from contstim.models.base import require_language_model

    return require_language_model(scorer, "What asks for a language model")


def _family_of(location: str) -> str:
    for family in FAMILIES.values():
        if family.endings and location.endswith(family.endings):
            return family.name
    if is_file(Path(location) / "config.json"):
        return "hf"
    try:
        facts = read_json_object(Path(location) / RECURRENT_CONFIGURATION)
        return str(facts["kind"]) if facts["kind"] in FAMILIES else ""
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""
