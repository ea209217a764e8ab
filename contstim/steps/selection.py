"""Steps that select natural pairs, triplets and minimal pairs."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from contstim.english.words import tag_table
from contstim.errors import InputError
from contstim.files.tables import columns_of, join_names, write_table
from contstim.items.matching import figures_of
from contstim.items.minimal_pair_scores import MinimalPairScores
from contstim.items.reviews import read_reviews
from contstim.items.scores import ScoreTable, read_pair_counts, read_token_counts
from contstim.items.stimuli import (
    Pair,
    Triplet,
    minimal_pair_columns,
    read_stimuli,
    read_triplets,
    triplet_columns,
)
from contstim.models.scoring import recorded_conventions
from contstim.models.training_text import read_contamination, tell_contamination
from contstim.optimization.selection.minimal_pairs import select_minimal_pairs
from contstim.optimization.selection.natural import select_natural
from contstim.optimization.selection.question import (
    MinimalPairQuestion,
    MinimalPairSelection,
    NaturalQuestion,
    NaturalRules,
    NaturalSelection,
    TripletQuestion,
    TripletRules,
    TripletSelection,
)
from contstim.optimization.selection.triplets import has_enough, select_triplets
from contstim.options import Reads, WritesTable, reads_kind
from contstim.reporting.report import Table
from contstim.reporting.stimuli_page import figures_table
from contstim.steps.fields import Reviews, Uncapped, uncapped_words
from contstim.steps.review import flags_of, report_changes
from contstim.steps.step import Outcome, Step
from contstim.wording import grouped, quantity
from contstim.words.vocabulary import REPEATABLE_ENGLISH, read_repeatable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.reporter import Reporter

_WritesSelection = partial(WritesTable, "The table to write.", beside=(".certificate.json",))

GivenCounts = Annotated[
    Path | None,
    Reads(
        "A table with the columns model_1, model_2 and per_pair. It sets the number of items for "
        "pairs of models that need another number.",
        content="pair counts",
    ),
]


def _counts(path: Path | None) -> tuple[tuple[str, str, int], ...]:
    counts = {} if path is None else read_pair_counts(path)
    return tuple((*pair, number) for pair, number in counts.items())


class SelectPairs(Step[NaturalSelection], name="select natural", version=3):
    """Select natural sentence pairs on which two models disagree most (Golan et al. 2023, Eq. 5).

    The certificate next to the table has the objective and its proven bound. If both are equal, the
    selection is optimal.

    After a review, no sentence of a rejected item is selected. As many other reviewed pairs as
    possible stay selected. If such a pair cannot stay, a warning names the pair and the rule that
    it would break.

    Examples: `contstim select natural --scores scores.csv --per-pair 10 --out pairs.csv`

    `contstim select natural --scores scores.csv --per-pair 10 --review review.csv
    --out pairs-2.csv`
    """

    scores: Annotated[Path, reads_kind("Scores: .csv, .tsv, .parquet, .jsonl or .npz.", "scores")]
    out: Annotated[Path, _WritesSelection(kind="pairs", name="pairs.csv")]
    settings: NaturalRules = NaturalRules()
    repeatable: Annotated[
        Path | None, Reads("With --no-repeats: words that may repeat.", content="repeatable words")
    ] = None
    counts: GivenCounts = None
    exclude: Annotated[
        tuple[Path, ...], Reads("Exclude the sentences of this file.", content="sentences")
    ] = ()
    review: Reviews = ()

    def check(self) -> None:
        """Check that a file of repeatable words has a use."""
        if self.repeatable is not None and not self.settings.no_repeats:
            raise InputError("`repeatable` needs `no_repeats`. Set both, or neither.")

    def work(self, reporter: Reporter) -> Outcome[NaturalSelection]:
        """Select the pairs, and write them with a certificate."""
        words = self.repeatable
        question = NaturalQuestion(
            **vars(self.settings),
            counts=_counts(self.counts),
            repeatable=REPEATABLE_ENGLISH if words is None else read_repeatable(words),
        )
        table = ScoreTable.from_file(self.scores)
        selection = select_natural(
            table,
            question,
            excluded=[stimulus for path in self.exclude for stimulus in read_stimuli(path)],
            review=read_reviews(self.review) if self.review else None,
        )
        pairs = selection.pairs
        write_table(self.out, columns_of(Pair, pairs))
        selected = [s for p in pairs for s in (p.sentence_1, p.sentence_2) if s is not None]
        seen = read_contamination(self.scores, table.models, selected)
        contamination = tell_contamination(seen, reporter, "selected sentences")
        agreed = [pair.trial_id for pair in pairs if not pair.controversial]
        _tell_pairs(pairs, agreed, reporter)
        changed = report_selection(self.out, selection, len(pairs), "pair", reporter)
        return Outcome(selection, {"not_controversial": agreed, **changed, **contamination})


def _tell_pairs(pairs: Sequence[Pair], agreed: Sequence[str], reporter: Reporter) -> None:
    of_all = f"of {quantity(len(pairs), 'pair')}"
    sides = [(p.sentence_1, p.sentence_2) for p in pairs if p.sentence_1 and p.sentence_2]
    unequal = sum(len(a) != len(b) for a, b in sides)
    mixed = sum(a.is_question != b.is_question for a, b in sides)
    if mixed:
        reporter.say(
            f"  In {mixed:,} {of_all} a question is paired with a statement; a review can reject "
            "such pairs."
        )
    if unequal:
        reporter.warn(
            f"in {unequal:,} {of_all} the sentences differ in their number of words, and longer "
            "sentences are less likely under every model. Set `same_length`."
        )
    if agreed:
        reporter.warn(
            f"in {len(agreed):,} {of_all} both models prefer the same sentence, so that "
            f"responses cannot distinguish the models: {join_names(agreed)}. Remove `agreeing` to "
            "exclude such pairs."
        )


class SelectTriplets(Step[TripletSelection], name="select triplets", version=3):
    """Select triplets of a natural and two synthetic sentences, with as few new words as possible.

    The command excludes and counts two kinds of triplets. In the first kind, a rejected sentence is
    too likely: its log-probability is less than --enough nats below the log-probability of the
    natural sentence. In the second kind, the sentences are not all different, because a search
    found nothing better than the natural sentence. By default, the selection has the fewest new
    words with another part of speech than the replaced words. Among all such selections, it has the
    fewest new words.

    The certificate next to the table has the objective and its proven bound. Both are equal unless
    the time limit (--seconds) is reached.

    After a review, no rejected triplet is selected. As many other reviewed triplets as possible
    stay selected. If such a triplet cannot stay, a warning names the triplet and the rule that it
    would break.

    Examples: `contstim select triplets --triplets triplets.csv --per-pair 10 --enough 5
    --out selected.csv`

    `contstim select triplets --triplets triplets.csv --per-pair 10 --review review.csv
    --out selected-2.csv`
    """

    triplets: Annotated[Path, reads_kind("Candidate triplets of all model pairs.", "triplets")]
    out: Annotated[Path, _WritesSelection(kind="triplets", name="selected.csv")]
    settings: TripletRules = TripletRules()
    counts: GivenCounts = None
    uncapped: Uncapped = None
    tokens: Annotated[
        Path | None,
        Reads("With --token-balance: words from `score --per-word`.", content="token counts"),
    ] = None
    review: Reviews = ()

    def check(self) -> None:
        """Check that tokens and their balance are set together."""
        if (self.settings.token_balance is None) != (self.tokens is None):
            raise InputError("`tokens` and `token_balance` need each other. Set both, or neither.")

    def work(self, reporter: Reporter) -> Outcome[TripletSelection]:
        """Select the triplets, and write them with a certificate."""
        question = TripletQuestion(
            **vars(self.settings),
            uncapped=uncapped_words(self.uncapped, self.settings.word_cap),
            counts=_counts(self.counts),
        )
        candidates = read_triplets(self.triplets)
        # Triplets with equal sentences are not an error, because every study has searches that find
        # nothing
        distinct = [triplet for triplet in candidates if triplet.distinct]
        if len(distinct) < len(candidates):
            reporter.say(
                f"Excluded: {len(candidates) - len(distinct):,} of {len(candidates):,} triplets, "
                "because their sentences are not all different."
            )
        selection = select_triplets(
            distinct,
            question,
            tokens=None if self.tokens is None else read_token_counts(self.tokens),
            review=read_reviews(self.review) if self.review else None,
        )
        chosen = selection.triplets
        write_table(self.out, triplet_columns(chosen))
        _remark_objective(question, distinct, reporter)
        changed = report_selection(self.out, selection, len(chosen), "triplet", reporter)
        flagged = flags_of(chosen, tags=question.tags)
        figures = [
            figures_of(triplets, flagged.share, flagged.table, question.enough or 0.0)
            for triplets in grouped((t.drop_unit, t) for t in chosen).values()
        ]
        facts = {**changed, "figures": figures[0]}
        return Outcome(selection, facts, parts=[*map(figures_table, figures)])


def _remark_objective(
    question: TripletQuestion, triplets: Sequence[Triplet], reporter: Reporter
) -> None:
    if question.objective != "readable":
        by_nats = {
            "controversiality": "identifies the better of two models less often than a random "
            "selection (.66 against .85 of the time with one triplet of the 2023 study)",
            "worst-rank": "prefers triplets with large drops in nats, as `controversiality` does",
        }[question.objective]
        reporter.warn(
            f"`objective` {question.objective} {by_nats}. Remove `objective`, unless you repeat an "
            "earlier selection."
        )
        return
    for unit, members in grouped((t.drop_unit, t) for t in triplets).items():
        if low := sum(not has_enough(triplet, question) for triplet in members):
            reporter.say(
                f"Excluded: {low:,} of {quantity(len(members), 'triplet')}, with a drop of less "
                f"than {question.least_drop(members[0]):g} {unit} under one of the two models."
            )
    table = tag_table(question.tags)
    if not table.fits({word for t in triplets for word in t.natural.words}):
        reporter.warn(
            f"{table.name} has less than half of the words of the natural sentences. If a "
            "replaced word is not in the table, the part of speech of the new word is ignored. So "
            "`objective` readable mostly counts new words. Set `tags` for the language of the "
            "sentences."
        )


class SelectMinimalPairs(Step[MinimalPairSelection], name="select minimal-pairs", version=4):
    """Select minimal pairs on which two models prefer different sentences.

    For every two models, the selection has two halves. In one half, only the first model prefers
    the acceptable sentence; in the other half, only the second model. Each half is spread over the
    paradigms as evenly as possible. First, the number of paradigms without a pair in this half is
    minimised, then the number of paradigms with one pair, and so on. Of all such selections, the
    command chooses one with the best objective. No sentence is in two selected pairs. A second
    table (`….verdicts.csv`) counts the pairs of each paradigm on which only one of two models
    prefers the acceptable sentence.

    After a review, no sentence of a rejected item is selected. As many other reviewed minimal pairs
    as possible stay selected. If such a pair cannot stay, a warning names the pair and the rule
    that it would break.

    The certificate next to the table has the objective and its proven bound. If both are equal, the
    selection is optimal.

    Example: `contstim select minimal-pairs --pairs results/pairs.csv --per-pair 20
    --out minimal_pairs.csv`
    """

    pairs: Annotated[
        Path, reads_kind("Minimal pairs with scores, from evaluate blimp.", "minimal pair scores")
    ]
    out: Annotated[
        Path,
        _WritesSelection(
            beside=(".certificate.json", ".verdicts.csv"),
            kind="minimal pairs",
            name="minimal-pairs.csv",
        ),
    ]
    settings: MinimalPairQuestion = MinimalPairQuestion()
    review: Reviews = ()

    def work(self, reporter: Reporter) -> Outcome[MinimalPairSelection]:
        """Select the pairs, and write them with the verdicts and a certificate."""
        scores = MinimalPairScores.from_file(self.pairs)
        review = read_reviews(self.review) if self.review else None
        selection = select_minimal_pairs(scores, self.settings, review=review)
        # Only the pairs of `contstim near-pairs` may have scores that are not in nats
        conventions = recorded_conventions(self.pairs, scores.models).values()
        in_nats = all(convention.is_log_probability for convention in conventions)
        write_table(self.out, minimal_pair_columns(selection.pairs, in_nats=in_nats))
        write_table(Path(f"{self.out}.verdicts.csv"), selection.verdicts)
        number = len(selection.pairs)
        changed = report_selection(self.out, selection, number, "minimal pair", reporter)
        columns = ("model_1", "model_2", "model_1_right", "model_2_right")
        verdicts: list[Any] = [*zip(*(selection.verdicts[name] for name in columns), strict=True)]
        n_pairs, better = len(scores.pairs), scores.good_name
        # `counts` has two numbers for each paradigm: the pairs about which only model 1 is right,
        # and the pairs about which only model 2 is right
        rows = [
            (*two, n_pairs, *map(sum, zip(*counts, strict=True)), counts.count((0, 0)))
            for two, counts in grouped((row[:2], row[2:]) for row in verdicts).items()
        ]
        alone_prefers = [f"only model {number} prefers the {better} one" for number in (1, 2)]
        header = ("model 1", "model 2", "pairs", *alone_prefers, "paradigms without a difference")
        return Outcome(
            selection,
            {"verdicts": len(verdicts), "minimal_pairs": n_pairs, **changed},
            parts=[Table(header, rows, texts=2)],
        )


def report_selection(
    out: Path,
    selection: NaturalSelection | TripletSelection | MinimalPairSelection,
    number: int,
    item_name: str,
    reporter: Reporter,
) -> dict[str, list[dict[str, str]]]:
    """Write the certificate, report the objective, and return changed items for the record."""
    certificate = selection.certificate
    certificate.save(Path(f"{out}.certificate.json"))
    proof = "proven to be the best"
    if certificate.status != "optimal":
        proof = f"no selection is better than {certificate.bound:.6f} ({certificate.status})"
    reporter.say(
        f"{out}: {quantity(number, item_name)}; objective {certificate.objective:.6f}, {proof}."
    )
    return report_changes(selection.changed, item_name, reporter)
