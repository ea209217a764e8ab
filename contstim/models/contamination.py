"""How many sentences stand in the training text of a model that is to be compared by them.

Such a model knows them by heart: in the scores of natural sentences, memory passes for skill. So
`score` keeps in its record which sentences these are, by their hashes, and whoever reads the scores
can tell how many of those that it uses are among them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contstim.models.training_text import sentence_hash
from contstim.records import record_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from contstim.models.training_text import TrainingText
    from contstim.sentence import Sentence

_RECORDED = "training_text"


@dataclass(frozen=True)
class Contamination:
    """How many of some sentences a model was trained on.

    Attributes:
        model: its name.
        sentences: how many different ones were looked for.
        found: hashes of those that stand in its training text.
    """

    model: str
    sentences: int
    found: tuple[str, ...]

    @property
    def share(self) -> float:
        """Of the sentences, how many were found."""
        return len(self.found) / self.sentences if self.sentences else 0.0


def contamination(
    texts: Mapping[str, TrainingText | None], sentences: Iterable[Sentence]
) -> dict[str, Contamination | None]:
    """What each model was trained on of the sentences; None where its text is not known.

    Args:
        texts: the training text of each model, by the model's name.
        sentences: repeated ones count once.

    Raises:
        ModelError: the hashes of a training text are damaged.
    """
    distinct = list(dict.fromkeys(sentences))
    return {
        name: None if text is None else _search(name, text, distinct)
        for name, text in texts.items()
    }


def _search(name: str, text: TrainingText, sentences: Sequence[Sentence]) -> Contamination:
    there = text.holds(sentences)
    found = [_hex(sentence) for sentence, yes in zip(sentences, there, strict=True) if yes]
    return Contamination(name, len(sentences), tuple(found))


def contamination_facts(
    found: Mapping[str, Contamination | None],
) -> dict[str, dict[str, dict[str, Any] | None]]:
    """What a record tells of it, as JSON can hold."""
    told = {
        name: None
        if one is None
        else {"sentences": one.sentences, "found": len(one.found), "hashes": list(one.found)}
        for name, one in found.items()
    }
    return {_RECORDED: told}


def read_contamination(
    scores: Path | str, models: Iterable[str], sentences: Iterable[Sentence]
) -> dict[str, Contamination | None]:
    """The same for some of the sentences of a table of scores, from the record beside it.

    Nothing is known where there is no record, or one without such facts.
    """
    told = _told(scores)
    hashes = dict.fromkeys(map(_hex, sentences))
    found: dict[str, Contamination | None] = {}
    for model in models:
        facts = told.get(model)
        among = facts.get("hashes") if isinstance(facts, dict) else None
        found[model] = None
        if isinstance(among, list):
            there = {one for one in among if isinstance(one, str)}
            found[model] = Contamination(model, len(hashes), tuple(h for h in hashes if h in there))
    return found


def warnings_of(found: Mapping[str, Contamination | None], what: str = "sentences") -> list[str]:
    """A sentence for the models that share a number of sentences; none where nothing was found.

    Args:
        found: by the model's name.
        what: how the sentences are called, such as `selected sentences`.
    """
    together: dict[tuple[str, ...], list[Contamination]] = {}
    for one in found.values():
        if one is not None and one.found:
            together.setdefault(one.found, []).append(one)
    return [
        f"{len(known):,} of {ones[0].sentences:,} {what} ({100 * ones[0].share:.1f} %) stand in "
        f"the training text of {', '.join(one.model for one in ones)}: such scores measure memory. "
        f"Leave these sentences out ('contstim sentences --exclude TEXT')."
        for known, ones in together.items()
    ]


def _told(scores: Path | str) -> dict[str, Any]:
    try:
        record = json.loads(record_path(scores).read_text(encoding="utf-8"))
        told = record[_RECORDED]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def _hex(sentence: Sentence) -> str:
    return f"{sentence_hash(sentence):016x}"
