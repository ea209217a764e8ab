"""Loading of a step's models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from contstim.options import Help

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.models.base import LanguageModel, Scorer
    from contstim.models.catalog import LoadOptions
    from contstim.optimization.jobs.plan import SynthesisPlan
    from contstim.optimization.jobs.search_context import SearchContext


@dataclass(frozen=True, kw_only=True)
class Loading:
    """Options of loading models."""

    PANEL: ClassVar[str] = "Loading of models"

    prompt: Annotated[
        str | None, Help("What causal transformers read before a sentence; it never counts.")
    ] = None
    device: Annotated[
        Literal["auto", "cpu", "cuda"],
        Help("Where networks run; auto: a GPU where there is one."),
    ] = "auto"
    dtype: Annotated[
        Literal["auto", "float32", "bfloat16", "float16"],
        Help("What transformers compute in; auto: float32. Half precision makes ties."),
    ] = "auto"
    device_map: Annotated[
        Literal["auto"] | None,
        Help("Spread transformers over all GPUs, memory and disk, in place of one device."),
    ] = None
    quantize: Annotated[
        Literal["int8", "int4"] | None,
        Help("Keep the weights of transformers in 8 or 4 bits; scores differ from the full ones."),
    ] = None
    trust_remote_code: Annotated[
        bool,
        Help(
            "Let transformers run Python code that comes with a checkpoint. Read it first.",
        ),
    ] = False

    @property
    def keywords(self) -> LoadOptions:
        """The same as keyword arguments of `load_scorer`."""
        return {
            "prompt": self.prompt,
            "device": self.device,
            "dtype": self.dtype,
            "device_map": self.device_map,
            "quantize": self.quantize,
            "trust_remote_code": self.trust_remote_code,
        }

    def scorers(self, models: Sequence[str] | None) -> list[Scorer]:
        """Whatever the models are: language models, transforms of them, classifiers."""
        from contstim.models.catalog import load_scorers

        return load_scorers(models or (), **self.keywords)

    def language_models(self, models: Sequence[str]) -> list[LanguageModel]:
        """Models whose scores are log-probabilities; others are refused."""
        from contstim.models.catalog import load_models

        return load_models(models, **self.keywords)

    def worker_context(self, plan: SynthesisPlan, models_in_memory: int = 2) -> SearchContext:
        """Context of search with which every worker of a plan begins."""
        from contstim.optimization.jobs.search_context import SearchContext

        return SearchContext(
            vocabulary=plan.vocabulary,
            allow_unknown=plan.allow_unknown,
            capacity=models_in_memory,
            prompt=self.prompt,
            device=self.device,
            dtype=self.dtype,
            device_map=self.device_map,
            quantize=self.quantize,
            trust_remote_code=self.trust_remote_code,
        )


DEFAULT_LOADING = Loading()
