"""`contstim select …`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from contstim.cli.commands import CommandGroup
from contstim.cli.options import Quiet, Reviews, Uncapped, uncapped_words
from contstim.cli.output import remark, warn, warn_of_training_texts
from contstim.errors import InputError
from contstim.wording import counted

if TYPE_CHECKING:
    from contstim.optimization.selection.certificate import SelectionCertificate

Counts = Annotated[
    Path | None,
    typer.Option(
        help="A table model_1, model_2, per_pair, for model pairs that need another number."
    ),
]


def natural(
    scores: Annotated[Path, typer.Option(help="Scores: .csv, .parquet, .jsonl or .npz.")],
    out: Annotated[Path, typer.Option(help="The table of pairs to write.")],
    per_pair: Annotated[int, typer.Option(help="Sentence pairs for each pair of models.")] = 10,
    no_repeats: Annotated[
        bool, typer.Option("--no-repeats", help="Leave out sentences in which a word repeats.")
    ] = False,
    repeatable: Annotated[
        Path | None,
        typer.Option(
            help="With --no-repeats: words that may repeat, one a line, or a vocabulary file with "
            "a list [repeatable]; by default English articles and prepositions."
        ),
    ] = None,
    counts: Counts = None,
    exclude: Annotated[
        list[Path] | None,
        typer.Option(
            help="Leave out these sentences: a text, or a table of stimuli such as the pairs of an "
            "earlier study; repeatable."
        ),
    ] = None,
    same_length: Annotated[
        bool,
        typer.Option(
            "--same-length",
            help="Give both sentences of a pair the same number of words, with ranks among "
            "sentences of that length; each length gets its share of every model pair's pairs.",
        ),
    ] = False,
    review: Reviews = None,
    quiet: Quiet = False,
) -> None:
    """Select natural sentence pairs on which each pair of models disagrees most (2023, Eq. 5).

    Exact: the certificate beside the table holds the objective and its proven bound.

    After a review, pairs that were not rejected stay as they are; no sentence of a rejected one is
    chosen again, neither of the two.

    Examples: `contstim select natural --scores scores.csv --per-pair 10 --out pairs.csv`

    `contstim select natural --scores scores.csv --per-pair 10 --review review.csv
    --out pairs-2.csv`
    """
    from contstim.counts import read_pair_counts
    from contstim.models.contamination import contamination_facts, read_contamination
    from contstim.optimization.selection.natural import select_natural
    from contstim.records import write_record
    from contstim.reviews import read_reviews
    from contstim.scores import ScoreTable
    from contstim.stimuli import read_stimuli, write_pairs
    from contstim.tables import listed
    from contstim.vocabulary import REPEATABLE_ENGLISH, read_repeatable

    if repeatable is not None and not no_repeats:
        raise InputError("--repeatable names the exceptions of --no-repeats: give both.")
    # None turns the rule off; an empty set would exempt no word.
    exempt = REPEATABLE_ENGLISH if no_repeats else None
    if repeatable is not None:
        exempt = read_repeatable(repeatable)
    table = ScoreTable.read(scores)
    selection = select_natural(
        table,
        per_pair=per_pair,
        repeatable=exempt,
        counts=None if counts is None else read_pair_counts(counts),
        excluded=[sentence for path in exclude or () for sentence in read_stimuli(path)],
        same_length=same_length,
        review=read_reviews(review) if review else None,
    )
    write_pairs(out, selection.pairs)
    selection.certificate.save(Path(f"{out}.certificate.json"))
    sides = (
        sentence for pair in selection.pairs for sentence in (pair.sentence_1, pair.sentence_2)
    )
    selected = (sentence for sentence in sides if sentence is not None)
    seen = read_contamination(scores, table.models, selected)
    # The least controversial of the best pairs may still be agreed on: no error, but worth a word.
    agreed = [pair.trial_id for pair in selection.pairs if not pair.controversial]
    facts = contamination_facts(seen)
    write_record(out, scores=str(scores), per_pair=per_pair, not_controversial=agreed, **facts)
    warn_of_training_texts(seen, "selected sentences")
    unequal = sum(
        len(pair.sentence_1) != len(pair.sentence_2)
        for pair in selection.pairs
        if pair.sentence_1 is not None and pair.sentence_2 is not None
    )
    if unequal:
        warn(
            f"in {unequal:,} of {counted(len(selection.pairs), 'pair')} the sentences "
            "differ in their number of words, and longer ones are less likely under every model: "
            "give --same-length to compare sentences of one length."
        )
    if agreed:
        warn(
            f"in {len(agreed):,} of {counted(len(selection.pairs), 'pair')} both models "
            f"prefer the same sentence, so that people cannot tell them apart: {listed(agreed)}. "
            "Score more sentences, or ask for fewer pairs."
        )
    remark(
        f"{out}: {counted(len(selection.pairs), 'pair')}; objective "
        f"{selection.certificate.objective:.10f}, proven bound {selection.certificate.bound:.10f}.",
        quiet=quiet,
    )
    _remark_kept(selection.certificate, "pair", quiet=quiet)


def _remark_kept(certificate: SelectionCertificate, what: str, *, quiet: bool) -> None:
    if certificate.reviewed:
        remark(
            f"  {certificate.kept:,} of {counted(certificate.reviewed, f'reviewed {what}')} stay, "
            f"{certificate.rejected:,} rejected; more than {certificate.kept_bound:,} cannot "
            f"stay (proven).",
            quiet=quiet,
        )


def triplets(
    triplets: Annotated[Path, typer.Option(help="Triplets to choose from, for all model pairs.")],
    out: Annotated[Path, typer.Option(help="The table of chosen triplets to write.")],
    per_pair: Annotated[int, typer.Option(help="Triplets for each pair of models.")] = 10,
    counts: Counts = None,
    objective: Annotated[
        Literal["controversiality", "worst-rank"],
        typer.Option(help="Greatest sum of Eq. 4, or least sum of worst ranks."),
    ] = "controversiality",
    quantiles: Annotated[
        int,
        typer.Option(
            help="Spread natural sentences evenly over this many quantiles of either model's "
            "probability; 0: no matter which."
        ),
    ] = 10,
    natural_once: Annotated[
        bool, typer.Option("--natural-once", help="No natural sentence serves two model pairs.")
    ] = False,
    word_cap: Annotated[
        int | None, typer.Option(help="How often one word may stand in the whole set.")
    ] = None,
    uncapped: Uncapped = None,
    token_balance: Annotated[
        float | None,
        typer.Option(
            help="By how many tokens, on average, the sentences that a model rejects may be longer "
            "or shorter than those it accepts; needs --tokens."
        ),
    ] = None,
    tokens: Annotated[
        Path | None, typer.Option(help="With --token-balance: what `score --per-word` wrote.")
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=0.0, help="How long a search may take; the rest is in the bound.")
    ] = 60.0,
    review: Reviews = None,
    quiet: Quiet = False,
) -> None:
    """Select triplets of a natural and two synthetic sentences, the most controversial ones.

    Triplets whose three sentences are not all different, because a search found nothing better
    than the natural sentence, are left out and counted.

    Exact: the certificate beside the table holds the objective and its proven bound.

    After a review no rejected triplet is chosen again. Of the others as many stay as the rules
    allow, and of the sets that keep so many the best is chosen.

    Examples: `contstim select triplets --triplets triplets.csv --per-pair 10
    --objective worst-rank --out selected.csv`

    `contstim select triplets --triplets triplets.csv --per-pair 10 --review review.csv
    --out selected-2.csv`
    """
    from contstim.counts import read_pair_counts, read_token_counts
    from contstim.optimization.selection.triplet_question import TripletQuestion
    from contstim.optimization.selection.triplets import select_triplets
    from contstim.records import write_record
    from contstim.reviews import read_reviews
    from contstim.stimuli import read_triplets, write_triplets

    if (token_balance is None) != (tokens is None):
        raise InputError("--tokens are the numbers that --token-balance is about: give both.")
    free = uncapped_words(uncapped, word_cap)
    question = TripletQuestion(
        per_pair=per_pair,
        objective=objective,
        quantiles=quantiles or None,
        natural_once=natural_once,
        word_cap=word_cap,
        uncapped=free,
        token_balance=token_balance,
        counts={} if counts is None else read_pair_counts(counts),
    )
    candidates = read_triplets(triplets)
    # Left out here and not refused: searches that found nothing belong to any study
    distinct = [triplet for triplet in candidates if triplet.distinct]
    if len(distinct) < len(candidates):
        remark(
            f"Left out: {len(candidates) - len(distinct):,} of {len(candidates):,} triplets, whose "
            "sentences are not all different.",
            quiet=quiet,
        )
    selection = select_triplets(
        distinct,
        question,
        tokens=None if tokens is None else read_token_counts(tokens),
        seconds=seconds,
        review=read_reviews(review) if review else None,
    )
    certificate = selection.certificate
    write_triplets(out, selection.triplets)
    certificate.save(Path(f"{out}.certificate.json"))
    write_record(out, triplets=str(triplets), per_pair=per_pair, objective=objective)
    remark(
        f"{out}: {counted(len(selection.triplets), 'triplet')}; objective "
        f"{certificate.objective:.6f}, proven bound {certificate.bound:.6f} "
        f"({certificate.status}).",
        quiet=quiet,
    )
    _remark_kept(certificate, "triplet", quiet=quiet)


app = CommandGroup("Select the most controversial stimuli, exactly.")
app.add("natural", natural)
app.add("triplets", triplets)
