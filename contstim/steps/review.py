"""A page on which reviewers keep or reject items, and changes of a selection after a review."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from contstim.english.words import tag_table
from contstim.errors import InputError
from contstim.experiments.analysis.reliability import reliabilities_of
from contstim.experiments.responses.admission import admit
from contstim.experiments.responses.table import read_responses
from contstim.files.files import write_text
from contstim.items.item_flags import FlagSettings, flag_items
from contstim.items.reviews import Decision, Review, naturals_of, read_reviews, undecided_items
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import Trial, read_stimulus_table
from contstim.models.catalog import load_models
from contstim.models.loading import DEFAULT_LOADING, Loading
from contstim.models.scoring import mean_word_log_probs
from contstim.options import AnswerScale, Help, Judges, Reads, Writes
from contstim.reporting.review import ReviewPage
from contstim.steps.fields import Blocked, Language, language_rules
from contstim.steps.step import Outcome, Step
from contstim.wording import grouped, quantity
from contstim.words.frequencies import read_frequencies
from contstim.words.vocabulary import REPEATABLE_ENGLISH

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from contstim.files.arrays import FloatArray
    from contstim.items.item_flags import FlaggedItems
    from contstim.items.reviews import ItemKind, Stimulus
    from contstim.items.scale import Scale
    from contstim.optimization.selection.reviewed import ChangedItem
    from contstim.reporter import Reporter
    from contstim.words.sentence import Sentence


def flags_of(
    stimuli: Iterable[Stimulus], *, text: Path | None = None, tags: Path | str | None = None
) -> FlaggedItems:
    """Return the flags of stimuli, as `contstim review` shows them.

    A flag is a warning about an item, for example about a rare word. By default, flags use the
    rules for English words. If `tags` is set, or if the table of English words lacks most words of
    the stimuli, flags use only the rules for words of any language.

    Args:
        stimuli: pairs, triplets or trials.
        text: source of word frequencies: a text, counts or a model.
        tags: table or treebank with parts of speech, if the sentences are not English.

    Raises:
        InputError: if a pair has no texts, or a file cannot be read.
    """
    all_stimuli = list(stimuli)
    words = {w for item in undecided_items(all_stimuli) for s in item.sentences for w in s.words}
    language = "en" if not tags and tag_table(None).fits(words) else "any"
    return flag_items(all_stimuli, _flag_settings(language, None, text, tags))


def _flag_settings(
    language: str, blocked: Path | None, text: Path | None, tags: Path | str | None
) -> FlagSettings:
    """Return the settings of flags, with words, frequencies and tags loaded from their files."""
    return FlagSettings(
        language_rules(language, blocked),
        REPEATABLE_ENGLISH if language == "en" else frozenset(),
        None if text is None else read_frequencies(text),
        tags=tag_table(tags),
    )


class WriteReviewPage(Step[ReviewPage], name="review", version=3):
    """Write a page on which reviewers look at every item and keep or reject it.

    The page is one file that needs no network: open it in a browser, or send it to a colleague. It
    shows the sentences of each item with changed words marked, the models' log-probabilities, and
    flags. Flags are warnings about words on the block list, rare words, names, repetitions, similar
    items, and differences between a synthetic sentence and its natural sentence. Decisions are
    stored in the browser, and can be downloaded as review.csv. With --serve, each decision is saved
    at once.

    With --responses, the page shows how sure the participants were in each trial. It can show first
    the trials in which they were least sure. To combine the decisions of several reviewers, pass
    each of their files with --review.

    Example: `contstim review triplets.csv --text corpus.txt --out review.html`
    """

    table: Annotated[
        Path,
        Reads(
            "Triplets, pairs or trials.",
            argument=True,
            content="stimuli",
            kind="pairs|triplets|trials",
        ),
    ]
    out: Annotated[
        Path,
        Writes(
            "The page to write.", name="review/pairs.html|review/triplets.html|review/trials.html"
        ),
    ]
    scores: Annotated[Path | None, Reads("Scores of the sentences.", kind="scores||")] = None
    responses: Annotated[Path | None, Reads("Responses to the trials of the table.")] = None
    scale: AnswerScale = None
    review: Annotated[
        tuple[Path, ...],
        Reads("Reviews to show with the items, in the order of rounds.", content="reviews"),
    ] = ()
    reviewer: Annotated[str, Help("Reviewer's name; by default entered on the page.")] = ""
    text: Annotated[
        Path | None,
        Help(
            "Source of word frequencies (a text, counts or a model), to flag rare words and names.",
            kind="training text",
        ),
    ] = None
    rare: Annotated[
        float, Help("Zipf frequency below which a word is rare.", at_least=0, at_most=9)
    ] = 3.0
    often: Annotated[
        int | None,
        Help(
            "Flag words that occur in more than this number of items. By default 5, or 2 % of the "
            "items if this is more.",
            at_least=1,
        ),
    ] = None
    language: Language = "en"
    blocked: Blocked = None
    tags: Annotated[
        Path | None, Help("Parts of speech, if sentences are not English.", content="tags")
    ] = None
    judge: Judges = ()
    loading: Loading = DEFAULT_LOADING

    def work(self, reporter: Reporter) -> Outcome[ReviewPage]:
        """Write the page."""
        stimuli = read_stimulus_table(self.table)
        reviewer = " ".join(self.reviewer.split())
        review = read_reviews(self.review).about(stimuli) if self.review else None
        scores = None if self.scores is None else ScoreTable.from_file(self.scores)
        judged = _judged(stimuli, self.judge, self.loading)
        settings = _flag_settings(self.language, self.blocked, self.text, self.tags)
        settings = replace(settings, rare=self.rare, often=self.often, scores=scores, judged=judged)
        flags = flag_items(stimuli, settings)
        answers = {}
        if self.responses is not None:
            answers = _answers(self.table, self.responses, self.scale, reporter)
        content = ReviewPage(
            stimuli,
            f"Review of {self.table.name}",
            flags,
            scores=scores,
            review=review,
            reviewer=reviewer,
            answers=answers,
        )
        kind, n_items = content.items[0].kind, len(content.items)
        write_text(self.out, content.html())
        reporter.say(f"{self.out}: open it in a browser. {flags.text}")
        lines = () if review is None else _decided(review, n_items, kind)
        return Outcome(content, {"items": n_items, "flagged": len(flags.by_item)}, parts=[*lines])


def _judged(
    stimuli: Iterable[Stimulus], judges: Sequence[str], loading: Loading
) -> dict[Sentence, FloatArray]:
    """Return sentence → mean log-probabilities of its words under the judges, (n_words,), nats."""
    all_stimuli = list(stimuli)
    # A trial of two synthetic sentences does not contain their natural sentence
    item_sentences = chain.from_iterable(item.sentences for item in undecided_items(all_stimuli))
    naturals = filter(None, chain.from_iterable(naturals_of(all_stimuli).values()))
    sentences = [*dict.fromkeys((*item_sentences, *naturals))]
    return mean_word_log_probs(load_models(judges, loading), sentences) if judges else {}


def _decided(review: Review, n_items: int, kind: ItemKind) -> Iterator[str]:
    """Yield lines that count each reviewer's last decisions."""
    of_all = quantity(n_items, kind)
    last = [item for items in review.last_decisions.values() for item in items]
    for name in dict.fromkeys(item.reviewer for item in review.decisions):
        decisions = [item.decision for item in last if item.reviewer == name]
        rejected = decisions.count(Decision.REJECT)
        yield f"{name}: {len(decisions):,} of {of_all} decided, {rejected:,} rejected"
    yield (
        f"rejected by at least one reviewer: {len(review.rejected & review.by_item.keys()):,}; "
        f"reviewers disagree: {len(review.disagreements):,}"
    )


def _answers(
    table: Path, responses: Path, scale: Scale | None, reporter: Reporter
) -> dict[str, tuple[str, float | None]]:
    """Return identifier of a trial → text about its answers, and how sure participants were.

    The second value, `ItemReliability.sureness`, is a probability from 1/2 to 1. It is None if it
    cannot be estimated. Only participants who finished and passed the catch trials are included;
    this is also the default of `analyze`.
    """
    import numpy as np

    trials = [trial for trial in read_stimulus_table(table) if isinstance(trial, Trial)]
    if not trials:
        raise InputError(
            f"{responses} has responses to trials, but {table} has no trials. Review the table of "
            "trials that participants saw, or remove `responses`."
        )
    admission = admit(trials, read_responses(responses, trials, scale=scale))
    reporter.say(str(admission))
    reporter.warn(admission.origin.warning)
    ratings = grouped((answer.trial_id, float(answer.rating)) for answer in admission.responses)
    simulated = Counter(answer.trial_id for answer in admission.responses if answer.simulated)
    rated = [
        (trial, np.array(ratings[trial.trial_id])) for trial in trials if trial.trial_id in ratings
    ]
    reliabilities = reliabilities_of(rated, admission.responses[0].scale)
    answers: dict[str, tuple[str, float | None]] = {}
    for name, reliability in reliabilities.items():
        text, sureness = quantity(len(ratings[name]), "answer"), None
        if simulated[name]:
            text += f", {simulated[name]:,} simulated"
        text += f": mean rating {np.mean(ratings[name]):.1f}"
        if reliability is not None:
            sureness, side = reliability.sureness, 2 if reliability.sure_of_2 > 1 / 2 else 1
            text += f", {sureness:.0%} sure of sentence {side}"
        answers[name] = (text, sureness)
    return answers


def report_changes(
    changed: Sequence[ChangedItem], item_name: str, reporter: Reporter
) -> dict[str, list[dict[str, str]]]:
    """Warn about changed items that no reviewer rejected; return facts for the record."""
    if not changed:
        return {}
    reporter.warn(
        f"{quantity(len(changed), f'reviewed {item_name}')} that no reviewer rejected "
        f"cannot stay. {'; '.join(map(str, changed))}. Add candidates to keep more items."
    )
    return {"changed": [asdict(item) for item in changed]}
