"""Facts of a study from its records, certificates and tables, for the texts of an archive."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import asdict
from functools import cached_property
from itertools import chain, combinations
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from contstim.experiments.analysis.effects import planned_families
from contstim.experiments.design.population import AS_MEASURED
from contstim.experiments.responses.admission import Exclusions, required_catch
from contstim.experiments.responses.questionnaire import (
    answer_summaries,
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
from contstim.models.specifications import hub_commit, parse_model
from contstim.models.vocabularies import reads_end_mark
from contstim.reporting.templates import in_a_row
from contstim.steps.analysis import AnalyzeResponses
from contstim.steps.design import MakeDesign, TrialsStep, word_frequencies
from contstim.steps.platforms import ExportTrials
from contstim.steps.selection import SelectMinimalPairs, SelectPairs, SelectTriplets
from contstim.steps.sentences import FindSentences
from contstim.steps.simulation import SimulatePower
from contstim.steps.training import TrainNetwork, TrainNgram
from contstim.steps.triplets import SearchTriplets
from contstim.steps.vocabulary import MakeVocabulary, keeps_names
from contstim.steps.waves import DesignWaves
from contstim.study.planning import contrasts_of, over_groups
from contstim.study.study import NATURAL_TEXT, RESULTS, TRAINING, embedded_text
from contstim.wording import grouped, quantity
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

# Outcomes of searches: column heading → keys in the record of the searches. A column shows the sum
# of the numbers of these keys
_OUTCOMES = {"skipped": ("inadmissible", "unchanged"), "skipped after a search": ("unchanged",)}
_OUTCOMES |= {"failed": ("failed",), "not found": ("missing",)}


class StudyFacts:
    """Facts of a study for templates. A fact is empty if the output with this fact does not exist.

    The current folder must be the study's folder. A record is a JSON file next to an output, about
    the command that wrote the output. A certificate is a JSON file about a selection, with proof
    that the selection is optimal. A study with waves recruits participants in several waves; later
    waves drop models that another model beats.

    Attributes:
        model_pairs: names of both models of each pair of models, in the order of the study.
        power: step of `[power]`; None if the study has no such section.
        planned_analysis: step of `[analyze]`; None if the study has no such section.
        wave_step: step of `[waves]`; None if the study has no such section.
    """

    def __init__(self, study: Study) -> None:
        self.study = study
        self.names = [*study.names]
        self.model_pairs = list(combinations(self.names, 2))
        self.power, self.planned_analysis = study.step(SimulatePower), study.step(AnalyzeResponses)
        self.wave_step = study.step(DesignWaves)

    def out(self, kind: type[Step[Any]]) -> Path | None:
        """Return the main output of the first step of a class; None if there is no such step."""
        step = self.study.step(kind)
        return None if step is None else step.writes()[0]

    def path(self, kind: str) -> Path | None:
        """Return the study's file of a kind, such as `vocabulary`; None if it has no such file."""
        path: Path | None = self.study.files.get(kind)
        return path

    def record(self, source: type[Step[Any]] | Path | None) -> Row:
        """Return the record of an output, or of the first step of a class; empty if missing."""
        step = self.study.step(source) if isinstance(source, type) else None
        path = record_path(source) if isinstance(source, Path) else step and step.record_path()
        return read_json_object(path) if path and path.is_file() else {}

    def certificate(self, kind: type[Step[Any]]) -> Row:
        """Return the certificate of the table that a step writes; empty without a certificate."""
        path = Path(f"{self.out(kind)}.certificate.json")
        return read_json_object(path) if path.is_file() else {}

    def _items(self, path: Path | None, read: Callable[[Path], Sequence[Any]]) -> Sequence[Any]:
        return read(path) if path is not None and path.is_file() else ()

    # Texts, models, words, sentences and items

    @cached_property
    def texts(self) -> list[Row]:
        """For each text: use, file or N (of generated text `english:N`), lines, and checksum."""
        texts, models = self.study.texts, [model for model in self.study.models if model.training]
        learn = [f"the training of {model.name}" for model in models if model.own_text is None]
        uses = [
            (in_a_row(["the vocabulary", *learn]), texts.training, TRAINING),
            ("natural sentences", texts.natural, NATURAL_TEXT),
        ]
        uses += [(f"the training of {e.name}", e.own_text, e.embedded_text) for e in models]
        # Texts of models that are trained outside [models], such as a judge
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
        """Model → its scoring convention, such as rule, unit and fingerprint.

        A fingerprint identifies everything that determines scores, such as weights and tokenizer.
        """
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
        """Scoring methods, each with the names of the models that use this method."""
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
        """Names of the excluded texts, except training texts.

        A sentence of an excluded text cannot be a natural sentence.
        """
        step, training_texts = self.study.step(FindSentences), self.study.training_texts
        return [path.name for path in step.exclude if path not in training_texts] if step else []

    @property
    def excludes_training(self) -> bool:
        """True if natural sentences must not occur in any training text."""
        step, training_texts = self.study.step(FindSentences), self.study.training_texts
        return bool(step and training_texts and {*training_texts} <= {*step.exclude})

    @cached_property
    def training_overlap(self) -> dict[str, Row | None]:
        """Model → facts about natural sentences in its training text; None if they are unknown."""
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
        """Heading → column with a number for each pair of models; columns of zeros are omitted."""
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
                # Remove numbers, and names of models, because they differ between searches
                reason = re.split(r": | where ", search["reason"])[0]
                reasons[f"unsuccessful search, {reason}"] += 1
        return +reasons  # without zeros

    @property
    def figures(self) -> dict[str, float]:
        """Statistics of the selected triplets; if none are selected, of all triplets."""
        record = self.record(SelectTriplets if self.selected else SearchTriplets)
        return dict(record.get("figures", {}))

    @cached_property
    def controversialities(self) -> list[tuple[object, ...]]:
        """Two models, number of their triplets, and minimum, mean and maximum controversiality.

        The controversiality of a triplet is the sum of two drops in log-probability (nats). Each
        model has a drop from the natural sentence to the synthetic sentence that it rejects.
        """
        items = self.selected or self.found_triplets
        of_pairs = grouped((frozenset((t.model_1, t.model_2)), t.controversiality) for t in items)
        values = ((pair, of_pairs.get(frozenset(pair))) for pair in self.model_pairs)
        return [(*pair, len(v), min(v), fmean(v), max(v)) for pair, v in values if v]

    def between(self, items: Iterable[Pair | Triplet | Trial]) -> list[int]:
        """Return the number of items for each pair of models, in the order of the study."""
        counts = Counter(frozenset((item.model_1, item.model_2)) for item in items)
        return [counts[frozenset(pair)] for pair in self.model_pairs]

    @staticmethod
    def for_each(items: Iterable[Pair | Triplet]) -> str:
        """Return a text such as `6 for each of 3 pairs of models`.

        If the numbers differ, the text has a range, such as `4 to 6`. For a single pair of models,
        the text has no number.
        """
        counts = Counter(frozenset((item.model_1, item.model_2)) for item in items).values()
        if len(counts) == 1:
            return "all of them for one pair of models"
        numbers = " to ".join(f"{n:,}" for n in dict.fromkeys((min(counts), max(counts))))
        return f"{numbers} for each of {quantity(len(counts), 'pair')} of models"

    @cached_property
    def minimal_pairs(self) -> Sequence[ControversialMinimalPair]:
        """The selected minimal pairs."""
        return self._items(self.out(SelectMinimalPairs), read_controversial_minimal_pairs)

    @cached_property
    def verdicts(self) -> list[Row]:
        """Rows of the table of verdicts; all cells are texts.

        The table has a row for each pair of models and each paradigm (kind of minimal pairs). A row
        counts minimal pairs: both models are right, only the first, only the second, or neither.
        """
        path = Path(f"{self.out(SelectMinimalPairs)}.verdicts.csv")
        table = read_table(path) if self.minimal_pairs and path.is_file() else {}
        return cells_by_name(table)

    # Planned tests

    @cached_property
    def contrasts(self) -> Sequence[ModelContrast]:
        """Planned contrasts between two models, and between a model and the noise ceiling."""
        return contrasts_of(self.study) if len(self.names) > 1 else ()

    @cached_property
    def contrast_families(self) -> Mapping[tuple[int, int], int]:
        """(n contrasts, of which k compare two models) → number of families with this n and k.

        A family is a set of contrasts whose p-values are adjusted together. A contrast compares two
        models, or a model and the noise ceiling.
        """
        return planned_families(self.trials, self.names, self.contrasts, self.scale)

    @property
    def tests(self) -> int:
        """Number of planned tests in all families."""
        return sum(size * number for (size, _), number in self.contrast_families.items())

    @property
    def few_groups(self) -> bool:
        """True if there are too few groups for a significant test over groups."""
        return over_groups(self.study, self.groups).hopeless

    # Reviews

    @cached_property
    def decisions(self) -> list[Path]:
        """Files of reviewers' decisions that stages read."""
        files = (path for s in self.study.stages for path in getattr(s.step, "review", ()))
        return [*dict.fromkeys(files)]

    @cached_property
    def review(self) -> Review:
        """Decisions of reviewers; empty if the study has no reviews."""
        return read_reviews([path for path in self.decisions if path.is_file()])

    @cached_property
    def reviewers(self) -> list[tuple[object, ...]]:
        """Reviewer, kind of items, and numbers of kept, rejected and undecided items."""
        decisions = self.review.decisions
        decided = Counter((item.reviewer, item.kind, item.decision) for item in decisions)
        order = (Decision.KEEP, Decision.REJECT, Decision.NONE)
        return [
            (who, f"{kind}s", *(decided[who, kind, decision] for decision in order))
            for who, kind in dict.fromkeys((item.reviewer, item.kind) for item in decisions)
        ]

    @cached_property
    def rejections(self) -> list[tuple[ItemKind, int, int]]:
        """Kind of items, number of rejected items, and number of all items."""
        rejected, kinds = self.review.rejected, [(k, self.review.of_kind(k)) for k in ItemKind]
        return [(k, len(rejected & items.keys()), len(items)) for k, items in kinds if items]

    @cached_property
    def reasons(self) -> Counter[str]:
        """Reason for rejection → number of decisions."""
        rejected = (d for d in self.review.decisions if d.decision is Decision.REJECT)
        return Counter(item.reason.strip() or "(no reason given)" for item in rejected)

    # Waves

    @cached_property
    def waves(self) -> Row:
        """The record of the last wave; empty without waves."""
        return self.record(DesignWaves)

    # Trials

    @cached_property
    def trials(self) -> Sequence[Trial]:
        """The trials of all groups."""
        table = self.out(DesignWaves if self.wave_step else MakeDesign)
        return self._items(table, read_trials)

    @cached_property
    def groups(self) -> int:
        """Number of groups of participants."""
        return len({trial.group for trial in self.trials})

    @cached_property
    def per_group(self) -> int:
        """Number of trials of a participant; it is the same in all groups."""
        return sum(trial.group == 1 for trial in self.trials)

    @cached_property
    def conditions(self) -> list[Row]:
        """For each condition: numbers of trials in total, per group and per pair of models."""
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
        """Return rows: kind of sentence, number of sentences, `mean (SD)` of each of `_sizes`."""
        sides = (((t.kind_1, t.sentence_1), (t.kind_2, t.sentence_2)) for t in trials)
        sentences_by_kind = grouped(chain.from_iterable(sides))
        rows: list[tuple[object, ...]] = []
        for kind, repeated in sorted(sentences_by_kind.items()):
            sentences = dict.fromkeys(repeated)
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
        """Number of distinct sentences, and three means over sentences.

        Averaged are the number of words, the number of characters, and the mean Zipf frequency of
        the words of a sentence.
        """
        stimuli = (trial for trial in self.trials if trial.kind_1 is not Kind.INSTRUCTION)
        sentences = {s: None for trial in stimuli for s in (trial.sentence_1, trial.sentence_2)}
        return [len(sentences), *(fmean(map(size, sentences)) for size in self._sizes)]

    @cached_property
    def frequencies(self) -> WordFrequencies:
        """Word frequencies that the summary of the design uses."""
        text = self.record(MakeDesign).get("text")
        return word_frequencies(None if text is None else Path(text), self.natural, self.trials)

    # People and analysis

    @cached_property
    def responses(self) -> Sequence[Response]:
        """Responses of participants, who may be artificial; empty if there are no responses."""
        path, analysis = self.path("responses"), self.study.step(AnalyzeResponses)
        if path is None or not path.is_file():
            return ()
        scale = None if analysis is None else analysis.scale
        return read_responses(path, self.trials, scale=scale)

    @cached_property
    def asked_in(self) -> Path | None:
        """File with the table of questions to participants; None if there are no questions."""
        exports = self.study.steps(ExportTrials)
        stated = (getattr(step.settings, "questions", None) for step in exports)
        exported = (RESULTS / "export").rglob("questions.csv")
        paths = filter(None, (*stated, *sorted(exported)))
        return next(filter(Path.is_file, paths), None)

    @cached_property
    def asked_questions(self) -> tuple[Question, ...]:
        """Questions to participants."""
        return read_questions(self.asked_in) if self.asked_in else ()

    @cached_property
    def questions(self) -> list[str]:
        """Summaries of the analysed participants' answers to questions; see `answer_summaries`."""
        responses = self.path("responses")
        path = responses and questions_beside(responses)
        # Before the analysis, excluded participants are unknown
        if not path or not path.is_file() or (self.planned_analysis and not self.analysis):
            return []
        left_out = self.analysis.get("left_out", {})
        who = {name for name, artificial in self.participants.items() if not artificial}
        answers = [a for a in read_answers(path) if a.participant in who - left_out.keys()]
        return answer_summaries(self.asked_questions, answers)

    @cached_property
    def participants(self) -> dict[str, bool]:
        """Participant → True if artificial."""
        return {response.participant: response.simulated for response in self.responses}

    @property
    def rated(self) -> int:
        """Number of responses with a rating; a trial that ended without an answer has no rating."""
        return sum(response.rating != UNRATED for response in self.responses)

    @property
    def simulated(self) -> int:
        """Number of artificial participants."""
        return sum(self.participants.values())

    @property
    def scale(self) -> Scale:
        """Scale of the design. If the design has the default scale, the scale of the responses."""
        design = self.study.step(TrialsStep)
        if design is not None and design.scale is not Scale.CONFIDENCE:
            return Scale(design.scale)
        return self.responses[0].scale if self.responses else Scale.CONFIDENCE

    @property
    def exclusions(self) -> Exclusions:
        """Rules of `[waves]` that exclude participants; without `[waves]`, rules of `[analyze]`."""
        step = self.wave_step or self.planned_analysis
        return step.exclusions if step else Exclusions()

    @property
    def partial(self) -> bool:
        """True if regressions and mixed models include unfinished sessions."""
        return bool(self.planned_analysis and self.planned_analysis.exclusions.partial)

    @cached_property
    def analysis(self) -> Row:
        """The record of the analysis; empty without an analysis."""
        return self.record(AnalyzeResponses)

    @cached_property
    def statistics(self) -> list[str]:
        """Paragraphs about statistics that the analysis wrote."""
        folder = self.out(AnalyzeResponses)
        path = folder and folder / "methods.md"
        text = read_text(path).strip() if path and self.analysis and path.is_file() else ""
        # Omit the references, because the text that contains these paragraphs lists all references
        # at its end
        paragraphs = filter(None, text.split("\n\n"))
        return [text for text in paragraphs if not text.startswith(("#", "References:"))]

    @cached_property
    def catch_trials(self) -> tuple[int, int] | None:
        """Required number of correct catch trials, and number of catch trials; None without any."""
        number = sum(row["per_group"] for row in self.conditions if row["name"] == Condition.CATCH)
        return (required_catch(number, self.exclusions.min_catch), number) if number else None

    @property
    def excluded(self) -> dict[str, int]:
        """Rule → number of participants that this rule excluded from some or all analyses."""
        counts = self.analysis.get("left_out_by_rule", {})
        return {rule: number for rule, number in counts.items() if number}

    @cached_property
    def simulation(self) -> Row:
        """Row of `power-sizes.csv` for all trials and the planned size; empty without the file."""
        step = self.study.step(SimulatePower)
        table, path, *_ = step.writes() if step else (Path(), Path())
        if not path.is_file():
            return {}
        # Rows about all trials have the scope `overall`. The first of these rows is about the
        # planned numbers of participants and items
        rows = cells_by_name(read_table(path))
        row = next((row for row in rows if row["scope"] == "overall"), {})
        people = read_table(table).get("people", [])
        return {**row, "as_measured": AS_MEASURED in people} if row else {}

    @cached_property
    def left_out(self) -> list[tuple[str, str, int]]:
        """Excluded words, sentences, participants and items: kind, reason, and number."""
        dropped = self.vocabulary.get("words", {}).get("dropped", 0)
        unequal = self.vocabulary.get("same_token_count")
        words = self.vocabulary.get("left_out", {})
        counts: dict[str, dict[str, int]] = {
            "words, each position of a sentence counted separately": words,
            "natural sentences": self.record(FindSentences).get("left_out", {}),
            "natural sentences, skipped": self.skipped,
            "participants": self.excluded,
        }
        rows = [(items, why, n) for items, reasons in counts.items() for why, n in reasons.items()]
        if dropped:
            cut = ", or tokenizers split them into different numbers of tokens" if unequal else ""
            rows.append(("words", f"not every model knows them{cut}", dropped))
        rows += [(f"{kind}s", "rejected by a reviewer", n) for kind, n, _ in self.rejections if n]
        return rows
