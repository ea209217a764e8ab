"""The most controversial triplets of those that searches found."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from contstim.errors import InputError
from contstim.optimization.selection.question import TripletQuestion, TripletRules
from contstim.options import Reads, Writes
from contstim.steps.constraints import Uncapped, uncapped_words
from contstim.steps.fields import Earlier, Reviews
from contstim.steps.pairs import GivenCounts, remark_stayed
from contstim.steps.step import Outcome, Step
from contstim.stimuli import Condition
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.optimization.selection.question import TripletSelection
    from contstim.reporter import Reporter
    from contstim.reviews import ReviewedItem


@dataclass(frozen=True, kw_only=True)
class SelectionSettings(TripletRules):
    """Options of selecting triplets."""

    counts: GivenCounts = None
    uncapped: Uncapped = None
    tokens: Annotated[
        Path | None, Reads("With --token-balance: what `score --per-word` wrote.")
    ] = None

    def question(self, earlier: Sequence[Path]) -> TripletQuestion:
        """The same with files read, and quantiles as certificates beside earlier tables have them.

        Raises:
            InputError: a file cannot be read, or one of two settings that need each other lacks.
        """
        from contstim.counts import read_pair_counts

        if (self.token_balance is None) != (self.tokens is None):
            raise InputError("`tokens` are the numbers that `token_balance` is about: give both.")
        needed = {} if self.counts is None else read_pair_counts(self.counts)
        return TripletQuestion(
            **{each.name: getattr(self, each.name) for each in fields(TripletRules)},
            uncapped=uncapped_words(self.uncapped, self.word_cap),
            counts=tuple((*pair, number) for pair, number in needed.items()),
            edges=_edges(earlier, self),
        )


class SelectTriplets(Step["TripletSelection"], name="select triplets"):
    """Select triplets of a natural and two synthetic sentences, the most controversial ones.

    Triplets whose three sentences are not all different, because a search found nothing better
    than the natural sentence, are left out and counted.

    Exact: the certificate beside the table holds the objective and its proven bound.

    After a review no rejected triplet is chosen again. Of the others as many stay as the rules
    allow, and of the sets that keep so many the best is chosen.

    Examples: `contstim select triplets --triplets triplets.csv --per-pair 10
    --objective worst-rank --out selected.csv`

    `contstim select triplets --triplets triplets.csv --per-pair 10 --review review.csv
    --earlier selected.csv --earlier trials.csv --out selected-2.csv`
    """

    triplets: Annotated[Path, Reads("Triplets to choose from, for all model pairs.")]
    out: Annotated[
        Path, Writes("The table of chosen triplets to write.", beside=(".certificate.json",))
    ]
    settings: SelectionSettings = SelectionSettings()
    review: Reviews = ()
    earlier: Earlier = ()

    def work(self, reporter: Reporter) -> Outcome[TripletSelection]:
        """Select the triplets, and write them with a certificate."""
        from contstim.counts import read_token_counts
        from contstim.optimization.selection.triplets import select_triplets
        from contstim.reviews import ItemKind
        from contstim.steps.earlier import EarlierStimuli, in_place
        from contstim.stimuli import Triplet, read_triplets, write_triplets

        settings = self.settings
        question = settings.question(self.earlier)
        candidates = read_triplets(self.triplets)
        # Left out here and not refused: searches that found nothing belong to any study
        distinct = [triplet for triplet in candidates if triplet.distinct]
        if len(distinct) < len(candidates):
            reporter.say(
                f"Left out: {len(candidates) - len(distinct):,} of {len(candidates):,} triplets, "
                f"whose "
                "sentences are not all different."
            )
        stood = EarlierStimuli.read(self.review, self.earlier)
        known = {triplet.triplet_id for triplet in distinct}

        def holds(item: ReviewedItem) -> bool:
            of_triplet = item.condition in (
                Condition.NATURAL_SYNTHETIC,
                Condition.SYNTHETIC_SYNTHETIC,
            )
            name = item.source_id if of_triplet else item.item_id
            return name in known or not (of_triplet or item.kind is ItemKind.TRIPLET)

        selection = select_triplets(
            distinct,
            question,
            tokens=None if settings.tokens is None else read_token_counts(settings.tokens),
            review=stood.review(holds),
        )
        certificate = selection.certificate
        chosen = in_place(
            stood.of_kind(Triplet),
            selection.triplets,
            lambda each: each.triplet_id,
            lambda each: (each.model_1, each.model_2),
        )
        write_triplets(self.out, chosen)
        certificate.save(Path(f"{self.out}.certificate.json"))
        reporter.say(
            f"{self.out}: {counted(len(selection.triplets), 'triplet')}; objective "
            f"{certificate.objective:.6f}, proven bound {certificate.bound:.6f} "
            f"({certificate.status})."
        )
        remark_stayed(certificate, "triplet", reporter)
        return Outcome(selection, {"earlier": stood.files})


def _edges(
    earlier: Sequence[Path], settings: SelectionSettings
) -> tuple[tuple[str, str, str, tuple[float, ...]], ...]:
    """The edges of quantile groups as they were, in certificates beside earlier tables."""
    from contstim.documents import read_json_object
    from contstim.optimization.selection.question import TripletCertificate

    edges: tuple[tuple[str, str, str, tuple[float, ...]], ...] = ()
    for path in earlier:
        beside = Path(f"{path}.certificate.json")
        if beside.is_file() and "price_bound" in read_json_object(beside):
            certificate = TripletCertificate.load(beside)
            if certificate.question.quantiles == settings.quantiles:
                edges += certificate.edges
    return edges
