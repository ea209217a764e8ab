"""Sections of a study file: each is a dataclass, and its fields are the keys.

Most are the settings of a step, which the single commands have as options; some have further keys,
such as `file` for what a user has already.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from contstim.errors import ContstimError
from contstim.items.scale import Scale
from contstim.models.training.settings import TrainingPrecision
from contstim.optimization.jobs.question import SearchRules
from contstim.optimization.selection.question import MinimalPairQuestion
from contstim.options import Help, Reads
from contstim.steps.analysis import AnalysisSettings
from contstim.steps.design import DesignSettings
from contstim.steps.execution import Execution, ScoringExecution
from contstim.steps.review import ReviewSettings
from contstim.steps.selection import PairSettings, SelectionSettings
from contstim.steps.sentences import SentenceSettings
from contstim.steps.simulation import PowerSettings, SimulationSettings
from contstim.steps.step import adapter, in_words
from contstim.steps.vocabulary import VocabularySettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contstim.study.problems import Problems
    from contstim.study.toml_lines import Key


@dataclass(frozen=True, kw_only=True)
class TextsSection:
    """Sources of words and sentences: files, or `english:N` for the embedded English.

    Attributes:
        training: what models are trained on, and words are counted in.
        natural: where natural sentences are taken from; by default none.
        prose: whether the files are running prose, and not one sentence a line.
    """

    training: str | None = None
    natural: str | None = None
    prose: bool = False


@dataclass(frozen=True, kw_only=True)
class VocabularySection(VocabularySettings):
    """The words that sentences may be made of.

    Attributes:
        file: a vocabulary that is there already; then no other key is needed.
    """

    file: Annotated[Path | None, Reads("A vocabulary.", content="vocabulary")] = None


@dataclass(frozen=True, kw_only=True)
class SentencesSection(SentenceSettings):
    """Natural sentences.

    Attributes:
        file: natural sentences that are there already, one a line.
        exclude: texts whose sentences are left out.
        exclude_training: whether those of the training text are left out.
    """

    file: Annotated[Path | None, Reads("Natural sentences.", content="sentences")] = None
    exclude: Annotated[tuple[Path, ...], Reads("Texts to leave out.", content="text")] = ()
    exclude_training: bool = True


@dataclass(frozen=True, kw_only=True)
class ScoresSection(ScoringExecution):
    """Scores of natural sentences, and where they and those of trials are computed.

    Attributes:
        standard_errors: whether the errors that sampling leaves are written too.
    """

    standard_errors: bool = False


@dataclass(frozen=True, kw_only=True)
class TripletsSection(SearchRules, Execution):
    """Searches for triplets, and where they run."""


@dataclass(frozen=True, kw_only=True)
class MinimalPairsSection(MinimalPairQuestion):
    """Minimal pairs on which models differ.

    Attributes:
        data: a table of minimal pairs, a folder of tables, or BLiMP's checkout.
        sample: how many pairs of each paradigm are scored, at random; by default all.
    """

    data: Annotated[Path, Reads("Minimal pairs.", folder=True, content="minimal pair data")]
    sample: Annotated[int | None, Help("Pairs of each paradigm.", at_least=1)] = None


@dataclass(frozen=True, kw_only=True)
class ReviewSection(ReviewSettings):
    """Pages on which people look at the items, and what they decided.

    Attributes:
        decisions: what the pages saved, a file for each reviewer and round.
    """

    decisions: tuple[Path, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ResponsesSection(SimulationSettings):
    """Answers of people: a table, the data of a platform, or artificial participants.

    Attributes:
        file: a table of responses as `contstim import` writes it.
        platform: the platform whose data `data` are, such as `jspsych`.
        data: files of the platform.
        duplicates: of several ratings of a trial by a person: all, the first, or the last.
        keep: columns of the data about people, which stand in `….questions.csv` then.
        simulate: the model that artificial participants follow.
        scale: of a table or of a platform's data, see `Scale`; by default that of the
            design.
    """

    file: Path | None = None
    platform: str | None = None
    data: tuple[Path, ...] = ()
    duplicates: Literal["all", "first", "last"] = "all"
    keep: tuple[str, ...] = ()
    simulate: str | None = None
    scale: Scale | None = None


SECTIONS: dict[str, type[Any]] = {
    "texts": TextsSection,
    "vocabulary": VocabularySection,
    "sentences": SentencesSection,
    "scores": ScoresSection,
    "pairs": PairSettings,
    "triplets": TripletsSection,
    "selection": SelectionSettings,
    "minimal_pairs": MinimalPairsSection,
    "review": ReviewSection,
    "design": DesignSettings,
    "power": PowerSettings,
    "responses": ResponsesSection,
    "analysis": AnalysisSettings,
}
"""The sections whose keys are fields of a dataclass, in the order of a study."""


@dataclass(frozen=True, kw_only=True)
class TrainingPlace:
    """Text and device on which a model of the study is trained.

    Attributes:
        text: its own training text; by default that of the study.
        device: where a network is trained.
        precision: what it computes in.
    """

    text: str | None = None
    device: Literal["auto", "cpu", "cuda"] = "auto"
    precision: TrainingPrecision = "auto"


def validated(kind: Any, values: Mapping[str, Any], key: Key, problems: Problems) -> Any:
    """The dataclass that the keys of a table fill.

    Where keys are wrong, problems are told, and the value has their defaults, so that what depends
    on other keys can still be checked; None where a key is wrong or lacking that has no default.
    """
    from pydantic import ValidationError

    names = [field.name for field in fields(kind) if kind is TextsSection or field.name != "prose"]
    problems.refuse_unknown(key, values, names)
    good = {name: value for name, value in values.items() if name in names}
    while True:
        try:
            # JSON, whose strict rules are those of TOML: "10" is not a number, a list is a tuple
            text = json.dumps(good, default=str)
            return adapter(kind).validate_json(text, strict=True)
        except ValidationError as error:
            bad = set()
            for detail in error.errors():
                place = tuple(str(part) for part in detail["loc"][:1])
                bad |= {*place}
                problems.add((*key, *place), in_words(detail))
        except ContstimError as error:
            problems.add(key, str(error))
            bad = set()
        before = good
        # Without the keys that are wrong; if none is named, without all but what says the kind
        good = {n: v for n, v in good.items() if n not in bad and (bad or n == "kind")}
        if good == before:
            return None
