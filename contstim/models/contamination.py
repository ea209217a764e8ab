"""Sentences of a study that a model was trained on.

A model knows the sentences of its training text by heart: their scores measure memory, not skill.
So `score` writes into its record the hashes of the scored sentences that stand in each model's
training text, and every command that reads the scores can count them among the sentences it uses.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contstim.models.training_text import sentence_hash
from contstim.records import record_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from contstim.models.training_text import TrainingText
    from contstim.sentence import Sentence

_ENTRY = "training_text"  # of a record: model -> sentences, found, hashes


@dataclass(frozen=True)
class Contamination:
    """The sentences of a study that stand in the training text of a model.

    Attributes:
        model: its name.
        sentences: number of different sentences of the study.
        hashes: of those that stand in the training text, as hexadecimal numbers.
    """

    model: str
    sentences: int
    hashes: tuple[str, ...]

    @property
    def share(self) -> float:
        """Share of the sentences that stand in the training text."""
        return len(self.hashes) / self.sentences if self.sentences else 0.0


def contamination(
    texts: Mapping[str, TrainingText | None], sentences: Iterable[Sentence]
) -> dict[str, Contamination | None]:
    """The sentences that each model was trained on; None for a model without a training text.

    Args:
        texts: the training text of each model, by the model's name.
        sentences: those of the study; repeated ones count once.

    Raises:
        ModelError: the hashes of a training text are damaged.
    """
    distinct = list(dict.fromkeys(sentences))
    results: dict[str, Contamination | None] = {}
    for name, text in texts.items():
        results[name] = None
        if text is not None:
            pairs = zip(distinct, text.holds(distinct), strict=True)
            hashes = tuple(_hex(sentence) for sentence, is_in_text in pairs if is_in_text)
            results[name] = Contamination(name, len(distinct), hashes)
    return results


def contamination_facts(
    results: Mapping[str, Contamination | None],
) -> dict[str, dict[str, dict[str, Any] | None]]:
    """The entry of a record, as `read_contamination` reads it."""
    return {
        _ENTRY: {
            name: None
            if result is None
            else {
                "sentences": result.sentences,
                "found": len(result.hashes),
                "hashes": list(result.hashes),
            }
            for name, result in results.items()
        }
    }


def read_contamination(
    scores: Path | str, models: Iterable[str], sentences: Iterable[Sentence]
) -> dict[str, Contamination | None]:
    """The contamination of some of the sentences of a table of scores, from the record beside it.

    None for all models if there is no record, or a record without such an entry.
    """
    try:
        entry = json.loads(record_path(scores).read_text(encoding="utf-8"))[_ENTRY]
    # Records warn of what they say; one that is missing or damaged takes no scores away
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        entry = None
    by_model = entry if isinstance(entry, dict) else {}
    hashes = dict.fromkeys(map(_hex, sentences))
    results: dict[str, Contamination | None] = {}
    for model in models:
        facts = by_model.get(model)
        recorded = facts.get("hashes") if isinstance(facts, dict) else None
        results[model] = None
        if isinstance(recorded, list):
            in_text = {value for value in recorded if isinstance(value, str)}
            among = tuple(value for value in hashes if value in in_text)
            results[model] = Contamination(model, len(hashes), among)
    return results


def contamination_warnings(
    results: Mapping[str, Contamination | None], what: str = "sentences"
) -> list[str]:
    """Warnings, one for all models that were trained on the same of the sentences.

    Args:
        results: by the model's name.
        what: a name for the sentences, such as `selected sentences`.
    """
    # By the very sentences: models trained on one text are warned of in one line
    groups: dict[tuple[str, ...], list[Contamination]] = {}
    for result in results.values():
        if result is not None and result.hashes:
            groups.setdefault(result.hashes, []).append(result)
    return [
        f"{len(hashes):,} of {group[0].sentences:,} {what} ({100 * group[0].share:.1f} %) stand in "
        f"the training text of {', '.join(result.model for result in group)}: such scores measure "
        f"memory. Leave these sentences out ('contstim sentences --exclude TEXT')."
        for hashes, group in groups.items()
    ]


def _hex(sentence: Sentence) -> str:
    return f"{sentence_hash(sentence):016x}"
