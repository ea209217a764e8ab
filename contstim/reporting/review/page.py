"""The page of a review: what it shows of each item, and the HTML that stands alone."""

from __future__ import annotations

import hashlib
import json
import math
from base64 import b64encode
from dataclasses import dataclass, field, fields
from functools import cached_property
from importlib import resources
from typing import TYPE_CHECKING, Any

from contstim.errors import InputError
from contstim.items.item_flags import FlagKind, flag_items
from contstim.items.matching import changes_of
from contstim.items.reviews import ReviewedItem, undecided
from contstim.items.stimuli import Condition, Pair, Triplet
from contstim.reporting.names import short_names
from contstim.reporting.stimuli_page import log_probs, preferred, rejected_sentences
from contstim.reporting.templates import page_template

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contstim.items.item_flags import FlaggedItems
    from contstim.items.reviews import Review, Stimulus
    from contstim.items.scores import ScoreTable

REASONS = ("ungrammatical", "offensive", "debris", "meaningless to compare", "other")
"""What a reviewer can pick by a digit; any other reason can be typed."""

_PAGE = resources.files("contstim.reporting.review") / "form"
# In the order in which they are loaded
_SCRIPTS = ("csv.js", "keeping.js", "items.js", "cards.js", "deciding.js", "page.js")


@dataclass(frozen=True)
class ReviewPage:
    """A page on which people look at every item and keep or reject it.

    Its download is what `read_reviews` reads.

    Attributes:
        stimuli: pairs, triplets or trials, of one kind.
        title: its heading.
        flags: what the page remarks on; by default what `flag_items` notices by rules that hold for
            every language.
        scores: log-probabilities of the sentences, nats; a column for each model. Triplets hold
            those of their own models.
        review: decisions of others, which are shown, and of `reviewer`, which the page begins with.
        reviewer: who reviews; can be changed on the page.
        answers: of people, by identifier of the item: in words, and how likely it is that people in
            general prefer the sentence that most did, 0.5 to 1; None where that cannot be told.

    Raises:
        InputError: there is nothing to review, the stimuli are of several kinds, or a pair has no
            texts.
        ScoreError: the scores lack a sentence, when the page is made.
    """

    stimuli: Sequence[Stimulus]
    title: str = "Review of stimuli"
    flags: FlaggedItems | None = None
    scores: ScoreTable | None = None
    review: Review | None = None
    reviewer: str = ""
    answers: Mapping[str, tuple[str, float | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.items:
            raise InputError("There is nothing to review: the table has no rows.")
        if len({item.kind for item in self.items}) > 1:
            raise InputError("A page holds pairs, triplets or trials, not several of these.")

    @cached_property
    def items(self) -> tuple[ReviewedItem, ...]:
        """The items of the review, undecided, in the order of the table."""
        return undecided(self.stimuli, self.reviewer)

    @cached_property
    def flagged(self) -> FlaggedItems:
        """The flags."""
        return self.flags or flag_items(self.stimuli)

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of these items, whatever their order: it changes with every sentence."""
        named = sorted([each.item_id, each.kind, *map(str, each.sentences)] for each in self.items)
        return hashlib.sha256(json.dumps(named).encode()).hexdigest()[:16]

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """Facts that the page reads (JSON)."""
        flags = self.flagged
        own = [m for item in self.items for m in (item.model_1, item.model_2) if m]
        models = list(dict.fromkeys((*own, *(self.scores.models if self.scores else ()))))
        changes = changes_of(self.stimuli, flags.table)
        if self.scores is not None:  # what they lack is named all at once
            self.scores.rows_of(sentence for item in self.items for sentence in item.sentences)
        return {
            "title": self.title,
            "kind": str(self.items[0].kind),
            "fingerprint": self.fingerprint,
            "reviewer": self.reviewer,
            "models": models,
            "short_names": dict(zip(models, short_names(models), strict=True)),
            "columns": [each.name for each in fields(ReviewedItem)],
            "reasons": REASONS,
            "flags": [[str(kind), flags.explanations[kind]] for kind in FlagKind],
            "items": [
                self._content(item, stimulus, flags, models) | {"changed": changes[item.item_id]}
                for item, stimulus in zip(self.items, self.stimuli, strict=True)
            ],
        }

    def _content(
        self, item: ReviewedItem, stimulus: Stimulus, flags: FlaggedItems, models: Sequence[str]
    ) -> dict[str, Any]:
        """An item as the page reads it; models are named by their places."""
        own = [model for model in (item.model_1, item.model_2) if model]
        scored = self.scores.models if self.scores else ()
        columns = log_probs(stimulus, self.scores, [m for m in own if m in scored] + [*scored])
        rows = list(zip(*columns.values(), strict=True))
        decisions = {} if self.review is None else self.review.by_item
        decided = [each for each in decisions.get(item.item_id, ()) if each.decision]
        # Each once, though files may repeat each other's rows
        others = dict.fromkeys(
            (each.reviewer, str(each.decision), each.reason)
            for each in decided
            if each.reviewer != self.reviewer
        )
        mine = [_decision(each) for each in decided if each.reviewer == self.reviewer]
        controversiality, measure = _controversiality(stimulus, columns)
        answers, sureness = self.answers.get(item.item_id, ("", None))
        kinds = list(FlagKind)
        return {
            "id": item.item_id,
            "source": item.source_id,
            "condition": item.condition,
            "group": item.group,
            "models": [item.model_1, item.model_2],
            "labels": _labels(stimulus, columns),
            "sentences": [sentence.text for sentence in item.sentences],
            "columns": [models.index(model) for model in columns],
            # As texts: JSON has no infinity
            "log_probs": [[f"{n:.2f}".replace("-", "\N{MINUS SIGN}") for n in row] for row in rows],
            "preferred": preferred(columns, rejected_sentences(stimulus)),
            "controversiality": controversiality,
            "measure": measure,
            "answers": answers,
            "sureness": sureness,
            "flags": [
                [kinds.index(flag.kind), flag.detail]
                for flag in flags.by_item.get(item.item_id, ())
            ],
            "others": [list(each) for each in others],
            "decision": mine[:1],
        }

    def html(self, *, decisions: Mapping[str, ReviewedItem] | None = None, file: str = "") -> str:
        """One HTML page that stands alone.

        Args:
            decisions: what the page begins with, by identifier, in place of the review's.
            file: where a server saves decisions as they are made; empty: the page keeps them in
                the browser and hands them out as a download.
        """
        items = self.facts["items"]
        if decisions is not None:
            items = [
                each
                | {"decision": [_decision(d) for d in [decisions.get(each["id"])] if d is not None]}
                for each in items
            ]
        script = "\n".join((_PAGE / name).read_text(encoding="utf-8") for name in _SCRIPTS)
        style = (_PAGE / "style.css").read_text(encoding="utf-8")
        # Scripts and styles of the page itself, and nothing from anywhere else
        server = "'self'" if file else "'none'"
        policy = (
            f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; "
            f"img-src data:; connect-src {server}; base-uri 'none'; form-action 'none'"
        )
        facts = {**self.facts, "items": items, "file": file}
        return page_template("contstim.reporting.review", "form/review.html.jinja").render(
            title=self.title,
            policy=policy,
            style=style,
            script=script,
            # No text in it can end the script or open a comment
            data=json.dumps(facts, allow_nan=False).replace("<", "\\u003c"),
            is_one_person_s=bool(file),
            plural=f"{self.facts['kind']}s",
            n_items=len(self.items),
            flagged=self.flagged.text,
            has_changes=any(any(each["changed"]) for each in items),
            has_tags=any(any(of.values()) for each in items for of in each["changed"]),
            has_numbers=any(each["columns"] for each in items),
            has_answers=any(each["answers"] for each in items),
        )


def _decision(item: ReviewedItem) -> list[str]:
    return [str(item.decision), item.reason]


def _digest(text: str) -> str:
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _labels(stimulus: Stimulus, columns: Mapping[str, Sequence[float]]) -> list[list[str]]:
    """Label of each sentence: its kind, and the model that rejects it, or nothing.

    Of natural pairs no more is said than is known: both models may prefer the same sentence
    (`PairSettings.agreeing`). Ranks of pairs say whether they do, of trials the scores.
    """
    kinds, disagree = ["natural", "natural"], True
    rejecting = {place: model for model, place in rejected_sentences(stimulus).items()}
    if isinstance(stimulus, Triplet):
        kinds = ["natural", "synthetic", "synthetic"]
    elif isinstance(stimulus, Pair):
        disagree = stimulus.controversial
    else:
        kinds = [str(kind).split("_")[0] for kind in (stimulus.kind_1, stimulus.kind_2)]
        if stimulus.condition in (Condition.NATURAL_CONTROVERSIAL, Condition.MINIMAL_PAIR):
            disagree = all(
                model in columns and columns[model][place] < columns[model][1 - place]
                for place, model in rejecting.items()
            )
    return [[kind, rejecting.get(n, "") if disagree else ""] for n, kind in enumerate(kinds)]


def _controversiality(
    stimulus: Stimulus, columns: Mapping[str, Sequence[float]]
) -> tuple[float | None, str]:
    """Disagreement of the models, to sort by, and in words; None where nothing tells."""
    if isinstance(stimulus, Triplet):
        nats = stimulus.controversiality
        return nats if math.isfinite(nats) else None, f"controversiality {nats:.1f} nats"
    if isinstance(stimulus, Pair):  # Eq. 5 of the 2023 paper: the lower, the more controversial
        ranks = stimulus.rank_1_model_1 + stimulus.rank_2_model_2
        return -ranks, f"sum of ranks {ranks:.2f}"
    if {stimulus.model_1, stimulus.model_2} <= columns.keys():
        (a, b), (c, d) = columns[stimulus.model_1], columns[stimulus.model_2]
        apart = abs((b - a) - (d - c))
        if math.isfinite(apart):  # not where a model finds a sentence impossible
            return apart, f"the models’ preferences lie {apart:.1f} nats apart"
    return None, ""
