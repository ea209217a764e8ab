"""The page of a review."""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

from contstim.errors import InputError
from contstim.item_flags import FlagKind, flag_items
from contstim.reporting.html import page_template
from contstim.reporting.names import short_names
from contstim.reporting.review.items import item_contents
from contstim.reviews import ReviewedItem, undecided

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from contstim.item_flags import FlaggedItems
    from contstim.reporting.review.items import ItemAnswers
    from contstim.reviews import Review, Stimulus
    from contstim.scores import ScoreTable

REASONS = ("ungrammatical", "offensive", "debris", "meaningless to compare", "other")
"""What a reviewer can pick by a digit; any other reason can be typed."""

_PAGE = resources.files("contstim.reporting.review") / "form"
# In the order in which they are loaded
_SCRIPTS = ("csv.js", "keeping.js", "items.js", "cards.js", "deciding.js", "page.js")


@dataclass(frozen=True)
class PageContent:
    """Content of a review's page: the items that it shows, and the facts that it reads.

    Attributes:
        items: of the review, undecided, in the order of the table.
        facts: what the page reads (JSON).
    """

    items: tuple[ReviewedItem, ...]
    facts: Mapping[str, Any]

    @property
    def fingerprint(self) -> str:
        """Fingerprint of these items, and no others: it changes with every sentence."""
        return str(self.facts["fingerprint"])

    @classmethod
    def of(
        cls,
        stimuli: Iterable[Stimulus],
        *,
        title: str,
        flags: FlaggedItems | None = None,
        scores: ScoreTable | None = None,
        review: Review | None = None,
        reviewer: str = "",
        answers: Mapping[str, ItemAnswers] | None = None,
    ) -> PageContent:
        """The content of the page; see `review_page`.

        Raises:
            InputError: there is nothing to review, the stimuli are of several kinds, or a pair has
                no texts.
            ScoreError: the scores lack a sentence.
        """
        every = list(stimuli)
        items = undecided(every, reviewer)
        if not items:
            raise InputError("There is nothing to review: the table has no rows.")
        if len({item.kind for item in items}) > 1:
            raise InputError("A page holds pairs, triplets or trials, not several of these.")
        flags = flags or flag_items(every)
        own = {model: None for item in items for model in (item.model_1, item.model_2) if model}
        models = list(own | dict.fromkeys(scores.models if scores else ()))
        facts = {
            "title": title,
            "kind": str(items[0].kind),
            "fingerprint": _fingerprint(items),
            "reviewer": reviewer,
            "models": models,
            "short_names": dict(zip(models, short_names(models), strict=True)),
            "columns": list(ReviewedItem.__dataclass_fields__),
            "reasons": REASONS,
            "flags": [[str(kind), flags.explanations[kind]] for kind in FlagKind],
            "items": item_contents(
                every,
                models=models,
                scores=scores,
                flags=flags,
                review=review,
                reviewer=reviewer,
                answers=answers or {},
            ),
        }
        return cls(items, facts)

    def html(
        self,
        *,
        decisions: Mapping[str, ReviewedItem] | None = None,
        file: str = "",
    ) -> str:
        """One HTML page that stands alone.

        Args:
            decisions: what the page begins with, by identifier, in place of the review's.
            file: where a server saves decisions as they are made; empty: the page keeps them in
                the browser and hands them out as a download.
        """
        facts = dict(self.facts)
        if decisions is not None:
            facts["items"] = [
                content
                | {
                    "decision": [
                        [str(d.decision), d.reason] for d in [decisions.get(content["id"])] if d
                    ]
                }
                for content in self.facts["items"]
            ]
        script = "\n".join((_PAGE / name).read_text(encoding="utf-8") for name in _SCRIPTS)
        style = (_PAGE / "style.css").read_text(encoding="utf-8")
        # Scripts and styles of the page itself, and nothing from anywhere else
        server = "'self'" if file else "'none'"
        policy = (
            f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; "
            f"img-src data:; connect-src {server}; base-uri 'none'; "
            "form-action 'none'"
        )
        return page_template("contstim.reporting.review", "form/review.html.jinja").render(
            title=self.facts["title"],
            policy=policy,
            style=style,
            script=script,
            data=_as_script(facts | {"file": file}),
            is_one_person_s=bool(file),
            plural=f"{self.facts['kind']}s",
            n_items=len(self.items),
            has_changes=any(any(each["changed"]) for each in self.facts["items"]),
            has_numbers=any(each["columns"] for each in self.facts["items"]),
            has_answers=any(each["answers"] for each in self.facts["items"]),
        )


def review_page(
    stimuli: Iterable[Stimulus],
    *,
    title: str = "Review of stimuli",
    flags: FlaggedItems | None = None,
    scores: ScoreTable | None = None,
    review: Review | None = None,
    reviewer: str = "",
    answers: Mapping[str, ItemAnswers] | None = None,
) -> str:
    """A page on which people look at every item and keep or reject it: HTML that stands alone.

    Its download is what `read_reviews` reads.

    Args:
        stimuli: pairs, triplets or trials, of one kind.
        title: its heading.
        flags: what the page remarks on; by default what `flag_items` notices by rules that hold for
            every language.
        scores: log-probabilities of the sentences, nats; a column for each model. Triplets hold
            those of their own models.
        review: decisions of others, which are shown, and of `reviewer`, which the page begins with.
        reviewer: who reviews; can be changed on the page.
        answers: what people answered, by identifier of the item.

    Raises:
        InputError: there is nothing to review, the stimuli are of several kinds, or a pair has no
            texts.
        ScoreError: the scores lack a sentence.
    """
    content = PageContent.of(
        stimuli,
        title=title,
        flags=flags,
        scores=scores,
        review=review,
        reviewer=reviewer,
        answers=answers,
    )
    return content.html()


def _fingerprint(items: Iterable[ReviewedItem]) -> str:
    """Of identifiers and sentences, whatever their order in the table."""
    named = sorted([item.item_id, item.kind, *map(str, item.sentences)] for item in items)
    return hashlib.sha256(json.dumps(named).encode()).hexdigest()[:16]


def _as_script(facts: Mapping[str, Any]) -> str:
    """JSON that stays inside its element: no text in it can end the script or open a comment."""
    return json.dumps(facts, ensure_ascii=True, allow_nan=False).replace("<", "\\u003c")


def _digest(text: str) -> str:
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
