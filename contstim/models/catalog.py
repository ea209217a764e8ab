"""Load models by their specifications: one, several, or one after the other.

See `specifications` for how models are named. Families load lazily: naming one imports nothing.
"""

from __future__ import annotations

import gc
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from contstim.errors import ModelError
from contstim.models.base import require_language_model
from contstim.models.families import attribute, require_family
from contstim.models.letter_case import LETTER_CASES, InLetterCase
from contstim.models.loading import DEFAULT_LOADING
from contstim.models.specifications import parse_model, parse_models, parse_specification

if TYPE_CHECKING:
    from collections.abc import Callable

    from contstim.models.base import LanguageModel, Scorer
    from contstim.models.loading import Loading
    from contstim.models.specifications import Models, Specification

_Result = TypeVar("_Result")


def check_model(specification: str | Specification, loading: Loading = DEFAULT_LOADING) -> None:
    """Refuse within a moment a model whose files are missing or unreadable.

    Reads the configuration only: no weights, no tokenizer, nothing on the hub.

    Raises:
        ModelError: see `parse_model`; the file or folder is missing, or its configuration damaged.
    """
    model = parse_model(specification)
    family = require_family(model.family)
    if family.checker:
        check = cast("Callable[..., None]", attribute(family.checker))
        check(model.location, trust_remote_code=loading.trust_remote_code)
    elif family.is_path and not Path(model.location).exists():
        raise ModelError(
            f"There is no {family.summary} at {model.location}. Give its path; 'contstim train' "
            f"makes one."
        )


def load_scorer(
    specification: str | Specification,
    loading: Loading = DEFAULT_LOADING,
    *,
    name: str = "",
    **options: Any,
) -> Scorer:
    """Load whatever a specification names: a language model, a transform of one, a classifier.

    Args:
        specification: `[NAME=]SPECIFICATION`, see `contstim.models.specifications`.
        loading: how it is loaded.
        name: what to call it; by default the name before `=`, or the specification. With a name,
            a `=` in the specification belongs to it.
        options: fields of `Loading` by name, such as `device="cpu"`.

    Raises:
        ModelError: see `parse_specification`, or the model is missing, broken, or has no such rule.
    """
    if name and isinstance(specification, str):
        model = parse_specification(specification, name)
    else:
        model = parse_model(specification)
    loading = replace(loading, **options)
    family = require_family(model.family)
    # A loader gets what its family says it takes: n-gram models know no device
    arguments = {
        option: getattr(model if option in ("family", "rule") else loading, option)
        for option in family.options
        if option != "loading"
    }
    if "loading" in family.options:
        arguments["loading"] = loading
    loader = cast("Callable[..., Scorer]", attribute(family.loader))
    scorer = loader(model.location, name=model.name, **arguments)
    if model.rule in LETTER_CASES:
        scorer = InLetterCase(require_language_model(scorer, f"@{model.rule}"), model.rule)
    if model.transform:
        from contstim.models.transforms import transformed

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
    **options: Any,
) -> LanguageModel:
    """Load a language model, which searches take; see `load_scorer` for the arguments.

    Raises:
        ModelError: see `load_scorer`; or the scores are not log-probabilities.
    """
    return _language_model(load_scorer(specification, loading, name=name, **options))


def load_models(
    specifications: Models, loading: Loading = DEFAULT_LOADING, **options: Any
) -> list[LanguageModel]:
    """Load one language model or several; see `load_scorers` and `load_model`.

    Raises:
        ModelError: see `load_scorers`; or the scores of one are not log-probabilities.
    """
    return [_language_model(each) for each in load_scorers(specifications, loading, **options)]


def with_each_model(
    specifications: Models,
    work: Callable[[Scorer], _Result],
    loading: Loading = DEFAULT_LOADING,
) -> list[_Result]:
    """Load each model, work with it, and drop it before the next one is loaded.

    Files and configurations of all are checked before the first is loaded. Neighbours that share a
    checkpoint, such as two rules, share its network.

    Args:
        specifications: parsed, or `[NAME=]SPECIFICATION` each.
        work: a function of the model; its result must not hold the model.
        loading: how they are loaded.

    Returns:
        The result of each, in the order of the models.

    Raises:
        ModelError: see `load_scorer`.
    """
    models = parse_models(specifications)
    for model in models:
        check_model(model, loading)
    sources = [(model.family, model.location) for model in models]
    results = []
    previous: Scorer | None = None  # kept alive while the next model shares its network
    for model, source, next_source in zip(models, sources, [*sources[1:], None], strict=True):
        scorer = load_scorer(model, loading)
        results.append(work(scorer))
        previous = scorer if source == next_source else None
        # Before the next is loaded: two networks at once may not fit
        del scorer
        free_memory()
    del previous
    return results


def free_memory() -> None:
    """Give a dropped network's memory back at once, also to other workers on the same GPU."""
    gc.collect()
    # Where no network was loaded, PyTorch is not imported for it
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.cuda.empty_cache()


def _language_model(scorer: Scorer) -> LanguageModel:
    return require_language_model(scorer, "A function that loads a language model")
