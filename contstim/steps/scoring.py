"""Sentences under models: a table of scores."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from contstim.errors import InputError
from contstim.models.loading import DEFAULT_LOADING
from contstim.models.masked.rules import RULES
from contstim.models.origins import model_origins
from contstim.models.scoring import (
    Wanted,
    bounds_table,
    score_in_turn,
    score_table,
    score_together,
    standard_error_table,
    term_table,
)
from contstim.models.specifications import parse_models
from contstim.models.training_text import contamination_facts, contamination_warnings
from contstim.records import write_record
from contstim.steps.execution import LOCAL_SCORING
from contstim.steps.watching import SILENT
from contstim.stimuli import read_stimuli
from contstim.store import Store
from contstim.tables import write_table
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.models.loading import Loading
    from contstim.models.scoring import ModelScores
    from contstim.models.specifications import Specification
    from contstim.steps.execution import ScoringExecution
    from contstim.steps.watching import Watcher


def score(
    models: Sequence[str],
    sentences: Path,
    out: Path,
    *,
    per_word: bool = False,
    by: Literal["token", "word"] = "token",
    boundary_correction: bool = False,
    standard_errors: Path | None = None,
    bounds: Path | None = None,
    execution: ScoringExecution = LOCAL_SCORING,
    loading: Loading = DEFAULT_LOADING,
    store: Path | None = None,
    watch: Watcher = SILENT,
) -> list[ModelScores]:
    """Score sentences under models, a row a sentence, a column a model, nats.

    Args:
        models: `[NAME=]SPECIFICATION` each.
        sentences: a text, one sentence a line, or a table with columns of sentences.
        out: the table to write.
        per_word: a row for each token of each sentence, with its word, instead of sums.
        by: then a row for each token, or for each word.
        boundary_correction: then a word's end counts to the word, not to the next one.
        standard_errors: a further table to write, of the errors that sampling leaves.
        bounds: a further table to write, of mixtures over orders beside their lower bounds.
        execution: where sentences are scored.
        loading: how models are loaded.
        store: where scores are kept between runs; by default contstim.sqlite beside `out`.
        watch: told what is done.

    Raises:
        InputError: a file cannot be read or written.
        ModelError: a model cannot be loaded, or cannot score a sentence.
        StoreError: the store cannot be written.
        WorkerError: workers cannot be started, or are lost again and again.
    """
    if not per_word and (by == "word" or boundary_correction):
        raise InputError("--by and --boundary-correction are for --per-word: give it too.")
    if per_word and out.suffix.lower() == ".npz":
        raise InputError(
            "A table of words is not written as .npz; name a .csv, .parquet or .jsonl file."
        )
    specifications = parse_models(models)
    if bounds is not None:
        _require_mixture(specifications, per_word=per_word)
    stimuli = read_stimuli(sentences)
    wanted = Wanted(
        terms=per_word,
        completed_words=boundary_correction,
        standard_errors=standard_errors is not None,
        lower_bounds=bounds is not None,
    )
    with (
        # Words are not kept between runs, so that they need no store.
        nullcontext() if per_word else Store(store or out.parent / "contstim.sqlite") as database,
        watch.scoring(len(set(stimuli)), together=not execution.is_local) as progress,
    ):
        if execution.is_local:
            # One model in memory at a time
            scores = score_in_turn(
                specifications, stimuli, wanted, loading=loading, store=database, progress=progress
            )
        else:
            with execution.scorers(specifications, loading, watch.remark) as scorers:
                scores = score_together(scorers, stimuli, wanted, store=database, progress=progress)
    # Every table gets a record of how each model scored, without which numbers mean nothing.
    conventions = {scored.name: scored.convention for scored in scores}
    origins = model_origins(specifications)
    inputs, commits = [sentences, *origins.files], origins.commits
    if per_word:
        terms = {scored.name: scored.terms for scored in scores if scored.terms is not None}
        write_table(out, term_table(terms, stimuli, by_word=by == "word"))
    else:
        score_table(scores, stimuli).write(out)
    if standard_errors is not None:
        write_table(standard_errors, standard_error_table(scores, stimuli))
        write_record(standard_errors, inputs, models=conventions, commits=commits)
    if bounds is not None:
        write_table(bounds, bounds_table(scores, stimuli))
        write_record(bounds, inputs, models=conventions, commits=commits)
    contaminations = {scored.name: scored.contamination for scored in scores}
    rows = {"by": by, "boundary_correction": boundary_correction} if per_word else {}
    facts = contamination_facts(contaminations)
    write_record(out, inputs, models=conventions, commits=commits, **rows, **facts)
    for warning in contamination_warnings(contaminations):
        watch.warn(warning)
    for scored in scores:
        scored.unknown.tell(watch.warn, watch.remark)
    watch.remark(
        f"{out}: {counted(len(stimuli), 'sentence')} under {counted(len(scores), 'model')}."
    )
    return scores


def _require_mixture(models: Sequence[Specification], *, per_word: bool) -> None:
    """Refuse a table of bounds that would be empty."""
    if per_word:
        raise InputError("--bounds is for scores of sentences: give it without --per-word.")
    if not any(m.rule in RULES and RULES[m.rule].mixture and not m.transform for m in models):
        rules = " or ".join(rule.name for rule in RULES.values() if rule.mixture)
        raise InputError(
            f"--bounds is for masked models under the rule {rules}, whose lower bound is the mean "
            f"over orders; none of the models has it. Give one as hf:DIR@{rules}."
        )
