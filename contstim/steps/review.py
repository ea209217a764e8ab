"""A page on which people keep or reject items, and what stays of stimuli after their review."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass, replace
from itertools import chain
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from contstim.english.tags import tag_table
from contstim.errors import InputError, VerificationError
from contstim.experiments.analysis.reliability import reliabilities_of
from contstim.experiments.responses.admission import admit
from contstim.experiments.responses.table import read_responses
from contstim.files.files import checksum, write_text
from contstim.items.item_flags import FlagSettings, flag_items
from contstim.items.reviews import Decision, Review, naturals_of, read_reviews, undecided
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import Pair, Trial, Triplet, read_stimulus_table, repeated_item
from contstim.models.catalog import load_models
from contstim.models.scoring import token_terms
from contstim.options import AnswerScale, Help, Models, Reads, Writes
from contstim.reporting.review import ReviewPage
from contstim.steps.fields import Blocked, Language, language_rules
from contstim.steps.step import Outcome, Step
from contstim.wording import counted
from contstim.words.frequencies import read_frequencies
from contstim.words.vocabulary import REPEATABLE_ENGLISH

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    from contstim.items.item_flags import FlaggedItems
    from contstim.items.reviews import ItemKind, ReviewedItem, Stimulus
    from contstim.items.scale import Scale
    from contstim.reporter import Reporter
    from contstim.words.sentence import Sentence

_Item = TypeVar("_Item", Pair, Triplet, Trial)


@dataclass(frozen=True, kw_only=True)
class ReviewSettings:
    """Options of flagging items on a page of review."""

    text: Annotated[Path | None, Help("Text, counts or model: tells rare words and names.")] = None
    rare: Annotated[
        float, Help("Words below it are rare, on the Zipf scale.", at_least=0, at_most=9)
    ] = 3.0
    often: Annotated[
        int | None, Help("Flag words in more items; by default 5, or 2 in 100.", at_least=1)
    ] = None
    language: Language = "en"
    blocked: Blocked = None
    tags: Annotated[
        Path | None, Help("Parts of speech of another language's words.", content="tags")
    ] = None
    judge: Annotated[str | None, Models("A further model: flags words it finds unlikely.")] = None

    def flags(self) -> FlagSettings:
        """The same with files read, but for the judge.

        Raises:
            InputError: a file cannot be read.
        """
        return FlagSettings(
            language_rules(self.language, self.blocked),
            REPEATABLE_ENGLISH if self.language == "en" else frozenset(),
            None if self.text is None else read_frequencies(self.text),
            self.rare,
            self.often,
            tag_table(self.tags),
        )


def flags_of(stimuli: Iterable[Stimulus], **settings: Any) -> FlaggedItems:
    """The flags of stimuli, as `contstim review` finds them with these settings.

    Sentences most words of which no table of English has are of another language.

    Raises:
        InputError: a pair has no texts, or a file cannot be read.
    """
    every = list(stimuli)
    words = {w for item in undecided(every) for s in item.sentences for w in s.words}
    if settings.get("tags") or not tag_table(None).fits(words):
        settings["language"] = "any"
    return flag_items(every, ReviewSettings(**settings).flags())


class WriteReviewPage(Step[ReviewPage], name="review", version=3):
    """Write a page on which people look at every item and keep or reject it.

    The page is one file that needs no network: open it in a browser, or send it to somebody. It
    shows the sentences of each item with changed words marked, the models' log-probabilities, and
    flags: words on the block list, rare words, names, repetitions, items that are alike, and what
    does not fit between a synthetic sentence and its natural one. Decisions are kept in the browser
    and downloaded as review.csv, or saved as they are made with --serve.

    With --responses each trial says how sure people are of it, and the least sure can come first.
    Decisions of several people come together by giving each file with --review.

    Example: `contstim review triplets.csv --text corpus.txt --out review.html`
    """

    table: Annotated[Path, Reads("Triplets, pairs or trials.", argument=True, content="stimuli")]
    out: Annotated[Path, Writes("The page to write.")]
    scores: Annotated[Path | None, Reads("Scores of the sentences, as of `score`.")] = None
    responses: Annotated[Path | None, Reads("Answers to these trials: how sure people are.")] = None
    scale: AnswerScale = None
    review: Annotated[
        tuple[Path, ...], Reads("A review to show on its items.", content="reviews")
    ] = ()
    earlier_rounds: Annotated[
        tuple[Path, ...], Reads("A review of what stood before.", content="reviews")
    ] = ()
    reviewer: Annotated[str, Help("Who reviews; by default to be filled in on the page.")] = ""
    settings: ReviewSettings = ReviewSettings()

    def work(self, reporter: Reporter) -> Outcome[ReviewPage]:
        """Write the page."""
        stimuli = read_stimulus_table(self.table)
        reviewer = " ".join(self.reviewer.split())
        review = read_reviews(self.review) if self.review else None
        if review is not None:
            review.require_items_of(stimuli, self.table)
        earlier = review
        if self.earlier_rounds:
            before = read_reviews(self.earlier_rounds).about(stimuli)
            earlier = before if review is None else Review((*review.decisions, *before.decisions))
        scores = None if self.scores is None else ScoreTable.read(self.scores)
        judge = self.settings.judge
        judged = {} if judge is None else _judged(stimuli, judge)
        settings = replace(self.settings.flags(), scores=scores, judged=judged)
        flags = flag_items(stimuli, settings)
        content = ReviewPage(
            stimuli,
            f"Review of {self.table.name}",
            flags,
            scores=scores,
            review=earlier,
            reviewer=reviewer,
            answers={}
            if self.responses is None
            else _answers(self.table, self.responses, self.scale, reporter),
        )
        kind, n_items = content.items[0].kind, len(content.items)
        if review is not None and earlier is not None and not earlier.of_kind(kind):
            raise InputError(f"{self.table} holds {kind}s, and no {kind} was reviewed in `review`.")
        write_text(self.out, content.html())
        reporter.say(f"{self.out}: open it in a browser. {flags.text}")
        shown = () if review is None else _decided(review, n_items, kind)
        return Outcome(content, {"items": n_items, "flagged": len(flags.by_item)}, shown=[*shown])


def _judged(stimuli: Iterable[Stimulus], judge: str) -> dict[Sentence, list[float]]:
    """Log-probability of each word of the sentences under the judge, nats."""
    every = list(stimuli)
    # Trials of two synthetic sentences bring their natural one along, which stands in no item
    shown = chain.from_iterable(item.sentences for item in undecided(every))
    naturals = filter(None, chain.from_iterable(naturals_of(every).values()))
    terms = token_terms(load_models(judge)[0], [*dict.fromkeys((*shown, *naturals))])
    return {
        sentence: [fsum(t.log_prob for t in of_all if t.word == i) for i in range(len(sentence))]
        for sentence, of_all in terms.items()
    }


def _decided(review: Review, n_items: int, kind: ItemKind) -> Iterator[str]:
    """The decisions of reviewers about items of a kind, in a few lines."""
    # A file may hold decisions about pairs, triplets and trials
    decisions = [item for item in review.decisions if item.kind is kind]
    for name in dict.fromkeys(item.reviewer for item in decisions):
        # By item, not by row: files may repeat each other's rows
        own = {i.item_id: i.decision for i in decisions if i.reviewer == name and i.decision}
        rejected = [*own.values()].count(Decision.REJECT)
        yield f"{name}: {len(own):,} of {counted(n_items, kind)} decided, {rejected:,} rejected"
    names = {item.item_id for item in decisions}
    yield (
        f"rejected by anybody: {len(review.rejected & names):,}; reviewers disagree: "
        f"{len(review.disagreements.keys() & names):,}"
    )


def _answers(
    table: Path, responses: Path, scale: Scale | None, reporter: Reporter
) -> dict[str, tuple[str, float | None]]:
    """People's answers to each trial, and how sure they are of them.

    They are those whom `analyze` keeps: who finished and passed their catch trials.
    """
    import numpy as np

    trials = [trial for trial in read_stimulus_table(table) if isinstance(trial, Trial)]
    if not trials:
        raise InputError(
            f"{responses} holds answers to trials, and {table} holds no trials. Review the table "
            "of trials that people saw, or leave out `responses`."
        )
    admission = admit(trials, read_responses(responses, trials, scale=scale))
    reporter.say(str(admission))
    reporter.warn(admission.origin.warning)
    ratings: dict[str, list[float]] = {}
    simulated: Counter[str] = Counter()
    for response in admission.responses:
        ratings.setdefault(response.trial_id, []).append(float(response.rating))
        simulated[response.trial_id] += response.simulated
    rated = [
        (trial, np.array(ratings[trial.trial_id])) for trial in trials if trial.trial_id in ratings
    ]
    reliabilities = reliabilities_of(rated, admission.responses[0].scale)
    answers: dict[str, tuple[str, float | None]] = {}
    for name, reliability in reliabilities.items():
        text, sureness = counted(len(ratings[name]), "answer"), None
        if simulated[name]:
            text += f", {simulated[name]:,} simulated"
        text += f": mean rating {np.mean(ratings[name]):.1f}"
        if reliability is not None:
            sureness, side = reliability.sureness, 2 if reliability.sure_of_2 > 1 / 2 else 1
            text += f", {sureness:.0%} sure of sentence {side}"
        answers[name] = (text, sureness)
    return answers


@dataclass(frozen=True)
class EarlierStimuli:
    """Earlier tables, and what reviewers decided.

    Attributes:
        stimuli: those of the tables, in order.
        reviews: what reviewers decided, of all rounds.
        files: the checksum of each table, by its name.
    """

    stimuli: tuple[Stimulus, ...]
    reviews: Review | None
    files: dict[str, str]

    @classmethod
    def read(cls, review: Sequence[Path], earlier: Sequence[Path]) -> EarlierStimuli:
        """Read tables of pairs, triplets or trials, and reviews.

        Raises:
            InputError: a file cannot be read, or is something else; two tables hold the same item.
        """
        stimuli = tuple(stimulus for path in earlier for stimulus in read_stimulus_table(path))
        if twice := repeated_item(stimuli):
            raise InputError(
                f"`earlier` must name each item once, and {twice} occurs twice. Of several rounds "
                "name the table of the last round only."
            )
        return cls(
            stimuli,
            read_reviews(review) if review else None,
            {path.as_posix(): checksum(path) for path in earlier},
        )

    def review(self, holds: Callable[[ReviewedItem], bool] = lambda _: True) -> Review | None:
        """Decisions about the earlier stimuli, with those that nobody decided about.

        Where there are earlier tables, what stood is what they hold: of reviews of rounds before
        them only the rejections count.

        Args:
            holds: whether a stimulus can still stay, for all that reviewers say.
        """
        if self.reviews is None and not self.stimuli:
            return None
        decided = Review(()) if self.reviews is None else self.reviews
        if not self.stimuli:
            return decided
        rejections = tuple(item for item in decided.decisions if decided.rejects(item))
        return Review(
            (*rejections, *(i for i in undecided(self.stimuli) if decided.rejects(i) or holds(i)))
        )

    def of_kind(self, kind: type[_Item]) -> list[_Item]:
        """The pairs, the triplets or the trials."""
        return [stimulus for stimulus in self.stimuli if isinstance(stimulus, kind)]


def in_place(
    before: Sequence[_Item],
    now: Sequence[_Item],
    name: Callable[[_Item], Hashable],
    kind: Callable[[_Item], Hashable],
    placed: Callable[[_Item, _Item], _Item] = lambda now, _before: now,
) -> list[_Item]:
    """Stimuli in the rows in which they stood, and new ones in the rows of what is gone.

    Args:
        before: the earlier table.
        now: all stimuli of the new table.
        name: by which a stimulus is known again.
        kind: a new stimulus stands in the row of one of its kind; the rest is appended.
        placed: the stimulus of a row, given the one that stood there.

    Raises:
        VerificationError: the rows are not the stimuli of the new table, once each.
    """
    by_name = {name(stimulus): stimulus for stimulus in now}
    stood = {name(stimulus) for stimulus in before}
    new: dict[Hashable, deque[_Item]] = defaultdict(deque)
    for stimulus in now:
        if name(stimulus) not in stood:
            new[kind(stimulus)].append(stimulus)
    rows: list[_Item] = []
    for stimulus in before:
        if name(stimulus) in by_name:
            rows.append(placed(by_name[name(stimulus)], stimulus))
        elif waiting := new[kind(stimulus)]:
            rows.append(placed(waiting.popleft(), stimulus))
    for waiting in new.values():
        rows += waiting
    if Counter(map(name, rows)) != Counter(map(name, now)):
        raise VerificationError("The table would lack or repeat items: do not use it.")
    return rows


def trials_in_place(before: Sequence[Trial], now: Sequence[Trial]) -> list[Trial]:
    """Trials in their rows, see `in_place`, with the turns and sides of those that stood there."""

    def placed(trial: Trial, stood: Trial) -> Trial:
        gone = "" if trial.trial_id == stood.trial_id else stood.trial_id
        return replace(trial, instead_of=stood.instead_of or gone)

    return in_place(
        before,
        now,
        lambda trial: (trial.trial_id, trial.group),
        lambda trial: (trial.group, trial.condition, trial.model_1, trial.model_2, trial.kind_2),
        placed,
    )


def tell_stayed(certificate: Any, what: str, reporter: Reporter) -> None:
    """Say how many reviewed pairs, triplets or trials stay; nothing where none was reviewed."""
    if certificate.reviewed:
        reporter.say(
            f"  {certificate.kept:,} of {counted(certificate.reviewed, f'reviewed {what}')} stay, "
            f"{certificate.rejected:,} rejected; more than {certificate.kept_bound:,} cannot "
            f"stay (proven)."
        )
