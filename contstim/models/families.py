"""Families of models: built-in families, and families of installed packages.

A package adds a family by an entry point in the group `contstim.models`. The entry point has the
name of the family, and its value is a `Family`:

    [project.entry-points."contstim.models"]
    mine = "my_package:FAMILY"

Then all commands accept `--model mine:location`. Entry points are loaded for two purposes: to find
a family that is not built in, and to list all families.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from contstim.errors import ModelError
from contstim.files.plugins import plugin, plugin_names
from contstim.models.masked.rules import RULES
from contstim.models.transforms import WORD_RULES

GROUP = "contstim.models"
"""Group of the entry points of families."""

CAUSAL_RULES = ("log-likelihood", "chain")
CLASSIFIER_RULES = ("signed-confidence",)


@dataclass(frozen=True)
class Family:
    """Kind of model.

    The specification `hf:gpt2` names a model: `hf` is its family and `gpt2` its location.

    Attributes:
        name: first part of a specification; it consists of lower-case letters and digits.
        summary: noun phrase for lists and messages.
        loader: `module:attribute` of a function that returns a `Scorer`. The function's arguments
            are the location, `name` and the `options` below.
        rules: scoring rules. The first rule is the default, unless the loader has a default rule
            for each kind of checkpoint. The `WORD_RULES` of word-level models, such as `lower`, are
            not passed to the loader.
        options: names of the loader's keyword arguments, without `name`. They can be `loading`,
            `family`, `rule`, `context`, `end_mark` and the fields of `Loading`. Models of the
            family can read a context before the first word only if `options` contains `context`.
        endings: file endings that imply this family.
        is_path: whether the location must be an existing file or folder; ignored if `checker` is
            not empty.
        checker: `module:attribute` of a function that quickly refuses models that cannot be loaded.
            The function's arguments are the location and `trust_remote_code`.
    """

    name: str
    summary: str
    loader: str
    rules: tuple[str, ...]
    options: tuple[str, ...] = ()
    endings: tuple[str, ...] = ()
    is_path: bool = True
    checker: str = ""


FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family(
            name="kenlm",
            summary="n-gram model from an ARPA or KenLM binary file",
            loader="contstim.models.ngram.adapter:NgramModel",
            rules=("log-likelihood", *WORD_RULES),
            options=("end_mark",),
            endings=(".arpa", ".binary", ".klm"),
        ),
        Family(
            name="hf",
            summary="causal or masked transformer from a folder, GGUF file or the Hugging Face hub",
            loader="contstim.models.catalog:load_transformer",
            checker="contstim.models.checkpoints.source:check_source",
            rules=tuple(dict.fromkeys((*CAUSAL_RULES, *RULES))),
            options=("loading", "rule", "context"),
            endings=(".gguf",),
        ),
        Family(
            name="classifier",
            summary=(
                "sequence classifier with a signed confidence that a sentence is acceptable; "
                "its scores are not log-probabilities"
            ),
            loader="contstim.models.classifier:load_classifier",
            checker="contstim.models.checkpoints.source:check_source",
            rules=CLASSIFIER_RULES,
            options=("loading",),
        ),
        Family(
            name="server",
            summary="causal transformer on an inference server (vLLM, SGLang and others)",
            loader="contstim.models.server.model:load_server",
            checker="contstim.models.server.model:check_server",
            rules=("log-likelihood",),
            options=("loading", "context"),
            is_path=False,
        ),
        *(
            Family(
                name=kind,
                summary=f"{noun} from a folder that contstim trained",
                loader="contstim.models.recurrent.adapter:load_recurrent",
                rules=(rule, *WORD_RULES),
                options=("family", "device", "end_mark"),
            )
            for kind, noun, rule in (
                ("rnn", "recurrent network of words", "log-likelihood"),
                ("lstm", "long short-term memory of words", "log-likelihood"),
                ("bilstm", "bidirectional LSTM", "pseudo-log-likelihood"),
            )
        ),
    )
}


def families() -> list[Family]:
    """Return all families, with built-in families first.

    A package cannot replace a built-in family.

    Raises:
        ModelError: if two packages have families of the same name, or if a family cannot be loaded.
    """
    package_families = [_added_family(name) for name in plugin_names(GROUP) if name not in FAMILIES]
    return [*FAMILIES.values(), *filter(None, package_families)]


def family_named(name: str, model: str = "") -> Family:
    """Return the built-in or installed family with this name.

    Args:
        name: name of the family; no family has an empty name.
        model: specification of the model, for the message.

    Raises:
        ModelError: if there is no such family; see also `families`.
    """
    family = FAMILIES.get(name) or _added_family(name)
    if family is None:
        descriptions = "; ".join(f"{f.name}: ({f.summary})" for f in families())
        raise ModelError(
            f"{model or name!r} does not name a model that can be loaded. It must begin with the "
            f"name of a family: {descriptions}."
        )
    return family


@cache
def _added_family(name: str) -> Family | None:
    return plugin(GROUP, name, Family, ModelError)
