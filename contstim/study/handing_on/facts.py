"""Facts in the records, certificates and tables of a study, read once for all texts about it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import asdict
from functools import cached_property
from itertools import combinations
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from contstim.experiments.analysis.effects import planned_families
from contstim.experiments.design.population import AS_MEASURED
from contstim.experiments.responses.admission import CatchRule
from contstim.experiments.responses.questionnaire import (
    described,
    questions_beside,
    read_answers,
    read_questions,
)
from contstim.experiments.responses.table import UNRATED, read_responses
from contstim.files.documents import read_json_object, read_text
from contstim.files.files import checksum
from contstim.files.records import record_path
from contstim.files.tables import cells_by_name, read_table
from contstim.items.reviews import Decision, ItemKind, Review, read_reviews
from contstim.items.scale import Scale
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import (
    CONTROVERSIAL,
    Condition,
    Kind,
    read_controversial_minimal_pairs,
    read_pairs,
    read_stimuli,
    read_trials,
    read_triplets,
)
from contstim.models.catalog import parameter_count
from contstim.models.end_marks import reads_end_mark
from contstim.models.specifications import hub_commit, parse_model
from contstim.reporting.templates import in_a_row
from contstim.steps.analysis import AnalyzeResponses
from contstim.steps.design import MakeDesign, word_frequencies
from contstim.steps.platforms import ExportTrials
from contstim.steps.selection import SelectMinimalPairs, SelectPairs, SelectTriplets
from contstim.steps.sentences import FindSentences
from contstim.steps.simulation import SimulatePower
from contstim.steps.training import TrainNetwork, TrainNgram
from contstim.steps.triplets import SearchTriplets
from contstim.steps.vocabulary import MakeVocabulary, VocabularySettings
from contstim.study.planning import contrasts_of, over_groups
from contstim.study.study import NATURAL_TEXT, RESULTS, TRAINING, embedded_text
from contstim.wording import quantity
from contstim.words.corpus import read_sentences
from contstim.words.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from contstim.experiments.analysis.families import ModelContrast
    from contstim.experiments.responses.questionnaire import Question
    from contstim.experiments.responses.table import Response
    from contstim.items.stimuli import ControversialMinimalPair, Pair, Trial, Triplet
    from contstim.steps.sentences import SentenceSettings
    from contstim.steps.step import Step
    from contstim.study.study import Study
    from contstim.words.frequencies import WordFrequencies
    from contstim.words.sentence import Sentence

Row = dict[str, Any]

# Search outcomes: column heading → keys in the record of the searches to sum
_FATES = {"skipped": ("inadmissible", "unchanged"), "of these after a search": ("unchanged",)}
_FATES |= {"failed": ("failed",), "not found": ("missing",)}


class StudyFacts:
    """Facts of a study, as templates name them; empty for stages that are not done.

    The current folder is the study's.

    Attributes:
        study: the study.
        power: settings of [power]; None if the study has none.
        planned_analysis: settings of [analyze], likewise.
    """

    def __init__(self, study: Study) -> None:
        self.study = study
        power, analysis = study.step(SimulatePower), study.step(AnalyzeResponses)
        self.power = None if power is None else power.settings
        self.planned_analysis = None if analysis is None else analysis.settings

    def out(self, kind: type[Step[Any]]) -> Path | None:
        """The first output of the stage with a step of a class; None if the study has none."""
        step = self.study.step(kind)
        return None if step is None else step.writes()[0]

    def path(self, kind: str) -> Path | None:
        """The study's file of a kind, such as `vocabulary`; None if it has none."""
        path: Path | None = self.study.files.get(kind)
        return path

    def record(self, kind: type[Step[Any]] | Path) -> Row:
        """The record of an output, or of the stage with a step of a class; empty without one."""
        step = None if isinstance(kind, Path) else self.study.step(kind)
        path = record_path(kind) if isinstance(kind, Path) else step and step.record_path()
        return read_json_object(path) if path and path.is_file() else {}

    def certificate(self, kind: type[Step[Any]]) -> Row:
        """The certificate of the table that a step writes; empty where there is none."""
        path = Path(f"{self.out(kind)}.certificate.json")
        return read_json_object(path) if path.is_file() else {}

    def _items(self, kind: type[Step[Any]], read: Callable[[Path], Sequence[Any]]) -> Sequence[Any]:
        path = self.out(kind)
        return read(path) if path is not None and path.is_file() else ()

    # Texts and models

    @cached_property
    def texts(self) -> list[Row]:
        """Each text: its use, file, number of lines, checksum, or how many embedded sentences."""
        texts, models = self.study.texts, [model for model in self.study.models if model.training]
        learn = [f"the training of {model.name}" for model in models if model.own_text is None]
        uses = [
            (in_a_row(["the vocabulary", *learn]), texts.training, TRAINING),
            ("natural sentences", texts.natural, NATURAL_TEXT),
        ]
        uses += [(f"the training of {e.name}", e.own_text, e.embedded_text) for e in models]
        # Models that sections train, such as a judge of sentences
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
        """Scoring convention of each model, by its name: rule, unit, fingerprint and the like."""
        paths = filter(None, map(self.path, ("scores", "scores of trials")))
        outputs: list[Path | type[Step[Any]]] = [*paths, SearchTriplets, MakeVocabulary]
        for output in outputs:
            models = self.record(output).get("models", {})
            if models:
                return {m.name: models[m.name] for m in self.study.models if m.name in models}
        return {}

    @cached_property
    def names(self) -> list[str]:
        """The models."""
        return [*self.study.names]

    @cached_property
    def models(self) -> list[Row]:
        """Each model: where it is from, and how it scores."""
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
        """Ways in which models score, each with the names of its models."""
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
        """The study's n-gram models: order, number of n-grams, smoothing."""
        models = [
            (model.name, self.record(model.files[0]))
            for model in self.study.models
            if isinstance(model.training, TrainNgram)
        ]
        return [
            {**record, "name": name, "numbers": " + ".join(f"{n:,}" for n in record["ngrams"])}
            for name, record in models
            if record
        ]

    @cached_property
    def networks(self) -> list[Row]:
        """The study's networks: sizes, settings and outcome of their training."""
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
    def model_pairs(self) -> list[tuple[str, str]]:
        """Every two models, in the order of the study."""
        return list(combinations(self.names, 2))

    @cached_property
    def contrasts(self) -> Sequence[ModelContrast]:
        """Planned contrasts between two models, and between a model and the noise ceiling."""
        return contrasts_of(self.study) if len(self.names) > 1 else ()

    @cached_property
    def contrast_families(self) -> Mapping[tuple[int, int], int]:
        """(contrasts, of these between two models) → number of families of that size."""
        return planned_families(self.trials, self.names, self.contrasts, self.scale)

    @property
    def tests(self) -> int:
        """Number of planned tests in all families."""
        return sum(size * number for (size, _), number in self.contrast_families.items())

    @property
    def few_groups(self) -> bool:
        """True if tests over groups could show nothing."""
        return over_groups(self.study, self.groups).hopeless

    # Words, sentences and items

    @cached_property
    def vocabulary(self) -> Row:
        """The record of the vocabulary, with words counted in the current file."""
        record, path = self.record(MakeVocabulary), self.out(MakeVocabulary)
        if record and path and path.is_file():
            words, choice = Vocabulary.load(path), record["choice"]
            now = {"initial": len(words.initial), "inner": len(words.inner)}
            record["words"] = {**record["words"], **now}
            names = {name: choice[name] for name in ("names", "language", "every_word")}
            record["keeps_names"] = VocabularySettings(**names).keeps_names
        return record

    @cached_property
    def natural(self) -> Sequence[Sentence]:
        """The natural sentences."""
        path = self.path("sentences")
        return read_stimuli(path) if path is not None and path.is_file() else ()

    @property
    def sentence_settings(self) -> SentenceSettings | None:
        """Rules for natural sentences; None if a file provides the sentences."""
        step = self.study.step(FindSentences)
        return step.settings if step and self.natural else None

    @property
    def excluded_texts(self) -> list[str]:
        """Names of texts whose sentences are no natural sentences, without training texts."""
        step, training_texts = self.study.step(FindSentences), self.study.training_texts
        return [path.name for path in step.exclude if path not in training_texts] if step else []

    @property
    def excludes_training(self) -> bool:
        """True if sentences of all training texts are no natural sentences."""
        step, training_texts = self.study.step(FindSentences), self.study.training_texts
        return bool(step and training_texts and {*training_texts} <= {*step.exclude})

    @cached_property
    def training_overlap(self) -> dict[str, Row | None]:
        """Natural sentences in each model's training text; None where that text is unknown."""
        entries: Row = {}
        outputs: list[Path | type[Step[Any]]] = [SearchTriplets]
        for output in (*outputs, *filter(None, [self.path("scores")])):
            entries |= self.record(output).get("training_text", {})
        return {name: entries.get(name) for name in self.names} if entries else {}

    @property
    def unknown_training_texts(self) -> list[str]:
        """Models whose training text is unknown."""
        models = (model for model in self.study.models if model.training is None)
        return [model.name for model in models if not self.training_overlap.get(model.name)]

    @cached_property
    def lengths(self) -> list[tuple[int, int]]:
        """Each length of natural sentences, in words, and how many have it."""
        return sorted(Counter(map(len, self.natural)).items())

    @cached_property
    def pairs(self) -> Sequence[Pair]:
        """The natural pairs."""
        return self._items(SelectPairs, read_pairs)

    @cached_property
    def scores(self) -> ScoreTable | None:
        """Scores of the natural sentences; None where there are none yet."""
        path = self.path("scores")
        return ScoreTable.from_file(path) if path and path.is_file() else None

    @cached_property
    def found_triplets(self) -> Sequence[Triplet]:
        """The triplets that searches found."""
        return self._items(SearchTriplets, read_triplets)

    @cached_property
    def selected(self) -> Sequence[Triplet]:
        """The triplets that were selected among these."""
        return self._items(SelectTriplets, read_triplets)

    @cached_property
    def searches(self) -> list[Row]:
        """Record of the searches for each model pair, in the order of the study."""
        of_pairs = {
            frozenset((search["model_1"], search["model_2"])): search
            for search in self.record(SearchTriplets).get("pairs", [])
        }
        return [of_pairs.get(frozenset(pair), {}) for pair in self.model_pairs]

    @cached_property
    def triplet_columns(self) -> dict[str, list[int]]:
        """Numbers of triplets of every two models, by heading; those that are 0 are left out."""
        columns = {"triplets": self.between(self.found_triplets)}
        for heading, names in _FATES.items():
            numbers = [sum(of_pair.get(name, 0) for name in names) for of_pair in self.searches]
            if any(numbers):
                columns[heading] = numbers
        return columns | ({"selected": self.between(self.selected)} if self.selected else {})

    @cached_property
    def passed_over(self) -> dict[str, int]:
        """Number of unusable natural sentences and unsuccessful searches, by reason."""
        reasons: Counter[str] = Counter()
        for of_pair in self.searches if self.found_triplets else ():
            reasons.update(of_pair.get("reasons", {}))
        # Without the numbers of each search
        vain = self.record(SearchTriplets).get("unchanged", []) if self.found_triplets else []
        return reasons + Counter(f"unsuccessful search, {x['reason'].split(':')[0]}" for x in vain)

    @property
    def figures(self) -> dict[str, float]:
        """Figures of the triplets that were selected, or, where none were, of all."""
        step: type[Step[Any]] = SelectTriplets if self.selected else SearchTriplets
        figures: dict[str, float] = self.record(step).get("figures", {})
        return figures

    @cached_property
    def controversialities(self) -> list[tuple[object, ...]]:
        """Two models, and of their triplets number, least, mean and greatest controversiality."""
        items = self.selected or self.found_triplets
        of_pairs = {
            pair: [t.controversiality for t in items if {t.model_1, t.model_2} == {*pair}]
            for pair in self.model_pairs
        }
        return [(*p, len(v), min(v), fmean(v), max(v)) for p, v in of_pairs.items() if v]

    def between(self, items: Iterable[Pair | Triplet | Trial]) -> list[int]:
        """Number of items that set two models against each other, for every two."""
        counts = Counter(frozenset((item.model_1, item.model_2)) for item in items)
        return [counts[frozenset(pair)] for pair in self.model_pairs]

    @cached_property
    def minimal_pairs(self) -> Sequence[ControversialMinimalPair]:
        """The minimal pairs on which models differ."""
        return self._items(SelectMinimalPairs, read_controversial_minimal_pairs)

    @cached_property
    def verdicts(self) -> list[Row]:
        """Rows of the table of verdicts by paradigm and models, of texts."""
        path = Path(f"{self.out(SelectMinimalPairs)}.verdicts.csv")
        table = read_table(path) if self.minimal_pairs and path.is_file() else {}
        return cells_by_name(table)

    # Reviews

    @cached_property
    def decisions(self) -> list[Path]:
        """Files of reviewers' decisions, of all stages that select."""
        files = (path for s in self.study.stages for path in getattr(s.step, "review", ()))
        return [*dict.fromkeys(files)]

    @cached_property
    def review(self) -> Review | None:
        """Decisions of reviewers; None where the study has no reviews."""
        files = [path for path in self.decisions if path.is_file()]
        return read_reviews(files) if files else None

    @cached_property
    def reviewers(self) -> list[tuple[object, ...]]:
        """Reviewer, kind of items, and how many they kept, rejected and did not decide."""
        decisions = self.review.decisions if self.review else ()
        decided = Counter((item.reviewer, item.kind, item.decision) for item in decisions)
        order = (Decision.KEEP, Decision.REJECT, Decision.NONE)
        return [
            (who, f"{kind}s", *(decided[who, kind, decision] for decision in order))
            for who, kind in dict.fromkeys((item.reviewer, item.kind) for item in decisions)
        ]

    @cached_property
    def rejections(self) -> list[tuple[ItemKind, int, int]]:
        """Kind of items, how many were rejected, and of how many."""
        review = self.review or Review(())
        kinds = [(kind, review.of_kind(kind)) for kind in ItemKind]
        return [(k, len(review.rejected & items.keys()), len(items)) for k, items in kinds if items]

    @cached_property
    def reasons(self) -> Counter[str]:
        """Reasons of rejections, with their numbers."""
        decisions = self.review.decisions if self.review else ()
        rejected = (item for item in decisions if item.decision is Decision.REJECT)
        return Counter(item.reason.strip() or "(no reason given)" for item in rejected)

    # Trials

    @cached_property
    def trials(self) -> Sequence[Trial]:
        """The trials of all groups."""
        return self._items(MakeDesign, read_trials)

    @cached_property
    def groups(self) -> int:
        """Number of groups of participants."""
        return len({trial.group for trial in self.trials})

    @cached_property
    def per_group(self) -> int:
        """Number of trials for a participant, the same in all groups."""
        return sum(trial.group == 1 for trial in self.trials)

    @cached_property
    def conditions(self) -> list[Row]:
        """Each condition: its trials in all, in a group, and for every two models."""
        rows = []
        for condition in Condition:
            trials = [trial for trial in self.trials if trial.condition is condition]
            if trials:
                row: Row = {"name": str(condition), "trials": len(trials)}
                row["per_group"] = sum(trial.group == 1 for trial in trials)
                row["between"] = self.between(trials)
                row["rivals"] = sum(map(bool, row["between"])) if condition in CONTROVERSIAL else 0
                rows.append({**row, "measures": self._measures(trials)})
        return rows

    def _measures(self, trials: Iterable[Trial]) -> list[tuple[object, ...]]:
        """Kind and number of distinct sentences; mean (deviation) of each of `_sizes`."""
        kinds: dict[str, dict[Sentence, None]] = {}
        for trial in trials:
            kinds.setdefault(trial.kind_1, {})[trial.sentence_1] = None
            kinds.setdefault(trial.kind_2, {})[trial.sentence_2] = None
        rows: list[tuple[object, ...]] = []
        for kind, sentences in sorted(kinds.items()):
            values = [[*map(size, sentences)] for size in self._sizes]
            spreads = [f"{stdev(sizes):.2f}" if len(sizes) > 1 else "nan" for sizes in values]
            cells = [f"{fmean(v):.2f} ({s})" for v, s in zip(values, spreads, strict=True)]
            rows.append((kind, len(sentences), *cells))
        return rows

    @property
    def _sizes(self) -> tuple[Callable[[Sentence], float], ...]:
        return (len, lambda sentence: len(sentence.bare), self.frequencies.mean_zipf)

    @cached_property
    def sizes(self) -> list[float]:
        """Mean words, characters and Zipf frequency of all distinct sentences to compare."""
        stimuli = (trial for trial in self.trials if trial.kind_1 is not Kind.INSTRUCTION)
        sentences = {s: None for trial in stimuli for s in (trial.sentence_1, trial.sentence_2)}
        return [len(sentences), *(fmean(map(size, sentences)) for size in self._sizes)]

    @cached_property
    def frequencies(self) -> WordFrequencies:
        """Word frequencies as the design's summary has them."""
        text = self.record(MakeDesign).get("text")
        return word_frequencies(None if text is None else Path(text), self.natural, self.trials)

    # People and analysis

    @cached_property
    def responses(self) -> Sequence[Response]:
        """Responses of people, or of artificial participants; empty if there are none yet."""
        path, analysis = self.path("responses"), self.study.step(AnalyzeResponses)
        if path is None or not path.is_file():
            return ()
        scale = None if analysis is None else analysis.scale
        return read_responses(path, self.trials, scale=scale)

    @cached_property
    def asked_in(self) -> Path | None:
        """Table of the questions about participants."""
        exports = self.study.steps(ExportTrials)
        stated = (getattr(step.settings, "questions", None) for step in exports)
        exported = (RESULTS / "export").rglob("questions.csv")
        return next(
            (path for path in (*stated, *sorted(exported)) if path and path.is_file()), None
        )

    @cached_property
    def asked_questions(self) -> tuple[Question, ...]:
        """Questions about participants."""
        return read_questions(self.asked_in) if self.asked_in else ()

    @cached_property
    def questions(self) -> list[str]:
        """Answers of the analysed participants to questions; see `described`."""
        responses = self.path("responses")
        path = responses and questions_beside(responses)
        unknown = self.planned_analysis and not self.analysis  # who is left out
        if not path or not path.is_file() or unknown:
            return []
        left_out = self.analysis.get("left_out", {})
        who = {name for name, artificial in self.participants.items() if not artificial}
        answers = [a for a in read_answers(path) if a.participant in who - left_out.keys()]
        return described(self.asked_questions, answers)

    @cached_property
    def participants(self) -> dict[str, bool]:
        """Who answered, and whether artificial."""
        return {response.participant: response.simulated for response in self.responses}

    @property
    def rated(self) -> int:
        """Number of responses that give a rating: a trial may be shown and left without one."""
        return sum(response.rating != UNRATED for response in self.responses)

    @property
    def simulated(self) -> int:
        """Number of artificial participants."""
        return sum(self.participants.values())

    @property
    def scale(self) -> Scale:
        """Scale of answers: as the design asks for, or else as the responses say."""
        design = self.study.step(MakeDesign)
        if design is not None and design.settings.scale is not Scale.CONFIDENCE:
            return Scale(design.settings.scale)
        return self.responses[0].scale if self.responses else Scale.CONFIDENCE

    @property
    def max_missing(self) -> float:
        """Share of trials that a participant may leave unrated."""
        return self.planned_analysis.max_missing if self.planned_analysis else 0.0

    @property
    def partial(self) -> bool:
        """True if some analyses take unfinished sessions."""
        return bool(self.planned_analysis and self.planned_analysis.partial)

    @cached_property
    def analysis(self) -> Row:
        """The record of the analysis; empty where there is none."""
        return self.record(AnalyzeResponses)

    @cached_property
    def statistics(self) -> list[str]:
        """Paragraphs of the analysis on its own statistics."""
        folder = self.out(AnalyzeResponses)
        path = folder and folder / "methods.md"
        text = read_text(path).strip() if path and self.analysis and path.is_file() else ""
        # The works are listed with those of the whole section
        leave_out = ("#", "References:")
        return [
            paragraph
            for paragraph in text.split("\n\n")
            if paragraph and not paragraph.startswith(leave_out)
        ]

    @cached_property
    def catch_trials(self) -> tuple[int, int] | None:
        """How many catch trials a participant needs right, and of how many; None without any."""
        number = sum(row["per_group"] for row in self.conditions if row["name"] == Condition.CATCH)
        least = None if self.planned_analysis is None else self.planned_analysis.min_catch
        return (CatchRule.of(least).required(number), number) if number else None

    @property
    def exclusion_rules(self) -> list[str]:
        """Rules of the section [analyze] that exclude participants, except for catch trials."""
        planned = self.planned_analysis
        return [rule for rule, _ in planned.rules()] if planned else []

    @property
    def excluded(self) -> dict[str, int]:
        """Rules that left participants out, and how many."""
        counts = self.analysis.get("left_out_by_rule", {})
        return {rule: number for rule, number in counts.items() if number}

    @cached_property
    def simulation(self) -> Row:
        """Row of the simulated experiment for all trials of the design; empty without power."""
        step = self.study.step(SimulatePower)
        table, path, *_ = step.writes() if step else (Path(), Path())
        if not path.is_file():
            return {}
        # The first row of a scope is that of the design as planned
        rows = cells_by_name(read_table(path))
        row = next((row for row in rows if row["scope"] == "overall"), {})
        people = read_table(table).get("people", [])
        return {**row, "as_measured": AS_MEASURED in people} if row else {}

    @cached_property
    def left_out(self) -> list[tuple[str, str, int]]:
        """Everything that was left out anywhere: what, because of what, and how many."""
        dropped = self.vocabulary.get("words", {}).get("dropped", 0)
        unequal = self.vocabulary.get("same_token_count")
        counts: dict[str, dict[str, int]] = {
            "words, at first and at other positions": self.vocabulary.get("left_out", {}),
            "natural sentences": self.record(FindSentences).get("left_out", {}),
            "natural sentences, skipped": self.passed_over,
            "participants": self.excluded,
        }
        rows = [(items, why, n) for items, reasons in counts.items() for why, n in reasons.items()]
        if dropped:
            or_cut = (
                ", or tokenizers split them into different numbers of tokens" if unequal else ""
            )
            rows.append(("words", f"not every model knows them{or_cut}", dropped))
        return rows + [
            (f"{kind}s", "rejected by a reviewer", n) for kind, n, _ in self.rejections if n
        ]


def for_each(items: Sequence[Pair | Triplet]) -> str:
    """`6 for each of 3 pairs of models`, where the numbers are equal; else least and most."""
    counts = Counter(frozenset((item.model_1, item.model_2)) for item in items).values()
    if len(counts) == 1:
        return "all of them for one pair of models"
    numbers = " to ".join(f"{n:,}" for n in dict.fromkeys((min(counts), max(counts))))
    return f"{numbers} for each of {quantity(len(counts), 'pair')} of models"
