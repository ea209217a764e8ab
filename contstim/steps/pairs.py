"""Natural sentence pairs on which models disagree most."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from contstim.errors import InputError
from contstim.options import Help
from contstim.reviews import ItemKind
from contstim.steps.watching import SILENT
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.optimization.selection.certificate import (
        NaturalCertificate,
        NaturalSelection,
        SelectionCertificate,
    )
    from contstim.reviews import ReviewedItem
    from contstim.steps.watching import Watcher

_SHOWN = 10  # pairs of models of which the command says how many sentences they may use

PairCounts = Annotated[
    Path | None,
    Help("A table model_1, model_2, per_pair, for model pairs that need another number."),
]


@dataclass(frozen=True, kw_only=True)
class PairSettings:
    """Options of selecting natural sentence pairs."""

    per_pair: Annotated[int, Help("Sentence pairs for each pair of models.")] = 10
    no_repeats: Annotated[
        bool, Help("Leave out sentences in which a word repeats.", flag="--no-repeats")
    ] = False
    repeatable: Annotated[
        Path | None,
        Help(
            "With --no-repeats: words that may repeat, one a line, or a vocabulary file with "
            "a list [repeatable]; by default English articles and prepositions."
        ),
    ] = None
    counts: PairCounts = None
    exclude: Annotated[
        tuple[Path, ...],
        Help(
            "Leave out these sentences: a text, or a table of stimuli such as the pairs of an "
            "earlier study; repeatable."
        ),
    ] = ()
    same_length: Annotated[
        bool,
        Help(
            "Give both sentences of a pair the same number of words, with ranks among "
            "sentences of that length; each length gets its share of every model pair's pairs.",
            flag="--same-length",
        ),
    ] = False
    agreeing: Annotated[
        bool,
        Help(
            "Allow pairs of which both models prefer the same sentence, as in the 2023 study: a "
            "sentence need not rank below the median of the model that rejects it.",
            flag="--agreeing",
        ),
    ] = False


def select_pairs(
    scores: Path,
    out: Path,
    *,
    settings: PairSettings,
    review: Sequence[Path] = (),
    earlier: Sequence[Path] = (),
    watch: Watcher = SILENT,
) -> NaturalSelection:
    """Select natural sentence pairs on which each pair of models disagrees most (2023, Eq. 5).

    Beside the table a certificate is written, of the objective and its proven bound.

    Args:
        scores: a table of scores, a row a sentence, a column a model, nats.
        out: the table of pairs to write.
        settings: how pairs are selected.
        review: reviews of pairs selected before: those not rejected stay.
        earlier: the tables of these pairs, and of the trials that they became: all pairs stay that
            nobody rejected, whether a review holds them or not, in their rows, and new ones show no
            sentence of a trial that stays.
        watch: told what is done.

    Raises:
        InputError: a file cannot be read or written, or there are too few sentences.
    """
    from contstim.counts import read_pair_counts
    from contstim.models.training_text import (
        contamination_facts,
        contamination_warnings,
        read_contamination,
    )
    from contstim.optimization.selection.natural import select_natural
    from contstim.optimization.selection.question import NaturalQuestion
    from contstim.records import write_record
    from contstim.scores import ScoreTable
    from contstim.steps.earlier import Earlier, in_place
    from contstim.stimuli import Condition, Pair, read_stimuli, write_pairs
    from contstim.tables import listed
    from contstim.vocabulary import REPEATABLE_ENGLISH, read_repeatable

    if settings.repeatable is not None and not settings.no_repeats:
        raise InputError("--repeatable names the exceptions of --no-repeats: give both.")
    exempt = settings.repeatable
    counts = {} if settings.counts is None else read_pair_counts(settings.counts)
    question = NaturalQuestion(
        per_pair=settings.per_pair,
        no_repeats=settings.no_repeats,
        same_length=settings.same_length,
        agreeing=settings.agreeing,
        counts=tuple((*pair, count) for pair, count in counts.items()),
        repeatable=REPEATABLE_ENGLISH if exempt is None else read_repeatable(exempt),
    )
    table = ScoreTable.read(scores)
    stood = Earlier.read(review, earlier)

    def holds(item: ReviewedItem) -> bool:
        is_pair = item.condition == Condition.NATURAL_CONTROVERSIAL or item.kind is ItemKind.PAIR
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
    write_pairs(out, pairs)
    certificate_path = Path(f"{out}.certificate.json")
    certificate.save(certificate_path)
    sides = (sentence for pair in pairs for sentence in (pair.sentence_1, pair.sentence_2))
    selected = (sentence for sentence in sides if sentence is not None)
    seen = read_contamination(scores, table.models, selected)
    agreed = [pair.trial_id for pair in pairs if not pair.controversial]
    write_record(
        out,
        [scores, settings.repeatable, settings.counts, *settings.exclude, *review],
        [certificate_path],
        scores=str(scores),
        per_pair=settings.per_pair,
        not_controversial=agreed,
        earlier=stood.files,
        **contamination_facts(seen),
    )
    for warning in contamination_warnings(seen, "selected sentences"):
        watch.warn(warning)
    unequal = sum(
        len(pair.sentence_1) != len(pair.sentence_2)
        for pair in pairs
        if pair.sentence_1 is not None and pair.sentence_2 is not None
    )
    if unequal:
        watch.warn(
            f"in {unequal:,} of {counted(len(pairs), 'pair')} the sentences "
            "differ in their number of words, and longer ones are less likely under every model: "
            "ask for the same length (--same-length; same_length = true in a study) to compare "
            "sentences of one length."
        )
    if agreed:
        watch.warn(
            f"in {len(agreed):,} of {counted(len(pairs), 'pair')} both models "
            f"prefer the same sentence, so that people cannot tell them apart: {listed(agreed)}. "
            "Leave out --agreeing (agreeing = true in a study) to have none of these."
        )
    watch.remark(
        f"{out}: {counted(len(pairs), 'pair')}; objective "
        f"{certificate.objective:.10f}, proven bound {certificate.bound:.10f}."
    )
    _remark_admissible(certificate, watch)
    remark_stayed(certificate, "pair", watch)
    return selection


def _remark_admissible(certificate: NaturalCertificate, watch: Watcher) -> None:
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
    watch.remark(
        f"  Of {counted(certificate.n_sentences, 'sentence')} so many are admissible ({below}at or "
        f"above the median of the model that accepts them{which}): {'; '.join(texts)}."
    )


def remark_stayed(certificate: SelectionCertificate, what: str, watch: Watcher) -> None:
    """Say how many reviewed items stay; nothing where none was reviewed.

    Args:
        certificate: of the selection after the review.
        what: a name for an item, such as `pair`.
        watch: told it.
    """
    if certificate.reviewed:
        watch.remark(
            f"  {certificate.kept:,} of {counted(certificate.reviewed, f'reviewed {what}')} stay, "
            f"{certificate.rejected:,} rejected; more than {certificate.kept_bound:,} cannot "
            f"stay (proven)."
        )
    if certificate.against:
        rules = "; ".join(f"{name} (by {by})" for name, by in certificate.against)
        watch.warn(
            f"more {what}s change than were rejected, as few as can be. With all others in their "
            f"places the nearest set would lack or break: {rules}. Give more to choose from."
        )
    if certificate.shared:
        watch.warn(
            f"every set has a new {what} with a sentence of a trial that stays, so that other "
            f"trials may have to change."
        )
