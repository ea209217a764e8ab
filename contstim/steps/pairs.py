"""Natural sentence pairs on which models disagree most."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from contstim.errors import InputError
from contstim.optimization.selection.question import NaturalQuestion, NaturalRules
from contstim.options import Reads, Writes
from contstim.reviews import ItemKind
from contstim.steps.fields import Earlier, Reviews
from contstim.steps.step import Outcome, Step
from contstim.vocabulary import REPEATABLE_ENGLISH, read_repeatable
from contstim.wording import counted

if TYPE_CHECKING:
    from contstim.optimization.selection.question import (
        NaturalCertificate,
        NaturalSelection,
        SelectionCertificate,
    )
    from contstim.reporter import Reporter
    from contstim.reviews import ReviewedItem

_SHOWN = 10  # pairs of models of which the command says how many sentences they may use

GivenCounts = Annotated[
    Path | None,
    Reads("A table model_1, model_2, per_pair, for model pairs that need another number."),
]


@dataclass(frozen=True, kw_only=True)
class PairSettings(NaturalRules):
    """Options of selecting natural sentence pairs."""

    repeatable: Annotated[
        Path | None,
        Reads(
            "With --no-repeats: words that may repeat, one a line, or a vocabulary file with "
            "a list [repeatable]; by default English articles and prepositions."
        ),
    ] = None
    counts: GivenCounts = None
    exclude: Annotated[
        tuple[Path, ...],
        Reads(
            "Leave out these sentences: a text, or a table of stimuli such as the pairs of an "
            "earlier study; repeatable."
        ),
    ] = ()

    def question(self) -> NaturalQuestion:
        """The same with files read.

        Raises:
            InputError: a file cannot be read, or names exceptions of a rule that is not asked for.
        """
        from contstim.counts import read_pair_counts

        if self.repeatable is not None and not self.no_repeats:
            raise InputError("`repeatable` names the exceptions of `no_repeats`: give both.")
        counts = {} if self.counts is None else read_pair_counts(self.counts)
        exempt = self.repeatable
        return NaturalQuestion(
            per_pair=self.per_pair,
            no_repeats=self.no_repeats,
            same_length=self.same_length,
            agreeing=self.agreeing,
            counts=tuple((*pair, count) for pair, count in counts.items()),
            repeatable=REPEATABLE_ENGLISH if exempt is None else read_repeatable(exempt),
        )


class SelectPairs(Step["NaturalSelection"], name="select natural"):
    """Select natural sentence pairs on which each pair of models disagrees most (2023, Eq. 5).

    Exact: the certificate beside the table holds the objective and its proven bound.

    After a review, pairs that were not rejected stay as they are; no sentence of a rejected one is
    chosen again, neither of the two.

    Examples: `contstim select natural --scores scores.csv --per-pair 10 --out pairs.csv`

    `contstim select natural --scores scores.csv --per-pair 10 --review review.csv
    --earlier pairs.csv --earlier trials.csv --out pairs-2.csv`
    """

    scores: Annotated[Path, Reads("Scores: .csv, .parquet, .jsonl or .npz.")]
    out: Annotated[Path, Writes("The table of pairs to write.", beside=(".certificate.json",))]
    settings: PairSettings = PairSettings()
    review: Reviews = ()
    earlier: Earlier = ()

    def work(self, reporter: Reporter) -> Outcome[NaturalSelection]:
        """Select the pairs, and write them with a certificate."""
        from contstim.models.training_text import (
            contamination_facts,
            contamination_warnings,
            read_contamination,
        )
        from contstim.optimization.selection.natural import select_natural
        from contstim.scores import ScoreTable
        from contstim.steps.earlier import EarlierStimuli, in_place
        from contstim.stimuli import Condition, Pair, read_stimuli, write_pairs
        from contstim.tables import listed

        settings = self.settings
        question = settings.question()
        table = ScoreTable.read(self.scores)
        stood = EarlierStimuli.read(self.review, self.earlier)

        def holds(item: ReviewedItem) -> bool:
            is_pair = (
                item.condition == Condition.NATURAL_CONTROVERSIAL or item.kind is ItemKind.PAIR
            )
            return not is_pair or (
                (item.model_1, item.model_2) in combinations(table.models, 2)
                and all(sentence in table.rows for sentence in item.sentences)
            )

        selection = select_natural(
            table,
            question,
            excluded=[sentence for path in settings.exclude for sentence in read_stimuli(path)],
            review=stood.review(holds),
        )
        certificate = selection.certificate
        pairs = in_place(
            stood.of_kind(Pair),
            selection.pairs,
            lambda pair: pair.trial_id,
            lambda pair: (pair.model_1, pair.model_2),
        )
        write_pairs(self.out, pairs)
        certificate.save(Path(f"{self.out}.certificate.json"))
        sides = (sentence for pair in pairs for sentence in (pair.sentence_1, pair.sentence_2))
        selected = (sentence for sentence in sides if sentence is not None)
        seen = read_contamination(self.scores, table.models, selected)
        agreed = [pair.trial_id for pair in pairs if not pair.controversial]
        for warning in contamination_warnings(seen, "selected sentences"):
            reporter.warn(warning)
        unequal = sum(
            len(pair.sentence_1) != len(pair.sentence_2)
            for pair in pairs
            if pair.sentence_1 is not None and pair.sentence_2 is not None
        )
        if unequal:
            reporter.warn(
                f"in {unequal:,} of {counted(len(pairs), 'pair')} the sentences "
                "differ in their number of words, and longer ones are less likely under every "
                "model: "
                "ask for `same_length` to compare "
                "sentences of one length."
            )
        if agreed:
            reporter.warn(
                f"in {len(agreed):,} of {counted(len(pairs), 'pair')} both models "
                f"prefer the same sentence, so that people cannot tell them apart: "
                f"{listed(agreed)}. "
                "Leave out `agreeing` to have none of these."
            )
        reporter.say(
            f"{self.out}: {counted(len(pairs), 'pair')}; objective "
            f"{certificate.objective:.10f}, proven bound {certificate.bound:.10f}."
        )
        _remark_admissible(certificate, reporter)
        remark_stayed(certificate, "pair", reporter)
        facts = {
            "not_controversial": agreed,
            "earlier": stood.files,
            **contamination_facts(seen),
        }
        return Outcome(selection, facts)


def _remark_admissible(certificate: NaturalCertificate, reporter: Reporter) -> None:
    """Say how many sentences pairs of models may use: of many pairs, those that have fewest."""
    admissible = {(reject, accept): n for reject, accept, n in certificate.admissible}
    pairs = [
        (a, b, admissible[a, b], admissible[b, a]) for a, b in combinations(certificate.models, 2)
    ]
    fewest = sorted(pairs, key=lambda pair: min(pair[2:]))[:_SHOWN]
    texts = (
        f"{a} against {b} {first:,}, {b} against {a} {second:,}" for a, b, first, second in fewest
    )
    which = f"; the {_SHOWN} scarcest pairs of models" if len(fewest) < len(pairs) else ""
    agreeing = certificate.question.agreeing
    below = "" if agreeing else "below the median of the model that rejects them and "
    reporter.say(
        f"  Of {counted(certificate.n_sentences, 'sentence')} so many are admissible ({below}at or "
        f"above the median of the model that accepts them{which}): {'; '.join(texts)}."
    )


def remark_stayed(certificate: SelectionCertificate, what: str, reporter: Reporter) -> None:
    """Say how many reviewed items stay; nothing where none was reviewed.

    Args:
        certificate: of the selection after the review.
        what: a name for an item, such as `pair`.
        reporter: told it.
    """
    if certificate.reviewed:
        reporter.say(
            f"  {certificate.kept:,} of {counted(certificate.reviewed, f'reviewed {what}')} stay, "
            f"{certificate.rejected:,} rejected; more than {certificate.kept_bound:,} cannot "
            f"stay (proven)."
        )
    if certificate.against:
        rules = "; ".join(f"{name} (by {by})" for name, by in certificate.against)
        reporter.warn(
            f"more {what}s change than were rejected, as few as can be. With all others in their "
            f"places the nearest set would lack or break: {rules}. Give more to choose from."
        )
    if certificate.shared:
        reporter.warn(
            f"every set has a new {what} with a sentence of a trial that stays, so that other "
            f"trials may have to change."
        )
