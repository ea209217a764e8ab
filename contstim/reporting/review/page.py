"""Page of a review: content of each item, and self-contained HTML."""

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
from contstim.items.reviews import ReviewedItem, undecided_items
from contstim.items.stimuli import Condition, Pair, Triplet
from contstim.reporting.report import page_template, short_names
from contstim.reporting.stimuli_page import log_probs, preferred, rejected_sentences

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contstim.items.item_flags import FlaggedItems
    from contstim.items.reviews import Review, Stimulus
    from contstim.items.scores import ScoreTable

REASONS = ("ungrammatical", "offensive", "debris", "meaningless to compare", "other")
"""Reasons for a rejection. A reviewer selects one with a digit key, or types another reason.

Debris is a piece of text that is not a word, such as a remainder of markup.
"""

_PAGE = resources.files("contstim.reporting.review") / "form"
# The page loads the scripts in this order
_SCRIPTS = ("csv.js", "keeping.js", "items.js", "cards.js", "deciding.js", "page.js")


@dataclass(frozen=True)
class ReviewPage:
    """A page on which reviewers keep or reject every item.

    `read_reviews` reads the file that a reviewer downloads from the page.

    Attributes:
        stimuli: only pairs, only triplets, or only trials.
        flags: flags to show. A flag marks an item that a reviewer should look at, such as one with
            a rare word. By default, these are the flags of `flag_items` that do not depend on
            the language.
        scores: log-probabilities of the sentences, nats. Triplets do not need them, because a
            triplet contains its scores under its two models.
        review: earlier decisions. The page shows the decisions of other reviewers. The decisions of
            `reviewer` are the initial decisions on the page.
        reviewer: name of the reviewer, which can be changed on the page.
        answers: identifier of an item → (description of participants' answers, probability). The
            second value is the probability, 0.5 to 1, that people in general prefer the sentence
            that the answers favour; None if unknown.

    Raises:
        InputError: if there are no stimuli, if stimuli have several kinds, or if a pair has no
            texts.
        ScoreError: if the scores lack a sentence (raised by `html`).
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
            raise InputError("The table has no rows, so there are no items to review.")
        if len({item.kind for item in self.items}) > 1:
            raise InputError(
                "A page must have either pairs, triplets or trials. Use one table per page."
            )

    @cached_property
    def items(self) -> tuple[ReviewedItem, ...]:
        """The stimuli as undecided items, in the order of the table."""
        return undecided_items(self.stimuli, self.reviewer)

    @cached_property
    def flagged(self) -> FlaggedItems:
        """Flags of the items."""
        return self.flags or flag_items(self.stimuli)

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of the items and their sentences, independent of their order."""
        contents = sorted([i.item_id, i.kind, *map(str, i.sentences)] for i in self.items)
        return hashlib.sha256(json.dumps(contents).encode()).hexdigest()[:16]

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """Data that the page reads (JSON)."""
        flags = self.flagged
        own_models = [m for item in self.items for m in (item.model_1, item.model_2) if m]
        models = list(dict.fromkeys((*own_models, *(self.scores.models if self.scores else ()))))
        changes = changes_of(self.stimuli, flags.table)
        if self.scores is not None:  # reports all missing sentences at once
            self.scores.rows_of(sentence for item in self.items for sentence in item.sentences)
        return {
            "title": self.title,
            "kind": str(self.items[0].kind),
            "fingerprint": self.fingerprint,
            "reviewer": self.reviewer,
            "models": models,
            "short_names": dict(zip(models, short_names(models), strict=True)),
            "columns": [column.name for column in fields(ReviewedItem)],
            "reasons": REASONS,
            "flags": [[str(kind), flags.explanations[kind]] for kind in FlagKind],
            "items": [
                self._item_content(item, stimulus, flags, models)
                | {"changed": changes[item.item_id]}
                for item, stimulus in zip(self.items, self.stimuli, strict=True)
            ],
        }

    def _item_content(
        self, item: ReviewedItem, stimulus: Stimulus, flags: FlaggedItems, models: Sequence[str]
    ) -> dict[str, Any]:
        """Return the data of an item; indices refer to `models` and to the kinds of flags."""
        own_models = [model for model in (item.model_1, item.model_2) if model]
        scored = self.scores.models if self.scores else ()
        columns = log_probs(
            stimulus, self.scores, [m for m in own_models if m in scored] + [*scored]
        )
        rows = list(zip(*columns.values(), strict=True))
        decided = [] if self.review is None else self.review.last_decisions.get(item.item_id, [])
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
            # Log-probabilities are stored as texts, because JSON has no infinity
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
            "others": [[d.reviewer, *_decision(d)] for d in decided if d.reviewer != self.reviewer],
            "decision": [_decision(d) for d in decided if d.reviewer == self.reviewer],
        }

    def html(self, *, decisions: Mapping[str, ReviewedItem] | None = None, file: str = "") -> str:
        """Render a self-contained HTML page.

        Args:
            decisions: identifier of an item → initial decision; by default from `review`.
            file: file in which a server saves decisions. Without a file, the page stores decisions
                in the browser and offers a download.
        """
        items = self.facts["items"]
        if decisions is not None:
            items = [
                item
                | {"decision": [_decision(d) for d in [decisions.get(item["id"])] if d is not None]}
                for item in items
            ]
        script = "\n".join((_PAGE / name).read_text(encoding="utf-8") for name in _SCRIPTS)
        style = (_PAGE / "style.css").read_text(encoding="utf-8")
        # Allow only the page's own scripts and styles
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
            # Escaped, so that no text can end the script or open a comment
            data=json.dumps(facts, allow_nan=False).replace("<", "\\u003c"),
            has_one_reviewer=bool(file),
            plural=f"{self.facts['kind']}s",
            n_items=len(self.items),
            flagged=self.flagged.text,
            has_changes=any(any(item["changed"]) for item in items),
            has_tags=any(any(texts.values()) for item in items for texts in item["changed"]),
            has_numbers=any(item["columns"] for item in items),
            has_answers=any(item["answers"] for item in items),
        )


def _decision(item: ReviewedItem) -> list[str]:
    return [str(item.decision), item.reason]


def _digest(text: str) -> str:
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _labels(stimulus: Stimulus, columns: Mapping[str, Sequence[float]]) -> list[list[str]]:
    """Return a list for each sentence: its kind, and the model that rejects it ("" if none).

    If both models prefer the same sentence of a natural pair (`NaturalRules.agreeing`), no model is
    named. For trials of natural or minimal pairs, models are named only if the scores show that the
    models prefer different sentences.
    """
    kinds, disagree = ["natural", "natural"], True
    rejecting = {index: model for model, index in rejected_sentences(stimulus).items()}
    if isinstance(stimulus, Triplet):
        kinds = ["natural", "synthetic", "synthetic"]
    elif isinstance(stimulus, Pair):
        disagree = stimulus.controversial
    else:
        kinds = [str(kind).split("_")[0] for kind in (stimulus.kind_1, stimulus.kind_2)]
        if stimulus.condition in (Condition.NATURAL_CONTROVERSIAL, Condition.MINIMAL_PAIR):
            disagree = all(
                model in columns and columns[model][index] < columns[model][1 - index]
                for index, model in rejecting.items()
            )
    return [[kind, rejecting.get(n, "") if disagree else ""] for n, kind in enumerate(kinds)]


def _controversiality(
    stimulus: Stimulus, columns: Mapping[str, Sequence[float]]
) -> tuple[float | None, str]:
    """Return the models' disagreement as a sort key (None if unknown) and as a text."""
    if isinstance(stimulus, Triplet):
        nats, drops = stimulus.controversiality, (stimulus.judge_drop_1, stimulus.judge_drop_2)
        text = f"controversiality {nats:.1f} {stimulus.drop_unit}"
        if None not in drops:
            text += f", judge's drops {drops[0]:.1f} and {drops[1]:.1f}"
        return nats if math.isfinite(nats) else None, text
    if isinstance(stimulus, Pair):  # Eq. 5 of the 2023 paper: a lower sum is more controversial
        ranks = stimulus.rank_1_model_1 + stimulus.rank_2_model_2
        return -ranks, f"sum of ranks {ranks:.2f}"
    if {stimulus.model_1, stimulus.model_2} <= columns.keys():
        (a, b), (c, d) = columns[stimulus.model_1], columns[stimulus.model_2]
        difference = abs((b - a) - (d - c))
        if math.isfinite(difference):  # infinite or nan if a sentence is impossible
            return difference, f"preferences of the models differ by {difference:.1f} nats"
    return None, ""
