"""Facts of the materials of a study: texts, models, words, sentences and items."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import asdict
from functools import cached_property
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from contstim.files.documents import read_json_object
from contstim.files.files import checksum
from contstim.files.records import record_path
from contstim.files.tables import cells_by_name, read_table
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import (
    read_controversial_minimal_pairs,
    read_pairs,
    read_stimuli,
    read_triplets,
)
from contstim.models.catalog import parameter_count
from contstim.models.specifications import hub_commit, parse_model
from contstim.models.vocabularies import reads_end_mark
from contstim.reporting.templates import in_a_row
from contstim.steps.selection import SelectMinimalPairs, SelectPairs, SelectTriplets
from contstim.steps.sentences import FindSentences
from contstim.steps.training import TrainNetwork, TrainNgram
from contstim.steps.triplets import SearchTriplets
from contstim.steps.vocabulary import MakeVocabulary, keeps_names
from contstim.study.study import NATURAL_TEXT, TRAINING, embedded_text
from contstim.wording import grouped, quantity
from contstim.words.corpus import read_sentences
from contstim.words.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from contstim.items.stimuli import ControversialMinimalPair, Pair, Trial, Triplet
    from contstim.steps.sentences import SentenceSettings
    from contstim.steps.step import Step
    from contstim.study.study import Study
    from contstim.words.sentence import Sentence

Row = dict[str, Any]

# Search outcomes: column heading → keys whose numbers in the record of the searches are summed
_OUTCOMES = {"skipped": ("inadmissible", "unchanged"), "skipped after a search": ("unchanged",)}
_OUTCOMES |= {"failed": ("failed",), "not found": ("missing",)}


class MaterialFacts:
    """Facts of the materials of a study. A fact is empty if the output with this fact is missing.

    The current folder must be the study's folder. A record is a JSON file next to an output, about
    the command that wrote the output. A certificate is a JSON file about a selection, with proof
    that the selection is optimal.

    Attributes:
        model_pairs: names of both models of each pair of models, in the order of the study.
    """

    def __init__(self, study: Study) -> None:
        self.study = study
        self.names = [*study.names]
        self.model_pairs = list(combinations(self.names, 2))

    def out(self, kind: type[Step[Any]]) -> Path | None:
        """Return the main output of the first step of a class; None if there is no such step."""
        step = self.study.step(kind)
        return None if step is None else step.writes()[0]

    def path(self, kind: str) -> Path | None:
        """Return the study's file of a kind, such as `vocabulary`; None if it has no such file."""
        path: Path | None = self.study.files.get(kind)
        return path

    def record(self, source: type[Step[Any]] | Path | None) -> Row:
        """Return the record of an output, or of the first step of a class; empty without one."""
        step = self.study.step(source) if isinstance(source, type) else None
        path = record_path(source) if isinstance(source, Path) else step and step.record_path()
        return read_json_object(path) if path and path.is_file() else {}

    def certificate(self, kind: type[Step[Any]]) -> Row:
        """Return the certificate of the table that a step writes; empty without one."""
        path = Path(f"{self.out(kind)}.certificate.json")
        return read_json_object(path) if path.is_file() else {}

    def _items(self, path: Path | None, read: Callable[[Path], Sequence[Any]]) -> Sequence[Any]:
        return read(path) if path is not None and path.is_file() else ()

    @cached_property
    def texts(self) -> list[Row]:
        """For each text: use, file, number of embedded sentences, number of lines, checksum."""
        texts, models = self.study.texts, [model for model in self.study.models if model.training]
        learn = [f"the training of {model.name}" for model in models if model.own_text is None]
        uses = [
            (in_a_row(["the vocabulary", *learn]), texts.training, TRAINING),
            ("natural sentences", texts.natural, NATURAL_TEXT),
        ]
        uses += [(f"the training of {e.name}", e.own_text, e.embedded_text) for e in models]
        # Models that other sections train, such as a judge
        for stage in self.study.stages:
            step = stage.step
            if stage.kind == "train" and isinstance(step, TrainNgram | TrainNetwork):
                use = f"the training of {step.out}"
                if isinstance(step, TrainNgram):
                    use += f", an n-gram model of order {step.order}"
                if step.text != texts.training_text:
                    uses.append((use, str(step.text), step.text))
        rows = []
        for use, text, written in uses:
            if text:
                embedded = embedded_text(text)
                path = written if embedded else Path(text)
                is_there = path.is_file()
                row = {"use": use, "name": path.name, "embedded": embedded}
                row["lines"] = sum(1 for _ in read_sentences(path)) if is_there else "–"
                row["checksum"] = checksum(path)[len("sha256:") :][:16] if is_there else "–"
                rows.append(row)
        return rows

    @cached_property
    def conventions(self) -> dict[str, Row]:
        """Model → its scoring convention, such as rule, unit and fingerprint."""
        paths = map(self.path, ("scores", "scores of trials"))
        records = map(self.record, (*paths, SearchTriplets, MakeVocabulary))
        models: Row = next((record["models"] for record in records if record.get("models")), {})
        return {name: models[name] for name in self.names if name in models}

    @cached_property
    def models(self) -> list[Row]:
        """For each model: its source, and its scoring convention."""
        rows = []
        for model in self.study.models:
            location = model.location
            on_hub = model.training is None and not model.files
            row: Row = dict.fromkeys(("rule", "unit", "precision", "fingerprint"), "–")
            row |= {"context_tokens": [], "served": "://" in location}
            row |= self.conventions.get(model.name, {})
            row |= {"name": model.name, "location": location, "file": Path(location).name}
            row |= {"trained": model.training is not None, "on_hub": on_hub}
            row |= {"commit": hub_commit(location) if on_hub else ""}
            rows.append({**row, "parameters": parameter_count(location)})
        return rows

    @cached_property
    def scorings(self) -> list[Row]:
        """Scoring methods, each with the names of the models that use it."""
        ways: dict[tuple[object, ...], Row] = {}
        for model in self.study.models:
            convention = self.conventions.get(model.name)
            if convention is None:
                continue
            parsed = parse_model(model.specification, model.name)
            training = model.training
            way = {
                "family": parsed.family,
                "rule": re.split("[@+]", str(convention["rule"]))[0],
                "end_mark": reads_end_mark(str(convention["rule"])),
                "unit": "token" if parsed.family == "hf" else "word",
                "order": training.order if isinstance(training, TrainNgram) else None,
                "transform": parsed.transform,
                "end_scored": convention["end_scored"],
                "sampling": convention["sampling"],
            }
            ways.setdefault(tuple(way.values()), {**way, "names": []})["names"].append(model.name)
        return list(ways.values())

    @cached_property
    def ngrams(self) -> list[Row]:
        """For each n-gram model: order, numbers of n-grams, smoothing."""
        rows = []
        for model in self.study.models:
            if isinstance(model.training, TrainNgram) and (record := self.record(model.files[0])):
                numbers = " + ".join(f"{n:,}" for n in record["ngrams"])
                rows.append({**record, "name": model.name, "numbers": numbers})
        return rows

    @cached_property
    def networks(self) -> list[Row]:
        """For each trained network: sizes, and settings and outcome of the training."""
        rows = []
        for model in self.study.models:
            training, path = model.training, Path(model.location) / "training.json"
            if isinstance(training, TrainNetwork) and path.is_file():
                sizes = {k: v for k, v in asdict(training.network).items() if v is not None}
                row = {"name": model.name, "kind": sizes.pop("kind")}
                row["sizes"] = ", ".join(f"{k.replace('_', ' ')} {v:g}" for k, v in sizes.items())
                rows.append({**row, "settings": training.training, **read_json_object(path)})
        return rows

    @cached_property
    def vocabulary(self) -> Row:
        """The record of the vocabulary, with the numbers of words in the current file."""
        record, path = self.record(MakeVocabulary), self.out(MakeVocabulary)
        if record and path and path.is_file():
            words, choice = Vocabulary.load(path), record["choice"]
            now = {"initial": len(words.initial), "inner": len(words.inner)}
            record["words"] = {**record["words"], **now}
            record["keeps_names"] = keeps_names(choice["names"], choice["language"])
        return record

    @cached_property
    def natural(self) -> Sequence[Sentence]:
        """The natural sentences."""
        return self._items(self.path("sentences"), read_stimuli)

    @property
    def sentence_settings(self) -> SentenceSettings | None:
        """Rules for natural sentences; None if a file provides the sentences."""
        step = self.study.step(FindSentences)
        return step.settings if step and self.natural else None

    @property
    def excluded_texts(self) -> list[str]:
        """Names of texts whose sentences are excluded, without training texts."""
        step, training_texts = self.study.step(FindSentences), self.study.training_texts
        return [path.name for path in step.exclude if path not in training_texts] if step else []

    @property
    def excludes_training(self) -> bool:
        """True if the sentences of all training texts are excluded."""
        step, training_texts = self.study.step(FindSentences), self.study.training_texts
        return bool(step and training_texts and {*training_texts} <= {*step.exclude})

    @cached_property
    def training_overlap(self) -> dict[str, Row | None]:
        """Model → facts about natural sentences in its training text; None if it is unknown."""
        searches, scores = self.record(SearchTriplets), self.record(self.path("scores"))
        entries = searches.get("training_text", {}) | scores.get("training_text", {})
        return {name: entries.get(name) for name in self.names} if entries else {}

    @property
    def unknown_training_texts(self) -> list[str]:
        """Models whose training text is unknown."""
        models = (model for model in self.study.models if model.training is None)
        return [model.name for model in models if not self.training_overlap.get(model.name)]

    @cached_property
    def lengths(self) -> list[tuple[int, int]]:
        """Length of natural sentences, in words, and number of sentences of this length."""
        return sorted(Counter(map(len, self.natural)).items())

    @cached_property
    def pairs(self) -> Sequence[Pair]:
        """The natural pairs."""
        return self._items(self.out(SelectPairs), read_pairs)

    @cached_property
    def scores(self) -> ScoreTable | None:
        """Scores of the natural sentences; None without scores."""
        path = self.path("scores")
        return ScoreTable.from_file(path) if path and path.is_file() else None

    @cached_property
    def found_triplets(self) -> Sequence[Triplet]:
        """The triplets that searches found."""
        return self._items(self.out(SearchTriplets), read_triplets)

    @cached_property
    def selected(self) -> Sequence[Triplet]:
        """The selected triplets."""
        return self._items(self.out(SelectTriplets), read_triplets)

    @cached_property
    def searches(self) -> list[Row]:
        """Record of the searches for each pair of models, in the order of the study."""
        searches = self.record(SearchTriplets).get("pairs", [])
        of_pairs = {frozenset((s["model_1"], s["model_2"])): s for s in searches}
        return [of_pairs.get(frozenset(pair), {}) for pair in self.model_pairs]

    @cached_property
    def triplet_columns(self) -> dict[str, list[int]]:
        """Heading → number for each pair of models; without columns in which all numbers are 0."""
        columns = {"triplets": self.between(self.found_triplets)}
        for heading, names in _OUTCOMES.items():
            numbers = [sum(of_pair.get(name, 0) for name in names) for of_pair in self.searches]
            if any(numbers):
                columns[heading] = numbers
        return columns | ({"selected": self.between(self.selected)} if self.selected else {})

    @cached_property
    def skipped(self) -> dict[str, int]:
        """Reason → number of skipped natural sentences."""
        reasons: Counter[str] = Counter()
        if self.found_triplets:
            for of_pair in self.searches:
                reasons.update(of_pair.get("reasons", {}))
            for search in self.record(SearchTriplets).get("unchanged", []):
                # Leave out numbers and models of a single search
                reason = re.split(r": | where ", search["reason"])[0]
                reasons[f"unsuccessful search, {reason}"] += 1
        return +reasons  # without zeros

    @property
    def figures(self) -> dict[str, float]:
        """Statistics of the selected triplets or, without a selection, of all triplets."""
        record = self.record(SelectTriplets if self.selected else SearchTriplets)
        return dict(record.get("figures", {}))

    @cached_property
    def controversialities(self) -> list[tuple[object, ...]]:
        """Two models, number of their triplets, and minimum, mean and maximum controversiality."""
        items = self.selected or self.found_triplets
        of_pairs = grouped((frozenset((t.model_1, t.model_2)), t.controversiality) for t in items)
        values = ((pair, of_pairs.get(frozenset(pair))) for pair in self.model_pairs)
        return [(*pair, len(v), min(v), fmean(v), max(v)) for pair, v in values if v]

    def between(self, items: Iterable[Pair | Triplet | Trial]) -> list[int]:
        """Return the number of items for each pair of models, in the order of the study."""
        counts = Counter(frozenset((item.model_1, item.model_2)) for item in items)
        return [counts[frozenset(pair)] for pair in self.model_pairs]

    @cached_property
    def minimal_pairs(self) -> Sequence[ControversialMinimalPair]:
        """The selected minimal pairs."""
        return self._items(self.out(SelectMinimalPairs), read_controversial_minimal_pairs)

    @cached_property
    def verdicts(self) -> list[Row]:
        """Rows of the table of verdicts by paradigm and pair of models; all cells are texts."""
        path = Path(f"{self.out(SelectMinimalPairs)}.verdicts.csv")
        table = read_table(path) if self.minimal_pairs and path.is_file() else {}
        return cells_by_name(table)


def for_each(items: Sequence[Pair | Triplet]) -> str:
    """Return a text such as `6 for each of 3 pairs of models`.

    If the numbers differ, the text has a range, such as `4 to 6`. For a single pair of models, the
    text has no number.
    """
    counts = Counter(frozenset((item.model_1, item.model_2)) for item in items).values()
    if len(counts) == 1:
        return "all of them for one pair of models"
    numbers = " to ".join(f"{n:,}" for n in dict.fromkeys((min(counts), max(counts))))
    return f"{numbers} for each of {quantity(len(counts), 'pair')} of models"
