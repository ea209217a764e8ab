"""`contstim score`."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contstim.cli.output import (
    Device,
    Dtype,
    Model,
    Prompt,
    Quiet,
    TrustRemoteCode,
    remark,
    scoring_progress,
    warn_of_training_texts,
)
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contstim.arrays import FloatArray
    from contstim.models.base import Scorer
    from contstim.models.contamination import Contamination
    from contstim.models.scoring import Terms
    from contstim.sentence import Sentence
    from contstim.store import Store


def score(
    model: Model,
    sentences: Annotated[
        Path, typer.Option(help="Sentences, one a line, or a table with columns of sentences.")
    ],
    out: Annotated[Path, typer.Option(help="The table to write: .csv, .parquet, .jsonl or .npz.")],
    per_word: Annotated[
        bool,
        typer.Option(
            "--per-word",
            help="Write a row for each token of each sentence, with its word, instead of sums.",
        ),
    ] = False,
    standard_errors: Annotated[
        Path | None,
        typer.Option(
            help="Also write the standard errors that sampling leaves (0: exact), a table of the "
            "same shape. Costs as much again as the scores."
        ),
    ] = None,
    prompt: Prompt = None,
    device: Device = "auto",
    dtype: Dtype = "auto",
    trust_remote_code: TrustRemoteCode = False,
    store: Annotated[
        Path | None,
        typer.Option(help="Where scores are kept between runs; contstim.sqlite beside --out."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Score sentences under models: natural log-probabilities, a row a sentence, a column a model.

    Every score is kept as soon as it is known: an interrupted run, started again, goes on where it
    stopped, and no sentence is scored twice.

    Says how many of the sentences stand in the training text of a model that contstim trained, and
    keeps it in the record.

    With `--per-word` the columns are sentence, model, position (of the word, from 0; the end of the
    sentence counts as one more), word, token, log_prob and surprisal, in nats. A model's rows add
    up to its score of the sentence.

    Example: `contstim score --model kenlm:bigram.arpa --model hf:gpt2@chain
    --sentences natural.txt --out scores.csv`
    """
    from contstim.errors import InputError
    from contstim.models.catalog import with_each_model
    from contstim.models.contamination import contamination_facts
    from contstim.records import write_record
    from contstim.stimuli import read_stimuli
    from contstim.store import Store
    from contstim.tables import write_table

    if per_word and out.suffix.lower() == ".npz":
        raise InputError(
            "A table of words is not written as .npz; name a .csv, .parquet or .jsonl file."
        )
    stimuli = read_stimuli(sentences)
    with ExitStack() as stack:
        progress = stack.enter_context(scoring_progress(len(set(stimuli)), quiet=quiet))
        kept = None
        if not per_word:
            kept = stack.enter_context(Store(store or out.parent / "contstim.sqlite"))
        work = partial(
            _score, stimuli=stimuli, kept=kept, errors=bool(standard_errors), progress=progress
        )
        scored = with_each_model(
            model,
            work,
            device=device,
            dtype=dtype,
            prompt=prompt,
            trust_remote_code=trust_remote_code,
        )
    conventions = {one.name: one.entry for one in scored}
    _write(out, scored, stimuli)
    if standard_errors is not None:
        texts = {"sentence": [sentence.text for sentence in stimuli]}
        write_table(standard_errors, texts | {one.name: one.errors for one in scored})
        write_record(standard_errors, models=conventions)
    seen = {one.name: one.seen for one in scored}
    write_record(out, models=conventions, **contamination_facts(seen))
    warn_of_training_texts(seen)
    remark(
        f"{out}: {counted(len(stimuli), 'sentence')} under {counted(len(scored), 'model')}.",
        quiet=quiet,
    )
    for one in scored:
        if one.sampled:
            remark(
                f"  {one.name}: {one.sampled:,} scores are sampled; --standard-errors FILE tells "
                f"how good they are.",
                quiet=quiet,
            )


@dataclass(frozen=True)
class _Scored:
    """What is kept of a model when it is let go.

    Attributes:
        name: the model's.
        entry: what the record says of it.
        log_probs: (n_sentences,), nats; None where terms are written.
        terms: of every sentence's score; None where sums are written.
        errors: standard errors, one a sentence, nats; empty where nobody asked.
        sampled: how many scores are.
        seen: which sentences it was trained on; None where that is not known.
    """

    name: str
    entry: dict[str, object]
    log_probs: FloatArray | None
    terms: Terms | None
    errors: list[float]
    sampled: int
    seen: Contamination | None


def _score(
    model: Scorer,
    *,
    stimuli: Sequence[Sentence],
    kept: Store | None,
    errors: bool,
    progress: Callable[[Scorer, int], None],
) -> _Scored:
    from contstim.models.base import conventions
    from contstim.models.contamination import contamination
    from contstim.models.scoring import score_sentences, token_terms

    log_probs, terms = None, None
    if kept is None:
        terms = token_terms(model, stimuli, progress=progress)
    else:
        table = score_sentences([model], stimuli, store=kept, progress=progress)
        log_probs = table.log_probs[:, 0]
    return _Scored(
        model.name,
        conventions([model])[model.name],
        log_probs,
        terms,
        model.standard_errors(stimuli).tolist() if errors else [],
        len(stimuli) - int(model.exact(stimuli).sum()),
        contamination({model.name: model.training_text}, stimuli)[model.name],
    )


def _write(out: Path, scored: Sequence[_Scored], stimuli: Sequence[Sentence]) -> None:
    import numpy as np

    from contstim.models.scoring import table_of_terms
    from contstim.scores import ScoreTable
    from contstim.tables import write_table

    terms = {one.name: one.terms for one in scored if one.terms is not None}
    if terms:
        write_table(out, table_of_terms(terms, stimuli))
        return
    columns = [one.log_probs for one in scored if one.log_probs is not None]
    ScoreTable(tuple(stimuli), tuple(one.name for one in scored), np.stack(columns, axis=1)).write(
        out
    )
