"""Tables of scores of sentences under models."""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Literal

from contstim.errors import InputError
from contstim.files.tables import TABLE_KINDS, write_table
from contstim.models.catalog import one_at_a_time
from contstim.models.loading import DEFAULT_LOADING, Loading
from contstim.models.masked.rules import RULES
from contstim.models.scoring import (
    ModelScores,
    bounds_table,
    score_each,
    score_table,
    standard_error_table,
    term_table,
)
from contstim.models.specifications import parse_models
from contstim.models.training_text import tell_contamination
from contstim.models.transforms import tell_vocabulary
from contstim.options import Help, Writes, WritesTable
from contstim.steps.execution import LOCAL_SCORING, ScoringExecution
from contstim.steps.fields import (
    SENTENCES,
    STORE_NAME,
    GivenModels,
    ModelContexts,
    StoreBeside,
    read_sentence_file,
)
from contstim.steps.step import Outcome, Step
from contstim.store import Store
from contstim.wording import quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from contstim.files.arrays import FloatArray
    from contstim.models.base import Scorer
    from contstim.models.specifications import Specification
    from contstim.reporter import Reporter
    from contstim.store.times import Times
    from contstim.words.sentence import Sentence


class ScoreSentences(Step[list[ModelScores]], name="score", version=3):
    """Score sentences under models, and write a table with a row per sentence.

    The table has a column for each model, with log-probabilities.

    Scores are saved during the run, so an interrupted run continues where it stopped. No sentence
    with a saved score is scored again. With `--executor processes` or `ray`, the sentences are
    divided among workers. This does not change the scores.

    If contstim trained a model, the command counts the sentences that occur in the training text of
    this model. It prints this number, and saves it in the record.

    With `--per-word`, the columns are sentence, model, position, word, tokens, log_prob, surprisal
    (nats), surprisal_bits, entropy and frequency. `tokens` is the number of tokens of the word.
    With `--by token`, the column `token` has the token. Positions count from 0. The end of the
    sentence has the position after the last word. The entropy (nats) is the entropy of the model's
    distribution over the first token of the row. In word-level models, it is the entropy of the
    distribution over the word. The column entropy is empty for masked models, BiLSTMs, KenLM binary
    files and servers. The frequency is the Zipf value of an English word. The log-probabilities of
    a sentence's rows add up to its score. Scores of words are not saved for later runs.

    A model on an inference server is `--model 'NAME=server:http://HOST:8000/v1#MODEL'`; a key is
    read from the environment variable CONTSTIM_SERVER_KEY.

    Example: `contstim score --model kenlm:bigram.arpa --model hf:gpt2@chain
    --sentences natural.txt --out scores.csv`

    Example: `contstim score --model hf:bert-base-cased@chain-mixture --sentences natural.txt
    --out scores.csv --bounds bounds.csv`
    """

    saved_results = "Finished scores are saved in the database."
    models: GivenModels
    sentences: Annotated[Path, replace(SENTENCES, kind="sentences|trials")]
    out: Annotated[
        Path,
        Writes(
            "The table to write.",
            formats=(*TABLE_KINDS, ".npz"),
            kind="scores|scores of trials",
            name="scores.csv|trial-scores.csv",
        ),
    ]
    per_word: Annotated[bool, Help("Write a row for each word or token.")] = False
    by: Annotated[Literal["word", "token"], Help("With --per-word: unit of a row.")] = "word"
    boundary_correction: Annotated[
        bool, Help("With --per-word: assign the probability of a word's end to this word.")
    ] = False
    standard_errors: Annotated[Path | None, WritesTable("Also write the standard errors.")] = None
    bounds: Annotated[
        Path | None, WritesTable("Also write lower bounds of chain-mixture scores.")
    ] = None
    execution: ScoringExecution = LOCAL_SCORING
    loading: Loading = DEFAULT_LOADING
    context: ModelContexts = ()
    store: StoreBeside = None

    def store_path(self) -> Path | None:
        """Return the path of the database of scores; None with `per_word`, which stores nothing."""
        return None if self.per_word else self.store or self.out.parent / STORE_NAME

    def check(self) -> None:
        """Check that options are compatible with `per_word`, and that a model fits `bounds`."""
        if not self.per_word and (self.by == "token" or self.boundary_correction):
            raise InputError(
                "`by` and `boundary_correction` need `per_word`. Set `per_word`, or remove both."
            )
        if self.per_word and self.out.suffix.lower() == ".npz":
            raise InputError(f"A table of words cannot be .npz. Use {', '.join(TABLE_KINDS)}.")
        if self.bounds is not None:
            _require_mixture(parse_models(self.models), per_word=self.per_word)

    def work(self, reporter: Reporter) -> Outcome[list[ModelScores]]:
        """Score the sentences, and write the tables."""
        specifications = parse_models(self.models)
        stimuli = read_sentence_file(self.sentences, reporter)
        progress = self.execution.progress(reporter, len(set(stimuli)))
        compute = partial(
            ModelScores.of,
            sentences=stimuli,
            progress=progress,
            terms=self.per_word,
            completed=self.boundary_correction,
            standard_errors=self.standard_errors is not None,
            lower_bounds=self.bounds is not None,
        )
        path = self.store_path()
        scores: list[ModelScores] = []
        with nullcontext() if path is None else Store(path) as store, ExitStack() as workers:
            turns: Iterable[list[Scorer]] = one_at_a_time(specifications, self.loading)
            if not self.execution.is_local:
                arguments = (specifications, self.loading, reporter.say)
                turns = [workers.enter_context(self.execution.scorers(*arguments))]
            for models in turns:
                sums: Sequence[FloatArray | None] = [None] * len(models)
                if store is not None:
                    advance = progress
                    if self.execution.is_local:  # the times of concurrent workers would be wrong
                        advance = _measure_times(progress, store.times, specifications)
                    sums = [*score_each(models, stimuli, store=store, progress=advance).T]
                # `map`, because a loop variable would keep the last model in memory
                scores += map(compute, models, sums)
        self._write(scores, stimuli)
        contaminations = {scored.name: scored.contamination for scored in scores}
        # The record needs the scoring conventions, without which scores cannot be interpreted
        conventions = {scored.name: scored.convention for scored in scores}
        facts = {"models": conventions, **tell_contamination(contaminations, reporter)}
        for scored in scores:
            _tell(scored, reporter)
        reporter.say(
            f"{self.out}: {quantity(len(stimuli), 'sentence')} under "
            f"{quantity(len(scores), 'model')}."
        )
        return Outcome(scores, facts)

    def _write(self, scores: Sequence[ModelScores], stimuli: Sequence[Sentence]) -> None:
        if self.per_word:
            terms = {scored.name: scored.terms for scored in scores if scored.terms is not None}
            write_table(self.out, term_table(terms, stimuli, by_word=self.by == "word"))
        else:
            score_table(scores, stimuli).write(self.out)
        if self.standard_errors is not None:
            write_table(self.standard_errors, standard_error_table(scores, stimuli))
        if self.bounds is not None:
            write_table(self.bounds, bounds_table(scores, stimuli))


def _measure_times(
    progress: Callable[[Scorer, int], None], times: Times, specifications: Iterable[Specification]
) -> Callable[[Scorer, int], None]:
    """Wrap a progress callback so that it adds the time of newly scored sentences to `times`."""
    names = {model.name: model.specification for model in specifications}
    last: dict[str, float] = {}

    def advance(model: Scorer, number: int) -> None:
        now = perf_counter()
        if number and model.name in last:
            key, seconds = f"score {names[model.name]}", now - last[model.name]
            times.add(key, units=number, seconds=seconds)
        last[model.name] = now
        progress(model, number)

    return advance


def _tell(scored: ModelScores, reporter: Reporter) -> None:
    tell_vocabulary(scored.name, str(scored.convention["rule"]), scored.unknown, reporter)
    if scored.lower_bounds is not None and scored.log_probs is not None:
        # The lower bound of the score of a mixture is the mean log-probability over orders of words
        gap = (scored.log_probs - scored.lower_bounds).mean()
        reporter.say(
            f"  {scored.name}: scores are on average {gap:.2f} nats above the mean over orders."
        )
    if scored.n_sampled:
        reporter.say(
            f"  {scored.name}: {scored.n_sampled:,} scores are sampled; `standard_errors` "
            "writes their standard errors."
        )


def _require_mixture(models: Sequence[Specification], *, per_word: bool) -> None:
    if per_word:
        raise InputError("`bounds` is for scores of sentences. Remove `bounds` or `per_word`.")
    if not any(m.rule in RULES and RULES[m.rule].mixture and not m.transform for m in models):
        rules = " or ".join(rule.name for rule in RULES.values() if rule.mixture)
        raise InputError(
            f"`bounds` needs a masked model with the rule {rules}, whose lower bound is the "
            f"mean over orders. Name one as hf:DIR@{rules}."
        )
