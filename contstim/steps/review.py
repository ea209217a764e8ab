"""A page on which people keep or reject items."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.files import write_text
from contstim.item_flags import flag_items
from contstim.records import write_record
from contstim.reporting.review import ItemAnswers, PageContent
from contstim.reviews import Review, read_reviews
from contstim.scores import ScoreTable
from contstim.steps.text_settings import ReviewSettings
from contstim.steps.watching import SILENT
from contstim.stimuli import Trial, read_stimulus_table
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.scale import Scale
    from contstim.steps.watching import Watcher

_DEFAULTS = ReviewSettings()


def write_review_page(
    table: Path,
    out: Path,
    *,
    settings: ReviewSettings = _DEFAULTS,
    scores: Path | None = None,
    responses: Path | None = None,
    scale: Scale | None = None,
    review: Sequence[Path] = (),
    earlier_rounds: Sequence[Path] = (),
    reviewer: str = "",
    watch: Watcher = SILENT,
) -> PageContent:
    """Write a page that shows every item with its flags, to be kept or rejected.

    Args:
        table: triplets, pairs or trials.
        out: the page.
        settings: what is flagged.
        scores: log-probabilities of the sentences, shown on the page.
        responses: what people answered to these trials; how sure they are is shown on each item.
        scale: of the responses, where neither their record nor the trials name it.
        review: what was decided already, shown on each item.
        earlier_rounds: reviews of what stood before, or of other tables of the study: what they
            say of items that are still as they were is shown, and all else passed over.
        reviewer: who reviews; empty: to be filled in on the page.
        watch: told what is done.

    Raises:
        InputError: a file cannot be read or written, the table has no items or items of several
            kinds, a review is not about them, or responses do not fit the trials.
        ScoreError: the scores lack a sentence.
    """
    stimuli = read_stimulus_table(table)
    reviewer = " ".join(reviewer.split())
    earlier: Review | None = None
    if review:
        earlier = read_reviews(review)
        earlier.require_items_of(stimuli, table)
    if earlier_rounds:
        before = read_reviews(earlier_rounds).about(stimuli)
        earlier = before if earlier is None else Review((*earlier.decisions, *before.decisions))
    flags = flag_items(stimuli, settings.flags())
    content = PageContent.of(
        stimuli,
        title=f"Review of {table.name}",
        flags=flags,
        scores=None if scores is None else ScoreTable.read(scores),
        review=earlier,
        reviewer=reviewer,
        answers=None if responses is None else _answers(table, responses, scale, watch),
    )
    kind, n_items = content.items[0].kind, len(content.items)
    if review and earlier is not None and not earlier.of_kind(kind):
        raise InputError(f"{table} holds {kind}s, and no {kind} was reviewed in --review.")
    write_text(out, content.html())
    write_record(
        out,
        [table, scores, responses, *review, *earlier_rounds, settings.text, settings.blocked],
        reviewer=reviewer,
        items=n_items,
        flagged=len(flags.by_item),
    )
    watch.remark(f"{out}: {flagged(content)}; open it in a browser.")
    return content


def _answers(
    table: Path, responses: Path, scale: Scale | None, watch: Watcher
) -> dict[str, ItemAnswers]:
    """People's answers to each trial, and how sure they are of them.

    They are those whom `analyze` keeps: who finished and passed their catch trials.
    """
    import numpy as np

    from contstim.experiments.analysis.reliability import reliabilities_of
    from contstim.experiments.responses import admit, read_responses

    trials = [trial for trial in read_stimulus_table(table) if isinstance(trial, Trial)]
    if not trials:
        raise InputError(
            f"{responses} holds answers to trials, and {table} holds no trials. Review the table "
            "of trials that people saw, or leave out --responses."
        )
    admission = admit(trials, read_responses(responses, trials, scale=scale))
    watch.remark(str(admission))
    watch.warn(admission.origin.warning)
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
