"""A page on which people keep or reject items."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from contstim.errors import InputError
from contstim.files import write_text
from contstim.item_flags import flag_items
from contstim.options import AnswerScale, Help, Reads, Writes
from contstim.reporting.review import ItemAnswers, PageContent
from contstim.reviews import Review, read_reviews, write_review
from contstim.scores import ScoreTable
from contstim.steps.step import Outcome, Step
from contstim.steps.text_settings import ReviewSettings
from contstim.stimuli import Trial, read_stimulus_table
from contstim.tables import table_kind
from contstim.wording import counted

if TYPE_CHECKING:
    from contstim.reporter import Reporter
    from contstim.scale import Scale

_DEFAULTS = ReviewSettings()


class WriteReviewPage(Step[PageContent], name="review"):
    """Write a page on which people look at every item and keep or reject it.

    The page is one file that needs no network: open it in a browser, or send it to somebody. It
    shows the sentences of each item with changed words marked, the models' log-probabilities, and
    flags: words on the block list, rare words, names, repetitions, items that are alike. Decisions
    are kept in the browser and downloaded as review.csv, or saved as they are made with --serve.

    With --responses each trial says how sure people are of it, and the least sure can come first.
    Decisions of several people come together by giving each file with --review.

    Example: `contstim review triplets.csv --text corpus.txt --out review.html`
    """

    table: Annotated[Path, Reads("Triplets, pairs or trials.", argument=True)]
    out: Annotated[Path, Writes("The page to write.")]
    scores: Annotated[
        Path | None, Reads("Scores of the sentences, as of `score`: a column for each model.")
    ] = None
    responses: Annotated[
        Path | None,
        Reads("What people answered to these trials: shows how sure they are of each."),
    ] = None
    scale: AnswerScale = None
    review: Annotated[
        tuple[Path, ...],
        Reads("A review that was made already; shown on each item. Repeatable."),
    ] = ()
    earlier_rounds: Annotated[
        tuple[Path, ...],
        Reads(
            "A review of what stood before, or of other tables: what it says of items that are "
            "still as they were is shown. Repeatable."
        ),
    ] = ()
    merged: Annotated[Path | None, Writes("Also write all of --review as one table.")] = None
    reviewer: Annotated[str, Help("Who reviews; by default to be filled in on the page.")] = ""
    settings: ReviewSettings = _DEFAULTS

    def work(self, reporter: Reporter) -> Outcome[PageContent]:
        """Write the page."""
        if self.merged is not None:
            table_kind(self.merged)
            if not self.review:
                raise InputError("`merged` joins reviews: name them in `review`.")
        stimuli = read_stimulus_table(self.table)
        reviewer = " ".join(self.reviewer.split())
        earlier: Review | None = None
        if self.review:
            earlier = read_reviews(self.review)
            earlier.require_items_of(stimuli, self.table)
        if self.earlier_rounds:
            before = read_reviews(self.earlier_rounds).about(stimuli)
            earlier = before if earlier is None else Review((*earlier.decisions, *before.decisions))
        flags = flag_items(stimuli, self.settings.flags())
        content = PageContent.of(
            stimuli,
            title=f"Review of {self.table.name}",
            flags=flags,
            scores=None if self.scores is None else ScoreTable.read(self.scores),
            review=earlier,
            reviewer=reviewer,
            answers=None
            if self.responses is None
            else _answers(self.table, self.responses, self.scale, reporter),
        )
        kind, n_items = content.items[0].kind, len(content.items)
        if self.review and earlier is not None and not earlier.of_kind(kind):
            raise InputError(f"{self.table} holds {kind}s, and no {kind} was reviewed in `review`.")
        write_text(self.out, content.html())
        reporter.say(f"{self.out}: {flagged(content)}; open it in a browser.")
        if self.merged is not None and self.review:
            decisions = read_reviews(self.review).decisions
            write_review(self.merged, decisions)
            reporter.say(f"{self.merged}: {counted(len(decisions), 'row')}.")
        return Outcome(content, {"items": n_items, "flagged": len(flags.by_item)})


def _answers(
    table: Path, responses: Path, scale: Scale | None, reporter: Reporter
) -> dict[str, ItemAnswers]:
    """People's answers to each trial, and how sure they are of them.

    They are those whom `analyze` keeps: who finished and passed their catch trials.
    """
    import numpy as np

    from contstim.experiments.analysis.reliability import reliabilities_of
    from contstim.experiments.responses.admission import admit
    from contstim.experiments.responses.table import read_responses

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
    answers = {}
    for name, reliability in reliabilities.items():
        text, sureness = counted(len(ratings[name]), "answer"), None
        if simulated[name]:
            text += f", {simulated[name]:,} simulated"
        text += f": mean rating {np.mean(ratings[name]):.1f}"
        if reliability is not None:
            sureness, side = reliability.sureness, 2 if reliability.sure_of_2 > 1 / 2 else 1
            text += (
                f" (shrunken {reliability.shrunken_rating:.1f}, reliability "
                f"{reliability.reliability:.2f}), {sureness:.0%} sure of sentence {side}"
            )
        answers[name] = ItemAnswers(text, sureness)
    return answers


def flagged(content: PageContent) -> str:
    """Number of flagged items of a page, in words."""
    n_flagged = sum(bool(item["flags"]) for item in content.facts["items"])
    kind = content.items[0].kind
    return f"{n_flagged:,} of {counted(len(content.items), kind)} have flags"
