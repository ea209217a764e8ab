"""Load models by their specifications: one, several, or one after the other.

See `specifications` for how models are named. Families load lazily: naming one imports nothing.
"""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, TypeVar, cast

from contstim.errors import ModelError
from contstim.models.base import require_language_model
from contstim.models.families import attribute, require_family
from contstim.models.letter_case import LETTER_CASES, InLetterCase
from contstim.models.specifications import NamedSpecification, parse_models, parse_specification

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Unpack

    from contstim.models.base import LanguageModel, Scorer
    from contstim.models.checkpoints import Device, DeviceMap, Precision, Quantization

_Result = TypeVar("_Result")


class LoadOptions(TypedDict, total=False):
    """Options of loading a model; see `load_scorer`."""

    device: Device
    dtype: Precision
    device_map: DeviceMap | None
    quantize: Quantization | None
    prompt: str | None
    trust_remote_code: bool
    weights: bool


def check_model(specification: str, *, trust_remote_code: bool = False) -> None:
    """Refuse within a moment a model whose files are missing or unreadable.

    Reads the configuration only: no weights, no tokenizer, nothing on the hub.

    Raises:
        ModelError: see `parse_specification`; or the file or folder is missing, or its
            configuration damaged.
    """
    parsed = parse_specification(specification)
    family = require_family(parsed.family)
    if family.checker:
        check = cast("Callable[..., None]", attribute(family.checker))
        check(parsed.location, trust_remote_code=trust_remote_code)
    elif family.is_path and not Path(parsed.location).exists():
        raise ModelError(
            f"There is no {family.summary} at {parsed.location}. Give its path; 'contstim train' "
            f"makes one."
        )


def load_scorer(
    specification: str,
    *,
    name: str | None = None,
    device: Device = "auto",
    dtype: Precision = "auto",
    device_map: DeviceMap | None = None,
    quantize: Quantization | None = None,
    prompt: str | None = None,
    trust_remote_code: bool = False,
    weights: bool = True,
) -> Scorer:
    """Load whatever a specification names: a language model, a transform of one, a classifier.

    Args:
        specification: see `parse_specification`; without `name`, `NAME=` may stand before it.
        name: what to call it; by default the name before `=`, or the specification.
        device: where networks run; `auto` is a GPU where there is one.
        dtype: what transformers compute in; `auto` is float32.
        device_map: what transformers are spread over instead of one device; `auto` for all GPUs,
            memory and disk.
        quantize: what the weights of transformers are quantized to, `int8` or `int4`.
        prompt: what causal transformers read before a sentence; other models read nothing.
        trust_remote_code: whether transformers may run Python code that comes with the checkpoint.
        weights: False loads transformers without their weights, to ask how they read words; they
            score nothing.

    Raises:
        ModelError: see `parse_specification`, or the model is missing, broken, or has no such rule.
    """
    # With a name of its own the whole text is the specification, `=` and all.
    named = (
        NamedSpecification(name, specification) if name else NamedSpecification.parse(specification)
    )
    parsed = parse_specification(named.specification)
    family = require_family(parsed.family)
    arguments = {
        "family": parsed.family,
        "rule": parsed.rule,
        "device": device,
        "dtype": dtype,
        "device_map": device_map,
        "quantize": quantize,
        "prompt": prompt,
        "trust_remote_code": trust_remote_code,
        "weights": weights,
    }
    loader = cast("Callable[..., Scorer]", attribute(family.loader))
    # A loader gets what its family says it takes: n-gram models know no device
    options = {option: arguments[option] for option in family.options}
    model = loader(parsed.location, name=named.name, **options)
    if parsed.rule in LETTER_CASES:
        model = InLetterCase(require_language_model(model, f"@{parsed.rule}"), parsed.rule)
    if parsed.transform:
        from contstim.models.transforms import transformed

        model = transformed(model, parsed.transform, parsed.argument, name=named.name)
    # Without the name, so that a record says how to load the model again
    model.specification = named.specification
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
        load_scorer(model.specification, name=model.name, **options)
        for model in parse_models(specifications)
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


def with_each_model(
    specifications: Sequence[str],
    work: Callable[[Scorer], _Result],
    **options: Unpack[LoadOptions],
) -> list[_Result]:
    """Load each model, work with it, and drop it before the next one is loaded.

    Names, specifications, files and configurations of all are checked before the first is loaded.
    Neighbours that share a checkpoint, such as two rules, share its network.

    Args:
        specifications: `[NAME=]SPECIFICATION` each.
        work: a function of the model; its result must not hold the model.
        options: see `load_scorer`.

    Returns:
        The result of each, in the order of the specifications.

    Raises:
        ModelError: see `load_scorers`.
    """
    models = parse_models(specifications)
    for named in models:
        check_model(named.specification, trust_remote_code=options.get("trust_remote_code", False))
    parsed = [parse_specification(named.specification) for named in models]
    places = [(specification.family, specification.location) for specification in parsed]
    results = []
    previous: Scorer | None = None  # kept alive while the next model shares its network
    for named, place, next_place in zip(models, places, [*places[1:], None], strict=True):
        model = load_scorer(named.specification, name=named.name, **options)
        results.append(work(model))
        previous = model if place == next_place else None
        # Before the next is loaded: two networks at once may not fit
        del model
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
