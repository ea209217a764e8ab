"""Load models by their specifications: one, several, or one after the other.

See `specifications` for how models are named. Families load lazily: naming one imports nothing.

Records name the files and commits that models are loaded from, and so notice that a model has
become another one.
"""

from __future__ import annotations

import gc
import sys
from dataclasses import replace
from itertools import zip_longest
from math import prod
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from contstim.errors import ModelError
from contstim.models.base import require_language_model
from contstim.models.families import family_named
from contstim.models.loading import DEFAULT_LOADING
from contstim.models.specifications import (
    parse_model,
    parse_models,
    split_revision,
    with_context,
)
from contstim.models.training_text import training_text_path
from contstim.models.transforms import InLetterCase, transformed, word_rule
from contstim.models.vocabularies import counts_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from contstim.models.base import LanguageModel, Scorer
    from contstim.models.loading import Loading
    from contstim.models.specifications import Models, Specification


def check_model(model: Specification, loading: Loading = DEFAULT_LOADING) -> None:
    """Refuse within a moment a model whose files are missing or unreadable.

    Reads the configuration only: no weights, no tokenizer, nothing on the hub.

    Raises:
        ModelError: the file or folder is missing, or its configuration damaged.
    """
    family = family_named(model.family)
    if family.checker:
        check: Callable[..., None] = resolve_name(family.checker)
        check(model.location, trust_remote_code=loading.trust_remote_code)
    elif family.is_path and not Path(model.location).exists():
        raise ModelError(
            f"There is no {family.summary} at {model.location}; 'contstim train' makes one."
        )


def load_scorer(
    specification: str | Specification,
    loading: Loading = DEFAULT_LOADING,
    *,
    name: str = "",
    context: str | None = None,
    **options: Any,
) -> Scorer:
    """Load whatever a specification names: a language model, a transform of one, a classifier.

    Args:
        specification: `[NAME=]SPECIFICATION`, see `contstim.models.specifications`.
        loading: how it is loaded.
        name: what to call it; by default the name before `=`, or the specification. With a name,
            a `=` in the specification belongs to it.
        context: a text that a causal model reads before the first word; by default that of the
            specification.
        options: fields of `Loading` by name, such as `device="cpu"`.

    Raises:
        ModelError: see `parse_model`, or the model is missing, broken, or has no such rule.
    """
    model = parse_model(specification, name)
    if context is not None:
        model = with_context(model, context)
    loading = replace(loading, **options)
    family = family_named(model.family)
    # A loader gets what its family says it takes: n-gram models know no device
    case, end_mark = word_rule(model.rule)
    sources = {
        "loading": loading,
        "family": model.family,
        "rule": model.rule,
        "end_mark": end_mark,
        "context": model.context,
    }
    arguments = {
        option: sources[option] if option in sources else getattr(loading, option)
        for option in family.options
    }
    loader: Callable[..., Scorer] = resolve_name(family.loader)
    scorer = loader(model.location, name=model.name, **arguments)
    if case:
        scorer = InLetterCase(require_language_model(scorer, f"@{model.rule}"), case)
    if model.transform:
        scorer = transformed(scorer, model)
    # Without the name, so that a record says how to load the model again
    scorer.specification = model.specification
    return scorer


def load_scorers(
    specifications: Models, loading: Loading = DEFAULT_LOADING, **options: Any
) -> list[Scorer]:
    """Load one scorer or several, refusing repeated ones before any is loaded.

    Args:
        specifications: `[NAME=]SPECIFICATION`, one text or several.
        loading: how they are loaded.
        options: see `load_scorer`.

    Raises:
        ModelError: a name or a model is given twice, or see `load_scorer`.
    """
    return [load_scorer(model, loading, **options) for model in parse_models(specifications)]


def load_model(
    specification: str | Specification,
    loading: Loading = DEFAULT_LOADING,
    *,
    name: str = "",
    context: str | None = None,
    **options: Any,
) -> LanguageModel:
    """Load a language model, which searches take; see `load_scorer` for the arguments.

    Raises:
        ModelError: see `load_scorer`; or the scores are not log-probabilities.
    """
    return require_language_model(
        load_scorer(specification, loading, name=name, context=context, **options)
    )


def load_models(
    specifications: Models, loading: Loading = DEFAULT_LOADING, **options: Any
) -> list[LanguageModel]:
    """Load one language model or several, refusing repeated ones before any is loaded.

    Raises:
        ModelError: see `load_scorers`; or the scores of one are not log-probabilities.
    """
    scorers = (load_scorer(model, loading, **options) for model in parse_models(specifications))
    return [*map(require_language_model, scorers)]


def one_at_a_time(
    models: Sequence[Specification], loading: Loading = DEFAULT_LOADING
) -> Iterator[list[Scorer]]:
    """Each model alone in a list, which is emptied before the next model is loaded.

    Files and configurations of all are checked before the first is loaded. Neighbours that share a
    checkpoint, such as two rules, share its network.

    Args:
        models: parsed; who works with them must not hold them.
        loading: how they are loaded.

    Raises:
        ModelError: see `load_scorer`.
    """
    for model in models:
        check_model(model, loading)
    previous: list[Scorer] = []  # kept alive while the next model shares its network
    for model, following in zip_longest(models, models[1:]):
        loaded = [load_scorer(model, loading)]
        yield loaded
        source = (model.family, model.location)
        shares = following is not None and source == (following.family, following.location)
        previous[:] = loaded if shares else []
        # Before the next is loaded: two networks at once may not fit
        loaded.clear()
        free_memory()


def free_memory() -> None:
    """Give a dropped network's memory back at once, also to other workers on the same GPU."""
    gc.collect()
    # Where no network was loaded, PyTorch is not imported for it
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.cuda.empty_cache()


def model_files(specifications: Iterable[str | Specification]) -> tuple[Path, ...]:
    """Files and folders that models are loaded from, also those of transforms.

    With word counts and hashes of training sentences beside them, as far as they are there.

    Args:
        specifications: parsed, or without names; an empty one, of a model that was made in Python,
            has no origin.

    Raises:
        ModelError: see `parse_model`.
    """
    paths = with_neighbours(map(Path, _locations(specifications)))
    return tuple(dict.fromkeys(path for path in paths if path.exists()))


def hub_commits(specifications: Iterable[str | Specification]) -> dict[str, str]:
    """Commits of models in the local cache of the Hugging Face hub, by name and revision.

    Raises:
        ModelError: see `parse_model`.
    """
    names = [name for name in _locations(specifications) if not Path(name).exists()]
    return {name: commit for name in names if (commit := hub_commit(name))}


def with_neighbours(paths: Iterable[Path]) -> Iterator[Path]:
    """Files, and where word counts and hashes of training sentences stand beside a model's file."""
    for path in paths:
        yield path
        yield counts_path(path)
        yield training_text_path(path)


def hub_commit(location: str) -> str:
    """The commit of a model in the local cache of the hub; empty where it is not there.

    Args:
        location: its name on the hub, with its revision if it has one.
    """
    # …/models--NAME/snapshots/COMMIT/config.json
    path = _cached_file(location, "config.json")
    return path.parent.name if path else ""


def _cached_file(location: str, file: str) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    name, revision = split_revision(location)
    try:
        path = try_to_load_from_cache(name, file, revision=revision or None)
    except (OSError, ValueError):  # unreadable, or not a name that the hub can have
        return None
    return Path(path) if isinstance(path, str) else None


def parameter_count(location: str) -> int:
    """Number of weights of a network in a folder or in the local cache of the hub; 0 if unknown."""
    from safetensors import safe_open

    local = Path(location) / "model.safetensors"
    path = local if local.is_file() else _cached_file(location, local.name)
    if path is None or not path.is_file():
        return 0
    with safe_open(path, "np") as file:
        names = file.keys()
        return sum(prod(file.get_slice(name).get_shape()) for name in names)


def _locations(specifications: Iterable[str | Specification]) -> Iterator[str]:
    for given in specifications:
        if not given:
            continue
        parsed = parse_model(given, given) if isinstance(given, str) else given
        if parsed.family == "server":
            from contstim.models.server.address import parse_address

            # Of what a server computes its answers tell; what is read here can change
            address = parse_address(parsed.location)
            yield address.tokenizer
            yield from _locations([address.draft or ""])
        else:
            yield from filter(None, (parsed.location, parsed.argument))
