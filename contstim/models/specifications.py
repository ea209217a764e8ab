"""Model specifications: names of models in commands and files.

    [NAME=][family:]location[:REVISION][@rule][+transform][?context=TEXT]

Examples are `kenlm:trigram.arpa`, `hf:gpt2@chain+mean` and `small=hf:gpt2:main`. The name is the
text before the first `=`. If this text contains a `:` or a `/`, the model has no name, and the `=`
belongs to the location, as in `server:host/api?tokenizer=gpt2` or `./a=b.arpa`. A family, such as
`kenlm` or `hf`, is a type of model. A revision is a branch, a tag or a commit of a model on the
Hugging Face hub. A rule defines how sentences are scored. A transform changes the scores; for
example, `+mean` divides them by the number of tokens. A context is a text that a causal model reads
before the first word.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote, unquote

from contstim.errors import ModelError
from contstim.files.documents import read_json_object, shortened
from contstim.files.files import is_file
from contstim.models.families import FAMILIES, family_named
from contstim.models.transforms import split_word_rule
from contstim.wording import find_duplicates

RECURRENT_CONFIGURATION = "recurrent.json"
"""Configuration file of a folder with a recurrent model."""

RESERVED_NAMES = frozenset(
    """
    sentence id item label judgement phenomenon paradigm paradigms word place token position
    log_prob surprisal zipf model models ceiling people method pairs unread identical contrast
    condition trial_id group
    """.split()
)
"""Names of columns and rows of tables, in lower case; models must not have these names."""

_MAX_NAME_LENGTH = 60  # characters: names become parts of file names, which may have 255 bytes


@dataclass(frozen=True)
class Specification:
    """Parsed specification of a model; the model itself is not loaded.

    Attributes:
        name: name in columns, files and figures.
        specification: text of the specification without the name.
        location: file, folder, or name on the hub with its revision, such as `gpt2:main`.
        rule: scoring rule; empty for the default.
        transform: key of `TRANSFORMS`; empty for none.
        argument: argument of the transform, such as a file.
        context: text that a causal model reads before the first word; None for the default.
    """

    name: str
    specification: str
    family: str
    location: str
    rule: str = ""
    transform: str = ""
    argument: str = ""
    context: str | None = None

    @property
    def text(self) -> str:
        """`NAME=SPECIFICATION`; from this text, `parse_model` makes an equal `Specification`."""
        return with_name(self.name, self.specification)

    @property
    def files(self) -> tuple[str, ...]:
        """The location and, for `+slor`, the file of the unigram model.

        The argument of `+slor` may end in a rule; the file is the part before the rule.
        """
        unigram, _ = split_word_rule(self.argument)
        return (self.location, unigram) if unigram else (self.location,)


Models: TypeAlias = str | Specification | Iterable[str | Specification]
"""One model or several models, each as `[NAME=]SPECIFICATION` or parsed."""

TRANSFORMS: dict[str, str] = {
    "mean": "+mean: log p / number of tokens that the rule scores",
    "slor": "+slor:UNIGRAM.arpa: (log p - unigram log p of the words) / number of words",
}

CATALOGUE: dict[str, tuple[str, str]] = {
    "2-gram": ("kenlm:bigram.arpa", "n-gram; train it on your text"),
    "3-gram": ("kenlm:trigram.arpa", "n-gram; train it on your text"),
    "RNN": ("rnn:rnn", "recurrent; train it on your text"),
    "LSTM": ("lstm:lstm", "recurrent; train it on your text"),
    "bert-large-cased": ("hf:bert-large-cased", "masked transformer"),
    "roberta-large": ("hf:roberta-large", "masked transformer"),
    "xlm-mlm-en-2048": ("hf:xlm-mlm-en-2048", "masked transformer"),
    "electra-large-generator": ("hf:google/electra-large-generator", "masked transformer"),
    "gpt2-xl": ("hf:gpt2-xl", "causal transformer"),
}
"""Specifications and summaries of the models of the 2023 study.

A key, such as `gpt2-xl`, can be used as a location.
"""

_CONTEXT = re.compile(r"(.+)\?context=([\w.~%-]*)", re.DOTALL | re.ASCII)
_SPECIFICATION = re.compile(
    r"(?:(?P<family>[a-z][a-z0-9]+):)?(?P<location>.+?)(?:@(?P<rule>(?:(?:lower|upper)@)?[\w-]+))?"
    r"(?:\+(?P<transform>[a-z]+)(?::(?P<argument>.+))?)?"
)

# A single letter before a colon is a drive of Windows, not a name
_WITH_REVISION = re.compile(
    r"(?P<name>[\w-][\w.-]{1,95}(?:/[\w.-]{1,96})?):(?P<revision>[^/\\:][^\\:]*)", re.ASCII
)


def split_revision(location: str) -> tuple[str, str]:
    """Split the location of a transformer into its name and its revision.

    The location of an existing file or folder has no revision, even if it contains a colon.

    Returns:
        The name on the hub and the revision. If there is no revision: the location and an empty
        text.
    """
    match = _WITH_REVISION.fullmatch(location)
    # Not `Path.exists`, which raises an error if the name is too long for the file system
    exists = os.path.exists(location)  # noqa: PTH110
    if match is None or exists or location.lower().endswith(".gguf"):
        return location, ""
    return match["name"], match["revision"]


def with_name(name: str, specification: str) -> str:
    """Return `NAME=SPECIFICATION`, or only the specification if the name adds nothing.

    The name adds nothing if it equals the specification, or the specification without its context.
    """
    is_named = name not in (specification, without_context(specification)[0])
    return f"{name}={specification}" if is_named else specification


def without_context(specification: str) -> tuple[str, str | None]:
    """Split off the context: return the rest, and the context (None if there is no context)."""
    match = _CONTEXT.fullmatch(specification)
    return (specification, None) if match is None else (match[1], unquote(match[2]))


def with_context(model: Specification, context: str) -> Specification:
    """Return the model's specification with a new context.

    Raises:
        ModelError: if models of this family read no context.
    """
    if "context" not in family_named(model.family).options:
        raise ModelError(
            f"context must be left out for {model.name}, got {context!r}. A {model.family} model "
            "reads nothing before the first word."
        )
    plain, _ = without_context(model.specification)
    text = f"{plain}?context={quote(context, safe='')}"
    return replace(model, specification=text, context=context)


def with_contexts(models: Iterable[str], contexts: Iterable[str]) -> dict[str, str]:
    """Set the contexts of models.

    Args:
        models: specifications of the models.
        contexts: contexts as `NAME=TEXT`, where NAME is the name of a model.

    Returns:
        A map from each specification in `models` to the specification with its new context. A
        model without an entry in `contexts` keeps its specification.

    Raises:
        ModelError: if a context is not `NAME=TEXT`; if NAME is not the name of a model; if two
            contexts are for the same model; or if a model reads no context. Also see
            `parse_model`.
    """
    parsed = {text: parse_model(text) for text in models}
    names, context_of = {model.name for model in parsed.values()}, dict[str, str]()
    for entry in contexts:
        # The name of an unnamed model is its specification, which may contain a `=`
        name = max((n for n in names if entry.startswith(f"{n}=")), key=len, default="")
        if not name or name in context_of:
            rule = "at most once for each model" if name else "NAME=TEXT with the name of a model"
            raise ModelError(
                f"context must be {rule}, got {entry!r}. Models: {', '.join(sorted(names))}."
            )
        context_of[name] = entry[len(name) + 1 :]
    return {
        text: with_context(model, context_of[model.name]).text if model.name in context_of else text
        for text, model in parsed.items()
    }


def parse_model(model: str | Specification, name: str = "") -> Specification:
    """Parse `[NAME=][family:]location[:REVISION][@rule][+transform][?context=TEXT]`.

    The location may be a key of `CATALOGUE`. If the text names no family, the location determines
    it: a file by its ending, and a folder by one of its files.

    Args:
        model: text to parse; a parsed model is returned unchanged. If `name` is given, the text has
            no `NAME=` part.
        name: name of the model. By default, this is the NAME of the `NAME=` part. Without such a
            part, it is the text without its context.

    Raises:
        ModelError: if `model` is not a text or is malformed; if the name is invalid; if there is no
            such family, rule or transform; or if the text has a context, although models of the
            family read no context.
    """
    if isinstance(model, Specification):
        return model
    if not isinstance(model, str):
        raise ModelError(
            "A model must be a text such as 'hf:gpt2' or 'small=hf:gpt2'; several models must be "
            f"a list of such texts, got {shortened(model)}."
        )
    text, context = without_context(model)
    prefix, equals, suffix = text.partition("=")
    if not name and equals and ":" not in prefix and "/" not in prefix:
        name, text = prefix.strip(), suffix.strip()
        _check_name(name, model)
    # The pattern matches the shortest possible location, which excludes `@rule` and `+transform`
    match = _SPECIFICATION.fullmatch(text)
    if match is None:
        raise ModelError(f"A model must be [family:]location[@rule][+transform], got {text!r}.")
    family, location = match["family"], match["location"]
    # Replace a key of the catalogue by its specification; a rule and a transform may follow the key
    if family is None and location in CATALOGUE:
        family, _, location = CATALOGUE[location][0].partition(":")
    kind = family_named(family or _family_of(location), text)
    ending = (match[group] or "" for group in ("rule", "transform", "argument"))
    parsed = Specification(name or text, text, kind.name, location, *ending)
    _check_ending(parsed)
    return parsed if context is None else with_context(parsed, context)


def with_ending(specification: str, rule: str, transform: str) -> str:
    """Append a rule and a transform to a specification.

    Args:
        specification: specification that has no rule, transform or context.
        rule: rule of the family; empty for none.
        transform: transform with its argument, such as `mean` or `slor:FILE`; empty for none.

    Raises:
        ModelError: if there is no such rule or transform.
    """
    plain = parse_model(specification, specification)
    name, _, argument = transform.partition(":")
    # Check before appending: otherwise a rule such as "/../x" would be parsed as a part of the
    # location
    _check_ending(replace(plain, rule=rule, transform=name, argument=argument))
    return f"{specification}{rule and '@'}{rule}{transform and '+'}{transform}"


def without_ending(specification: str) -> str:
    """Remove the rule, the transform and the context from a specification."""
    plain, _ = without_context(specification)
    model = parse_model(plain, plain)
    argument = model.argument and f":{model.argument}"
    transform = model.transform and f"+{model.transform}{argument}"
    return plain.removesuffix(transform).removesuffix(model.rule and f"@{model.rule}")


def _check_ending(model: Specification) -> None:
    rules, transform = family_named(model.family).rules, model.transform
    if model.rule and model.rule not in rules:
        raise ModelError(
            f"{model.family} models have no rule {model.rule!r}; they have {', '.join(rules)}."
        )
    # `+slor` needs an argument, the unigram model; `+mean` takes no argument
    if transform and (transform not in TRANSFORMS or bool(model.argument) != (transform == "slor")):
        raise ModelError(
            f"The transform of {model.location!r} must be one of "
            f"{'; '.join(TRANSFORMS.values())}, got '+{transform}'."
        )


def parse_models(specifications: Models) -> list[Specification]:
    """Parse the specifications of one model or several models; the models are not loaded.

    Raises:
        ModelError: if a name or a model occurs twice; also see `parse_model`.
    """
    if isinstance(specifications, str | Specification) or not isinstance(specifications, Iterable):
        specifications = [specifications]
    models = [parse_model(model) for model in specifications]
    if twice := sorted(find_duplicates(model.name for model in models)):
        raise ModelError(
            "Each model must have a different name, got several models named "
            f"{', '.join(twice)}. Remove one of these models, or name them as NAME=MODEL."
        )
    # Refuse one model under two names, since it would be compared with itself
    model_by_location: dict[Specification, Specification] = {}
    for model in models:
        # `a.arpa` and `./a.arpa` are one file; `gpt2` and `gpt2:main` are the same revision
        hub_name, revision = split_revision(model.location)
        path = os.path.normpath(hub_name if revision == "main" else model.location)
        unnamed = replace(model, name="", specification="", location=path)
        first_model = model_by_location.setdefault(unnamed, model)
        if first_model is not model:
            raise ModelError(f"{first_model.text} and {model.text} are the same model. Remove one.")
    return models


def _check_name(name: str, text: str) -> None:
    if not re.fullmatch(r"[^\W_][\w .-]*", name):
        raise ModelError(
            "The name of a model must have only letters, digits, spaces, '.', '_' and '-', "
            f"got {name!r} in {text!r}. If the name of a file contains '=', write the name with "
            f"its folder, such as ./{text}."
        )
    if len(name) > _MAX_NAME_LENGTH:
        raise ModelError(
            f"The name of a model must have at most {_MAX_NAME_LENGTH} characters, got "
            f"{len(name)} in {name!r}."
        )
    if name.lower() in RESERVED_NAMES:
        raise ModelError(
            f"The name of a model must not be {name!r} in {text!r}: tables have a column or "
            "row of this name."
        )


def _family_of(location: str) -> str:
    # The ending of the file is checked first, since this check reads no file
    for family in FAMILIES.values():
        if family.endings and location.endswith(family.endings):
            return family.name
    if is_file(Path(location) / "config.json"):  # a checkpoint of `transformers`
        return "hf"
    try:
        if any(Path(location).glob("*.gguf")):
            return "hf"
        facts = read_json_object(Path(location) / RECURRENT_CONFIGURATION)
        return str(facts["kind"]) if facts["kind"] in FAMILIES else ""
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""


def hub_commit(location: str) -> str:
    """Return the commit of a cached hub model, `name[:revision]`; empty if it is not cached."""
    # …/models--NAME/snapshots/COMMIT/config.json
    path = cached_file(location, "config.json")
    return path.parent.name if path else ""


def cached_file(location: str, file: str) -> Path | None:
    """Return a file of a model in the local cache of the hub; None if it is not cached."""
    from huggingface_hub import try_to_load_from_cache

    name, revision = split_revision(location)
    try:
        path = try_to_load_from_cache(name, file, revision=revision or None)
    except (OSError, ValueError):  # the cache is unreadable, or no hub model can have this name
        return None
    return Path(path) if isinstance(path, str) else None
