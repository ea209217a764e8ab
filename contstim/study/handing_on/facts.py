"""Facts of a study from its records, certificates and tables, for the texts of an archive."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from itertools import chain
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING

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
from contstim.files.documents import read_text
from contstim.files.tables import cells_by_name, read_table
from contstim.items.reviews import Decision, ItemKind, Review, read_reviews
from contstim.items.scale import Scale
from contstim.items.stimuli import CONTROVERSIAL, Condition, Kind, read_trials
from contstim.steps.analysis import AnalyzeResponses
from contstim.steps.design import MakeDesign, TrialsStep, word_frequencies
from contstim.steps.platforms import ExportTrials
from contstim.steps.sentences import FindSentences
from contstim.steps.simulation import SimulatePower
from contstim.steps.waves import DesignWaves
from contstim.study.handing_on.materials import MaterialFacts, Row
from contstim.study.planning import contrasts_of, over_groups
from contstim.study.study import RESULTS
from contstim.wording import grouped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from contstim.experiments.analysis.families import ModelContrast
    from contstim.experiments.responses.questionnaire import Question
    from contstim.experiments.responses.table import Response
    from contstim.items.stimuli import Trial
    from contstim.study.study import Study
    from contstim.words.frequencies import WordFrequencies
    from contstim.words.sentence import Sentence


class StudyFacts(MaterialFacts):
    """Facts of a study for templates. A fact is empty if the output with this fact does not exist.

    The current folder must be the study's folder.

    Attributes:
        power: step of [power]; None if the study has no such section.
        planned_analysis: step of [analyze]; None if the study has no such section.
        wave_step: step of [waves]; None if the study has no such section.
    """

    def __init__(self, study: Study) -> None:
        super().__init__(study)
        self.power, self.planned_analysis = study.step(SimulatePower), study.step(AnalyzeResponses)
        self.wave_step = study.step(DesignWaves)

    # Planned tests

    @cached_property
    def contrasts(self) -> Sequence[ModelContrast]:
        """Planned contrasts between two models, and between a model and the noise ceiling."""
        return contrasts_of(self.study) if len(self.names) > 1 else ()

    @cached_property
    def contrast_families(self) -> Mapping[tuple[int, int], int]:
        """(contrasts of a family, those of them between two models) → number of such families.

        A family is a set of contrasts whose p-values are adjusted together.
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

    @cached_property
    def best_matches(self) -> list[tuple[str, float, float]]:
        """Comparisons of the best model: other model, e-value, share of answers for the best model.

        The e-value is the evidence that the best model is better than the other model.
        """
        path = Path(f"{self.wave_step.out}.verdict.csv") if self.wave_step else Path()
        if not (self.waves.get("history") and path.is_file()):
            return []
        sides = []
        for row in cells_by_name(read_table(path)):
            a, b, share = row["model_a"], row["model_b"], float(row["share_a"])
            e_a, e_b = float(row["e_a_beats_b"]), float(row["e_b_beats_a"])
            sides += [(a, (b, e_a, share)), (b, (a, e_b, 1 - share))]
        return grouped(sides).get(self.waves["history"][-1]["winner"], [])

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
        """Number of trials of a participant, which is the same in all groups."""
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
        """Return for each kind of sentence: number, and `mean (SD)` of each size in `_sizes`."""
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
        """Number of distinct sentences; mean words, characters and Zipf frequency of a sentence."""
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
        """Responses of participants, who may be artificial; empty if there are none yet."""
        path, analysis = self.path("responses"), self.study.step(AnalyzeResponses)
        if path is None or not path.is_file():
            return ()
        scale = None if analysis is None else analysis.scale
        return read_responses(path, self.trials, scale=scale)

    @cached_property
    def asked_in(self) -> Path | None:
        """Table of questions to participants; None if there is none."""
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
        """Number of responses with a rating; a trial that ended without an answer has none."""
        return sum(response.rating != UNRATED for response in self.responses)

    @property
    def simulated(self) -> int:
        """Number of artificial participants."""
        return sum(self.participants.values())

    @property
    def scale(self) -> Scale:
        """Scale of the design or, if this is the default, scale of the responses."""
        design = self.study.step(TrialsStep)
        if design is not None and design.scale is not Scale.CONFIDENCE:
            return Scale(design.scale)
        return self.responses[0].scale if self.responses else Scale.CONFIDENCE

    @property
    def exclusions(self) -> Exclusions:
        """Rules that exclude participants, from [waves] or else [analyze]."""
        step = self.wave_step or self.planned_analysis
        return step.exclusions if step else Exclusions()

    @property
    def partial(self) -> bool:
        """True if regressions and mixed models include unfinished sessions."""
        return bool(self.planned_analysis and self.planned_analysis.exclusions.partial)

    @cached_property
    def analysis(self) -> Row:
        """The record of the analysis; empty without one."""
        return self.record(AnalyzeResponses)

    @cached_property
    def statistics(self) -> list[str]:
        """Paragraphs about statistics that the analysis wrote."""
        folder = self.out(AnalyzeResponses)
        path = folder and folder / "methods.md"
        text = read_text(path).strip() if path and self.analysis and path.is_file() else ""
        # References are listed at the end of the text that contains these paragraphs
        paragraphs = filter(None, text.split("\n\n"))
        return [text for text in paragraphs if not text.startswith(("#", "References:"))]

    @cached_property
    def catch_trials(self) -> tuple[int, int] | None:
        """Required number of correct catch trials, and number of catch trials; None if it is 0."""
        number = sum(row["per_group"] for row in self.conditions if row["name"] == Condition.CATCH)
        return (required_catch(number, self.exclusions.min_catch), number) if number else None

    @property
    def excluded(self) -> dict[str, int]:
        """Rule → number of participants that it excluded from some or all analyses."""
        counts = self.analysis.get("left_out_by_rule", {})
        return {rule: number for rule, number in counts.items() if number}

    @cached_property
    def simulation(self) -> Row:
        """Row of power-sizes.csv for all trials and the planned size; empty without this file."""
        step = self.study.step(SimulatePower)
        table, path, *_ = step.writes() if step else (Path(), Path())
        if not path.is_file():
            return {}
        # Rows about all trials have the scope `overall`. The first of them has the planned numbers
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
