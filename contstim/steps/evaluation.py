"""Evaluation of models without participants: benchmarks, properties of scores, comparisons."""

from __future__ import annotations

from functools import partial
from itertools import compress
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from contstim.errors import InputError
from contstim.evaluation import comparison, desiderata, minimal_pairs
from contstim.evaluation.acceptability import (
    ACCEPTABILITY,
    AcceptabilitySettings,
    judgement_files,
    read_judgements,
)
from contstim.evaluation.accuracies import MinimalPairEvaluation, evaluate_minimal_pairs
from contstim.evaluation.criteria import (
    AcceptabilityEvaluation,
    acceptability_findings,
    evaluate_acceptability,
)
from contstim.evaluation.folder import write_findings
from contstim.evaluation.judged_scores import JudgedScores, model_scores, published_scores
from contstim.evaluation.minimal_pair_report import minimal_pair_findings
from contstim.evaluation.minimal_pairs import MINIMAL_PAIRS, Method, MinimalPairSettings
from contstim.evaluation.ratings import RatingEvaluation, evaluate_ratings, rating_findings
from contstim.evaluation.scores import pair_scores_from_table, score_pairs
from contstim.items.scores import ScoreTable
from contstim.models.catalog import load_scorers
from contstim.models.loading import DEFAULT_LOADING, Loading
from contstim.models.specifications import parse_models
from contstim.models.transforms import tell_unknown_words
from contstim.options import Aside, Help, Models, Reads, Seed, Writes
from contstim.steps.execution import LOCAL_SCORING, ScoringExecution
from contstim.steps.fields import (
    STORE_NAME,
    GivenModels,
    ModelContexts,
    ReportFolder,
    Sentences,
    read_sentence_file,
    report_sentences,
)
from contstim.steps.step import Outcome, Shown, Step, Value
from contstim.store import Store
from contstim.wording import duration, quantity
from contstim.words.corpus import read_lines
from contstim.words.frequencies import frequency_file, read_frequencies

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from contstim.evaluation.folder import Findings
    from contstim.models.base import Scorer
    from contstim.reporter import Reporter
    from contstim.words.sentence import Sentence

_LONG = 3600.0  # seconds; if scoring takes longer, a warning names a faster rule
_MANY = 100  # for fewer sentences, this warning is not printed


class _Evaluation(Step[Value], name=""):
    """A step that writes a report about scores of models."""

    saved_results = "Finished scores are saved in the database."
    out: ReportFolder
    loading: Loading = DEFAULT_LOADING
    context: ModelContexts = ()
    store: Annotated[
        Path | None, Aside("Database of scores; by default contstim.sqlite in --out.")
    ] = None

    def store_path(self) -> Path:
        return self.store or self.out / STORE_NAME


def written_findings(
    value: Value,
    findings: Findings,
    folder: Path,
    *,
    parts: Sequence[Shown] = (),
    holds: bool = True,
    **about: Any,
) -> Outcome[Value]:
    """Write findings, and return an outcome that shows their summary; see `write_findings`."""
    facts, written = write_findings(findings, folder, **about)
    parts = (f"{findings.title}:", findings.summary, *parts)
    return Outcome(value, facts, writes=tuple(written), parts=parts, holds=holds)


class EvaluateMinimalPairs(_Evaluation[MinimalPairEvaluation], name="evaluate blimp", version=2):
    """Evaluate models on minimal pairs (Warstadt et al. 2020).

    Writes a page (`report.html`, `report.md`), tables (CSV) and figures (PDF and PNG). These files
    show accuracies and ties by paradigm, by phenomenon and overall. They also show the accuracies
    of people and of published models. Further tables show accuracies by length, perplexity,
    log-probability and confidence, and accuracies in the contrasts of Warstadt et al. An
    interrupted run continues where it stopped.

    Example: `contstim evaluate blimp --model kenlm:trigram.arpa --data blimp --out results`
    """

    out: Annotated[
        Path,
        Writes(
            "The output folder.",
            beside=("/report.md", "/report.html", "/pairs.csv"),
            stem=True,
            kind="minimal pair scores",
            part="pairs.csv",
        ),
    ]
    data: Annotated[
        Path,
        Reads(
            "A checkout of BLiMP, a folder of tables, or a table.",
            folder=True,
            content="minimal pair data",
        ),
    ]
    models: GivenModels = ()
    scores: Annotated[Path | None, Reads("Scores of all sentences, instead of --model.")] = None
    people: Annotated[
        Path | None, Reads("Human answers; by default the answers in a checkout of BLiMP.")
    ] = None
    published: Annotated[
        Path | None,
        Reads("Published accuracies; by default the accuracies in a checkout of BLiMP."),
    ] = None
    settings: MinimalPairSettings = MINIMAL_PAIRS
    execution: ScoringExecution = LOCAL_SCORING

    def files_of_data(self) -> Iterable[Path | None]:
        """Yield the files of pairs and of published results."""
        yield from minimal_pairs.published_files(self.data, self.people, self.published)
        yield from minimal_pairs.pair_files(self.data)

    def check(self) -> None:
        """Require either models or scores."""
        if bool(self.scores) == bool(self.models):
            raise InputError("Either `models` or `scores` must be set, and not both.")

    def work(self, reporter: Reporter) -> Outcome[MinimalPairEvaluation]:
        """Score the pairs, and write the findings."""
        # Read pairs before models are loaded, so that a wrong folder or column is reported early
        files = minimal_pairs.pair_files(self.data)
        found_columns: list[str] = []
        pairs = minimal_pairs.read_minimal_pairs(files, self.settings, found_columns.append)
        for columns in found_columns:
            reporter.say(columns)
        answers, summary = minimal_pairs.published_files(self.data, self.people, self.published)
        agreement = minimal_pairs.read_human_agreement(answers)
        accuracies = minimal_pairs.read_published_accuracies(summary)
        with self.execution.scorers(self.models, self.loading, reporter.say) as models:
            sides = [side for pair in pairs for side in (pair.good, pair.bad)]
            report_sentences(self.data, sides, reporter)
            tell_unknown_words(models, sides, reporter)
            if self.scores:
                table = ScoreTable.from_file(self.scores)
                scoring = pair_scores_from_table(table, pairs, self.settings.method)
            else:
                methods, progress_of = self.settings.method or Method, self.execution.progress
                with Store(self.store_path()) as store:
                    _tell_slow(models, sides, store, reporter)
                    progress = partial(progress_of, reporter)
                    scoring = score_pairs(models, pairs, methods, store=store, progress=progress)
        evaluation = evaluate_minimal_pairs(
            scoring, self.settings, models=models, people=agreement, published=accuracies
        )
        for (_, method), reason in scoring.refusals.items():
            reporter.warn(f"{method}: {reason}")
        _tell_left_out("sentence", {o.sentence for o in scoring.left_out}, reporter)
        for scores in scoring.by_method:
            if scores.identical:
                number, example = quantity(len(scores.identical), "pair"), scores.identical[0]
                reporter.say(
                    f"Excluded ({scores.method}): {number} with two equal sides, such as "
                    f"{example.good.text!r} ({example.paradigm}, {example.pair_id})."
                )
        return written_findings(
            evaluation,
            minimal_pair_findings(evaluation),
            self.out,
            models=models,
            data=[*files, *filter(None, (answers, summary, self.scores))],
            pairs=len(pairs),
            columns=found_columns,
        )


class EvaluateAcceptability(
    _Evaluation[AcceptabilityEvaluation | RatingEvaluation],
    name="evaluate acceptability",
    version=2,
):
    """Evaluate how well models predict gradient judgements of acceptability.

    If the data are a table with the columns sentence and rating, ratings are correlated with
    scores.

    If the data are minimal pairs, two criteria evaluate each pair. The data are minimal pairs in
    three cases: they are the folder of LI-Adger, they are a table with the columns item and label,
    or `--pairs` is set. By the BLiMP criterion, a model is right if the acceptable sentence has the
    higher score. The Acceptability Delta Criterion compares the difference in scores with the
    difference in judgements. By this criterion, a model is right if the two differences have the
    same sign, and are less than δ (--delta) apart. For this criterion, scores are z-scores over all
    sentences.

    Writes tables (CSV), figures (PNG, PDF) and a page. An interrupted run continues where it
    stopped.

    Example: `contstim evaluate acceptability --data li-adger --model hf:gpt2 --model
    hf:bert-large-cased@pll-original --out adc`
    """

    data: Annotated[Path, Reads("The folder of LI-Adger, or a table of judgements.", folder=True)]
    models: GivenModels = ()
    scores: Annotated[
        tuple[Path, ...], Reads("A table of scores, with a column id or sentence.")
    ] = ()
    pairs: Annotated[
        Path | None, Reads("Minimal pairs; by default all pairs of sentences of an item.")
    ] = None
    settings: AcceptabilitySettings = ACCEPTABILITY
    execution: ScoringExecution = LOCAL_SCORING

    def files_of_data(self) -> Iterable[Path | None]:
        """Return the files of judgements and of pairs."""
        return judgement_files(self.data, self.pairs)

    def work(self, reporter: Reporter) -> Outcome[AcceptabilityEvaluation | RatingEvaluation]:
        """Score the sentences, and write the findings."""
        if not (self.models or self.scores):
            raise InputError("There is nothing to evaluate. Set `models` or `scores`.")
        if self.settings.column and len(self.scores) != 1:
            raise InputError("`column` needs a single table of scores. Set `scores` once.")
        if self.settings.scores_as_given and self.models:
            raise InputError(
                "`scores_as_given` is for tables of scores, because scores of `models` are "
                "not z-scores. Remove it, or replace `models` by `scores`."
            )
        judgements = read_judgements(self.data, self.pairs)
        # Scores of tables and of models become columns of one table
        parts = [published_scores(judgements, table, self.settings) for table in self.scores]
        with self.execution.scorers(self.models, self.loading, reporter.say) as models:
            if models:
                tell_unknown_words(models, judgements.texts, reporter)
                # A sentence that occurs in several items is scored once
                progress = self.execution.progress(reporter, len(set(judgements.texts)))
                with Store(self.store_path()) as store:
                    parts.append(model_scores(judgements, models, store=store, progress=progress))
        scores = JudgedScores.join(parts)
        _tell_left_out("sentence", {o.sentence for o in scores.left_out}, reporter)
        if not judgements.pairs:
            ratings = evaluate_ratings(judgements, scores)
            return written_findings(
                ratings, rating_findings(ratings), self.out, models=models, data=ratings.files
            )
        evaluation = evaluate_acceptability(judgements, scores, self.settings)
        for reason, number in evaluation.excluded_for().items():
            if number:
                reporter.say(f"Not evaluated: {quantity(number, 'pair')}, {reason}.")
        findings, data = acceptability_findings(evaluation), evaluation.files
        return written_findings(evaluation, findings, self.out, models=models, data=data)


class EvaluateDesiderata(_Evaluation[desiderata.Desiderata], name="evaluate desiderata", version=2):
    """Evaluate scoring rules by desired properties of sentence scores (Kauf & Ivanova 2023).

    Scores should decrease with the length of a sentence, and increase with the frequency of a word
    in a neutral sentence. They should agree with the scores of a causal model, and should not
    favour words of several tokens. Writes tables, scatter plots and a report. An interrupted run
    continues where it stopped.

    Example: `contstim evaluate desiderata --model hf:runs/bert@pll-original --model
    hf:runs/bert@pll-word-l2r --reference hf:runs/gpt2 --sentences heldout.txt --frequencies
    train.txt --out desiderata`
    """

    models: GivenModels
    sentences: Sentences
    frequencies: Annotated[
        Path,
        Reads(
            "Source of word frequencies: a text, counts or a model.",
            folder=True,
            kind="training text",
        ),
    ]
    reference: Annotated[str | None, Models("Causal model to compare scores with.")] = None
    word_list: Annotated[Path | None, Reads("Words, one per line; by default random words.")] = None
    sample: Annotated[int, Help("Number of random sentences; 0 for all.", at_least=0)] = 0
    words: Annotated[int, Help("Number of words to draw from the frequencies.", at_least=1)] = 500
    carrier: Annotated[tuple[str, ...], Help("Neutral sentence, with '_' for the word.")] = (
        desiderata.CARRIERS
    )
    seed: Seed = 0
    execution: ScoringExecution = LOCAL_SCORING

    def specifications(self) -> tuple[str, ...]:
        """Return the specifications of the models.

        The specification of the reference model is added unless `models` contains this model.
        """
        texts, _ = desiderata.with_reference(self.models, self.reference)
        return tuple(model.specification for model in parse_models(texts))

    def work(self, reporter: Reporter) -> Outcome[desiderata.Desiderata]:
        """Score sentences and words, and write the findings."""
        desiderata.check_carriers(self.carrier)
        counts = read_frequencies(self.frequencies)
        sentences = read_sentence_file(self.sentences, reporter)
        chosen = desiderata.sample_sentences(sentences, self.sample, self.seed)
        if self.word_list is None:
            words = [*counts.sample(self.words, seed=self.seed)]
        else:
            words = [*read_lines(self.word_list)]
        # If `frequencies` is the folder of a model, the counts are in a table in this folder
        of_folder = self.frequencies.is_dir()
        words_from = frequency_file(self.frequencies) if of_folder else self.frequencies
        # Each word is scored in each carrier sentence
        total = len(chosen) + len(self.carrier) * len(words)
        specifications, compared = desiderata.with_reference(self.models, self.reference)
        with (
            self.execution.scorers(specifications, self.loading, reporter.say) as loaded,
            Store(self.store_path()) as store,
        ):
            tell_unknown_words(loaded, chosen, reporter)
            results = desiderata.evaluate_desiderata(
                # A reference that is not in `models` is loaded last, and is not evaluated
                loaded[: len(self.models)],
                chosen,
                words,
                counts,
                carriers=self.carrier,
                reference=None if compared is None else loaded[compared],
                store=store,
                progress=self.execution.progress(reporter, total),
            )
        _tell_left_out("sentence", {o.sentence for o in results.left_out}, reporter)
        _tell_left_out("word", results.words_left_out, reporter)
        return written_findings(
            results,
            desiderata.desiderata_findings(results),
            self.out,
            models=loaded,
            data=[*filter(None, (self.sentences, words_from, self.word_list))],
            seed=self.seed,
            sample=self.sample,
        )


class CompareModels(_Evaluation["Findings"], name="compare", version=2):
    """Compare how models or scoring rules order sentences, and find their strongest disagreements.

    For every two models, writes their rank correlation, the proportion of sentence pairs that both
    models order in the same way, and the sentences on which the models disagree most. Prints a
    command that selects natural controversial pairs. With two models or more (`--model`), also
    prints a `contstim diff` command, which searches for further sentences.

    Example: `contstim compare --model hf:runs/bert@chain --model hf:runs/bert@pll-original
    --sentences natural.txt --out compared`
    """

    scores: Annotated[
        tuple[Path, ...], Reads("A table of scores, written by `score`.", content="scores")
    ] = ()
    models: GivenModels = ()
    sentences: Annotated[Path | None, Reads("Sentences; by default all of the tables.")] = None
    top: Annotated[int, Help("Number of sentences to list for two models.", at_least=1)] = 10

    def check(self) -> None:
        """Check that there are sentences to score."""
        if self.models and self.sentences is None and not self.scores:
            raise InputError("`sentences` must be set if there are no `scores`. Name a file.")

    def work(self, reporter: Reporter) -> Outcome[Findings]:
        """Score the sentences, and write the findings."""
        tables = comparison.read_tables(self.scores)
        models = load_scorers(self.models, self.loading)
        texts = read_sentence_file(self.sentences, reporter) if self.sentences else None
        # Without `sentences`, the comparison uses the sentences of the tables.
        sizes = [len(table.log_probs) for table in tables.values()]
        progress = LOCAL_SCORING.progress(reporter, len(set(texts or ())) or max(sizes, default=0))
        with Store(self.store_path()) as store:
            table, left_out = comparison.gather(
                tables, models, texts, store=store, progress=progress
            )
        tell_unknown_words(models, table.sentences or (), reporter)
        commands = [comparison.select_command(self.out, table)]
        if len(models) > 1:
            commands.append(comparison.diff_command(models))
        findings = comparison.comparison_findings(
            table, top=self.top, left_out=left_out, commands=commands
        )
        _tell_left_out("sentence", left_out, reporter)
        lines = ["Select controversial sentences:", *(f"  {command}" for command in commands)]
        data = filter(None, (*self.scores, self.sentences))
        return written_findings(findings, findings, self.out, parts=lines, models=models, data=data)


def _tell_left_out(item_name: str, names: Collection[object], reporter: Reporter) -> None:
    if names:
        reporter.say(f"Without a score: {quantity(len(names), item_name)}; see left_out.csv.")


def _tell_slow(
    models: Sequence[Scorer], sentences: Sequence[Sentence], store: Store, reporter: Reporter
) -> None:
    """Warn about models that average over orders of words and would score for over an hour.

    Sentences that already have a score in the store take no time.
    """
    distinct = list(dict.fromkeys(sentences))
    texts = [sentence.text for sentence in distinct]
    for model in models:
        log_probs = store.log_probs(model.convention.fingerprint, texts)
        unscored = [*compress(distinct, np.isnan(log_probs))]
        sample = unscored[:: len(unscored) // 3 + 1]
        # `sampling` is empty unless the rule averages over orders of words
        if not model.convention.sampling or len(unscored) < _MANY or any(model.unscorable(sample)):
            continue
        model.scores(sample)  # not timed, because the first call is slower
        began = perf_counter()
        model.scores(sample)
        if (seconds := (perf_counter() - began) / len(sample) * len(unscored)) > _LONG:
            reporter.warn(
                f"{model.name} takes about {duration(seconds)} for {len(unscored):,} sentences, "
                f"because the rule {model.convention.rule} averages over orders of words. To "
                "save time, use a rule such as @pll-word-l2r, or fewer pairs per paradigm "
                "(`sample`)."
            )
