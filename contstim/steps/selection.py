"""The most controversial triplets of those that searches found."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from contstim.errors import InputError
from contstim.options import Help
from contstim.steps.constraints import Uncapped, uncapped_words
from contstim.steps.pairs import PairCounts, remark_stayed
from contstim.steps.watching import SILENT
from contstim.stimuli import Condition
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.optimization.selection.certificate import TripletSelection
    from contstim.reviews import ReviewedItem
    from contstim.steps.watching import Watcher


@dataclass(frozen=True, kw_only=True)
class SelectionSettings:
    """Options of selecting triplets."""

    per_pair: Annotated[int, Help("Triplets for each pair of models.")] = 10
    counts: PairCounts = None
    objective: Annotated[
        Literal["controversiality", "worst-rank"],
        Help("Greatest sum of Eq. 4, or least sum of worst ranks."),
    ] = "controversiality"
    quantiles: Annotated[
        int,
        Help(
            "Spread natural sentences evenly over this many quantiles of either model's "
            "probability; 0: no matter which."
        ),
    ] = 10
    natural_once: Annotated[
        bool, Help("No natural sentence serves two model pairs.", flag="--natural-once")
    ] = False
    word_cap: Annotated[int | None, Help("How often one word may stand in the whole set.")] = None
    uncapped: Uncapped = None
    token_balance: Annotated[
        float | None,
        Help(
            "By how many tokens, on average, the sentences that a model rejects may be longer "
            "or shorter than those it accepts; needs --tokens."
        ),
    ] = None
    tokens: Annotated[Path | None, Help("With --token-balance: what `score --per-word` wrote.")] = (
        None
    )
    seconds: Annotated[
        float, Help("How long a search may take; the rest is in the bound.", at_least=0.0)
    ] = 60.0


def choose_triplets(
    triplets: Path,
    out: Path,
    *,
    settings: SelectionSettings,
    review: Sequence[Path] = (),
    earlier: Sequence[Path] = (),
    watch: Watcher = SILENT,
) -> TripletSelection:
    """Select the most controversial triplets for each pair of models.

    Beside the table a certificate is written, of the objective and its proven bound.

    Args:
        triplets: a table of triplets to choose from. Those whose sentences are not all different
            are left out.
        out: the table of chosen triplets to write.
        settings: how triplets are selected.
        review: reviews of triplets selected before: no rejected one is chosen again, and of the
            others as many stay as the rules allow.
        earlier: the tables of these triplets, and of the trials that they became: whether a review
            holds them or not, they stay in their rows, new ones show no sentence of a trial that
            stays, and quantiles are those of the certificate beside the earlier table.
        watch: told what is done.

    Raises:
        InputError: a file cannot be read or written, or no set of triplets fulfils the settings.
    """
    from contstim.counts import read_pair_counts, read_token_counts
    from contstim.optimization.selection.question import TripletQuestion
    from contstim.optimization.selection.triplets import select_triplets
    from contstim.records import write_record
    from contstim.reviews import ItemKind
    from contstim.steps.earlier import Earlier, in_place
    from contstim.stimuli import Triplet, read_triplets, write_triplets

    tokens, counts = settings.tokens, settings.counts
    if (settings.token_balance is None) != (tokens is None):
        raise InputError("--tokens are the numbers that --token-balance is about: give both.")
    needed = {} if counts is None else read_pair_counts(counts)
    question = TripletQuestion(
        per_pair=settings.per_pair,
        objective=settings.objective,
        quantiles=settings.quantiles,
        natural_once=settings.natural_once,
        word_cap=settings.word_cap,
        uncapped=uncapped_words(settings.uncapped, settings.word_cap),
        token_balance=settings.token_balance,
        seconds=settings.seconds,
        counts=tuple((*pair, n) for pair, n in needed.items()),
        edges=_edges(earlier, settings),
    )
    candidates = read_triplets(triplets)
    # Left out here and not refused: searches that found nothing belong to any study
    distinct = [triplet for triplet in candidates if triplet.distinct]
    if len(distinct) < len(candidates):
        watch.remark(
            f"Left out: {len(candidates) - len(distinct):,} of {len(candidates):,} triplets, whose "
            "sentences are not all different."
        )
    stood = Earlier.read(review, earlier)
    known = {triplet.triplet_id for triplet in distinct}

    def holds(item: ReviewedItem) -> bool:
        of_triplet = item.condition in (Condition.NATURAL_SYNTHETIC, Condition.SYNTHETIC_SYNTHETIC)
        name = item.source_id if of_triplet else item.item_id
        return name in known or not (of_triplet or item.kind is ItemKind.TRIPLET)

    selection = select_triplets(
        distinct,
        question,
        tokens=None if tokens is None else read_token_counts(tokens),
        review=stood.review(holds),
    )
    certificate = selection.certificate
    chosen = in_place(
        stood.of_kind(Triplet),
        selection.triplets,
        lambda each: each.triplet_id,
        lambda each: (each.model_1, each.model_2),
    )
    write_triplets(out, chosen)
    certificate_path = Path(f"{out}.certificate.json")
    certificate.save(certificate_path)
    write_record(
        out,
        [triplets, counts, settings.uncapped, tokens, *review],
        [certificate_path],
        triplets=str(triplets),
        per_pair=settings.per_pair,
        objective=settings.objective,
        earlier=stood.files,
    )
    watch.remark(
        f"{out}: {counted(len(selection.triplets), 'triplet')}; objective "
        f"{certificate.objective:.6f}, proven bound {certificate.bound:.6f} "
        f"({certificate.status})."
    )
    remark_stayed(certificate, "triplet", watch)
    return selection


def _edges(
    earlier: Sequence[Path], settings: SelectionSettings
) -> tuple[tuple[str, str, str, tuple[float, ...]], ...]:
    """The edges of quantile groups as they were, in certificates beside earlier tables."""
    from contstim.documents import read_json_object
    from contstim.optimization.selection.certificate import TripletCertificate

    edges: tuple[tuple[str, str, str, tuple[float, ...]], ...] = ()
    for path in earlier:
        beside = Path(f"{path}.certificate.json")
        if beside.is_file() and "price_bound" in read_json_object(beside):
            certificate = TripletCertificate.load(beside)
            if certificate.question.quantiles == settings.quantiles:
                edges += certificate.edges
    return edges
