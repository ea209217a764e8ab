"""Functions that load models by their specifications, and that list files and commits of models.

See `specifications` for the syntax of a specification. A family is a kind of model, such as n-gram
models. The code of a family is imported when a model of the family is loaded.
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
from contstim.models.base import LanguageModel, Scorer, require_language_model
from contstim.models.families import family_named
from contstim.models.loading import DEFAULT_LOADING, Loading
from contstim.models.specifications import (
    Models,
    Specification,
    cached_file,
    hub_commit,
    parse_model,
    parse_models,
    with_context,
)
from contstim.models.training_text import training_text_path
from contstim.models.transforms import InLetterCase, apply_transform, word_rule
from contstim.models.vocabularies import counts_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


def check_model(model: Specification, loading: Loading = DEFAULT_LOADING) -> None:
    """Check quickly that the files of a model exist and can be read.

    If the model is a checkpoint in a folder, only its configuration is read. The hub is not
    accessed.

    Raises:
        ModelError: if the file or folder is missing; if its configuration is damaged, or requires
            code that is not allowed; or if the address of a server is invalid.
    """
    family = family_named(model.family)
    if family.checker:
        resolve_name(family.checker)(model.location, trust_remote_code=loading.trust_remote_code)
    elif family.is_path and not Path(model.location).exists():
        raise ModelError(
            f"There is no {family.summary} at {model.location}. Correct the path, or train a model "
            "with 'contstim train'."
        )


def load_scorer(
    specification: str | Specification,
    loading: Loading = DEFAULT_LOADING,
    *,
    name: str = "",
    context: str | None = None,
    **options: Any,
) -> Scorer:
    """Load a scorer: a language model, a transform of a language model, or a classifier.

    Args:
        specification: `[NAME=]SPECIFICATION`, see `contstim.models.specifications`.
        loading: options for loading.
        name: see `parse_model`.
        context: text that a causal model reads before the first word; by default the context of
            the specification.
        options: fields of `Loading` by name, such as `device="cpu"`.

    Raises:
        ModelError: see `parse_model`. Also if the model is missing or damaged, or has no such rule.
    """
    model = parse_model(specification, name)
    if context is not None:
        model = with_context(model, context)
    loading = replace(loading, **options)
    family = family_named(model.family)
    # A loader gets only the options of its family. For example, n-gram models have no device
    case, end_mark = word_rule(model.rule)
    values = vars(loading) | vars(model) | {"loading": loading, "end_mark": end_mark}
    arguments = {option: values[option] for option in family.options}
    scorer: Scorer = resolve_name(family.loader)(model.location, name=model.name, **arguments)
    if case:
        scorer = InLetterCase(require_language_model(scorer, f"@{model.rule}"), case)
    if model.transform:
        scorer = apply_transform(scorer, model)
    scorer.specification = model.specification
    return scorer


def load_transformer(
    location: str, *, name: str, rule: str, loading: Loading, context: str | None = None
) -> LanguageModel:
    """Load a checkpoint as a causal or masked model, depending on its configuration.

    The default rule is `log-likelihood` for causal models and `chain` for masked models.

    Raises:
        ModelError: see `load_checkpoint`. Also if a causal model has a rule for masked models, or
            vice versa; or if a masked model has a context.
    """
    from contstim.models.checkpoints import load_checkpoint
    from contstim.models.checkpoints.source import foreign_errors

    checkpoint = load_checkpoint(location, loading)
    options: dict[str, Any] = {"name": name} | ({"rule": rule} if rule else {})
    with foreign_errors(location):
        if checkpoint.kind == "causal":
            from contstim.models.causal.adapter import CausalModel

            return CausalModel(checkpoint, context=context, **options)
        from contstim.models.masked.adapter import MaskedModel

        model = MaskedModel(checkpoint, **options)
        # Masked models read no context, so `with_context` raises an error
        return model if context is None else model.with_context(context)


def load_scorers(
    specifications: Models, loading: Loading = DEFAULT_LOADING, **options: Any
) -> list[Scorer]:
    """Load one scorer or several; see `load_scorer` for the arguments.

    Raises:
        ModelError: if a name or a model is given twice; see also `load_scorer`.
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
    """Load a language model; see `load_scorer` for the arguments.

    Raises:
        ModelError: see `load_scorer`; or if the scores are not log-probabilities.
    """
    return require_language_model(
        load_scorer(specification, loading, name=name, context=context, **options)
    )


def load_models(
    specifications: Models, loading: Loading = DEFAULT_LOADING, **options: Any
) -> list[LanguageModel]:
    """Load one language model or several; see `load_scorer` for the arguments.

    Raises:
        ModelError: see `load_scorers`; or if the scores of a model are not log-probabilities.
    """
    return [*map(require_language_model, load_scorers(specifications, loading, **options))]


def one_at_a_time(
    models: Sequence[Specification], loading: Loading = DEFAULT_LOADING
) -> Iterator[list[Scorer]]:
    """Yield a list with one model at a time, and empty the list before loading the next model.

    The caller must not keep references to the models. Files and configurations of all models are
    checked first. Successive models with the same checkpoint share the network.

    Raises:
        ModelError: see `check_model` and `load_scorer`.
    """
    for model in models:
        check_model(model, loading)
    previous: list[Scorer] = []  # keeps the network alive if the next model shares it
    for model, following in zip_longest(models, models[1:]):
        loaded = [load_scorer(model, loading)]
        yield loaded
        source = (model.family, model.location)
        shares = following is not None and source == (following.family, following.location)
        previous[:] = loaded if shares else []
        loaded.clear()
        free_memory()


def free_memory() -> None:
    """Free the memory of a deleted network, also for other workers on the same GPU."""
    gc.collect()
    # Do not import PyTorch if no network was loaded
    if (torch := sys.modules.get("torch")) is not None:
        torch.cuda.empty_cache()


def model_files(specifications: Iterable[str | Specification]) -> tuple[Path, ...]:
    """Return the existing files of models, including word counts and training hashes.

    Training hashes are hashes of the sentences on which contstim trained the model.
    `specifications` are parsed specifications, or texts without `NAME=`. Empty texts are ignored,
    because models that were created in Python have no specification.

    Raises:
        ModelError: see `parse_model`.
    """
    paths = with_neighbours(map(Path, _locations(specifications)))
    return tuple(dict.fromkeys(path for path in paths if path.exists()))


def hub_commits(specifications: Iterable[str | Specification]) -> dict[str, str]:
    """Return the commits of models in the hub's local cache: `name` or `name:revision` → commit.

    Raises:
        ModelError: see `parse_model`.
    """
    names = [name for name in _locations(specifications) if not Path(name).exists()]
    return {name: commit for name in names if (commit := hub_commit(name))}


def with_neighbours(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield each path of a model, and the paths of its word counts and training hashes."""
    for path in paths:
        yield path
        yield counts_path(path)
        yield training_text_path(path)


def parameter_count(location: str) -> int:
    """Return the number of weights of a model in a local folder or in the hub's local cache.

    Return 0 if the number is unknown.
    """
    from safetensors import safe_open

    local = Path(location) / "model.safetensors"
    path = local if local.is_file() else cached_file(location, local.name)
    if path is None or not path.is_file():
        return 0
    with safe_open(path, "np") as file:
        names = file.keys()
        return sum(prod(file.get_slice(name).get_shape()) for name in names)


def _locations(specifications: Iterable[str | Specification]) -> Iterator[str]:
    for model in specifications:
        if not model:
            continue
        parsed = parse_model(model, model) if isinstance(model, str) else model
        if parsed.family == "server":
            from contstim.models.server.address import parse_address

            # Tokenizer and draft (a cheaper model with similar scores) are local. The network is on
            # the server and has no local files; scores of test requests identify it instead
            address = parse_address(parsed.location)
            yield address.tokenizer
            yield from _locations([address.draft or ""])
        else:
            yield from parsed.files
