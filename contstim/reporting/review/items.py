"""Items as the page of a review shows them: sentences, marks, log-probabilities, flags."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contstim.item_flags import FlagKind
from contstim.reviews import changed_words, undecided
from contstim.stimuli import Condition, Kind, Pair, Trial, Triplet

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contstim.item_flags import FlaggedItems
    from contstim.reviews import Review, Stimulus
    from contstim.scores import ScoreTable


@dataclass(frozen=True)
class ItemAnswers:
    """Answers of people to an item.

    Attributes:
        text: as the page says it.
        sureness: how likely it is that people in general prefer the sentence that most did, 0.5 to
            1; None where that cannot be told.
    """

    text: str
    sureness: float | None


def item_contents(
    stimuli: Sequence[Stimulus],
    *,
    models: Sequence[str],
    scores: ScoreTable | None,
    flags: FlaggedItems,
    review: Review | None,
    reviewer: str,
    answers: Mapping[str, ItemAnswers],
) -> list[dict[str, Any]]:
    """Each stimulus as the page reads it (JSON).

    Args:
        stimuli: pairs, triplets or trials, of one kind.
        models: all models of stimuli and scores; the page names them by their places here.
        scores: log-probabilities of the sentences, nats.
        flags: of the same stimuli.
        review: decisions about them; those of `reviewer` are what the page begins with.
        reviewer: whose page it is.
        answers: of people, by identifier of the item; those without any are not in it.

    Raises:
        InputError: a pair has no texts.
        ScoreError: the scores lack a sentence.
    """
    changed, place_of = changed_words(stimuli), {name: i for i, name in enumerate(models)}
    kinds, decisions = list(FlagKind), {} if review is None else review.by_item
    items = undecided(stimuli)
    if scores is not None:
        scores.rows_of(sentence for item in items for sentence in item.sentences)  # all at once
    contents = []
    for item, stimulus in zip(items, stimuli, strict=True):
        log_probs = _log_probs(stimulus, scores)
        controversiality, measure = _controversiality(stimulus, log_probs)
        own = [d for d in decisions.get(item.item_id, ()) if d.reviewer == reviewer]
        # Each once, though files may repeat each other's rows
        others = dict.fromkeys(
            (other.reviewer, str(other.decision), other.reason)
            for other in decisions.get(item.item_id, ())
            if other.decision and other.reviewer != reviewer
        )
        contents.append(
            {
                "id": item.item_id,
                "source": item.source_id,
                "condition": item.condition,
                "group": item.group,
                "models": [item.model_1, item.model_2],
                "labels": _labels(stimulus, log_probs),
                "sentences": [sentence.text for sentence in item.sentences],
                "changed": [sorted(places) for places in changed[item.item_id]],
                "columns": [place_of[model] for model in log_probs],
                **_numbers(log_probs, _rejected(stimulus) if len(item.sentences) == 3 else {}),
                "controversiality": controversiality,
                "measure": measure,
                "answers": answers[item.item_id].text if item.item_id in answers else "",
                "sureness": answers[item.item_id].sureness if item.item_id in answers else None,
                "flags": [
                    [kinds.index(flag.kind), flag.detail]
                    for flag in flags.by_item.get(item.item_id, ())
                ],
                "others": [list(each) for each in others],
                "decision": [[str(d.decision), d.reason] for d in own if d.decision][:1],
            }
        )
    return contents


def _log_probs(stimulus: Stimulus, scores: ScoreTable | None) -> Mapping[str, list[float]]:
    """Each model's log-probabilities of the sentences, nats; the stimulus's own models first."""
    columns: dict[str, list[float]] = {}
    if isinstance(stimulus, Triplet):
        sentences = [stimulus.natural, stimulus.synthetic_1, stimulus.synthetic_2]
        for number, model in enumerate((stimulus.model_1, stimulus.model_2), start=1):
            columns[model] = [
                getattr(stimulus, f"log_prob_{kind}_model_{number}")
                for kind in (Kind.NATURAL, Kind.SYNTHETIC_1, Kind.SYNTHETIC_2)
            ]
    else:
        sentences = [s for s in (stimulus.sentence_1, stimulus.sentence_2) if s is not None]
    if scores is None:
        return columns
    rows = scores.rows_of(sentences)
    of_models = {model: scores.column(model)[rows].tolist() for model in scores.models}
    first = [model for model in (stimulus.model_1, stimulus.model_2) if model in of_models]
    return columns | {
        model: of_models[model] for model in (*first, *of_models) if model not in columns
    }


def _numbers(
    log_probs: Mapping[str, list[float]], rejected: Mapping[str, int]
) -> dict[str, list[list[Any]]]:
    """Each sentence's numbers as texts (JSON has no infinity), and which are to be bold.

    Args:
        log_probs: of each model, those of the sentences.
        rejected: the place of the sentence that a model is to reject: others are bold where the
            model prefers them to it; else the sentence that it finds likeliest is.
    """
    rows = list(zip(*log_probs.values(), strict=True))
    signed = [[f"{value:.2f}".replace("-", "\N{MINUS SIGN}") for value in row] for row in rows]
    preferred = [
        [
            value > column[rejected[model]]
            if model in rejected
            else value == max(column) > min(column)
            for value, (model, column) in zip(row, log_probs.items(), strict=True)
        ]
        for row in rows
    ]
    return {"log_probs": signed, "preferred": preferred}


def _rejected(stimulus: Stimulus) -> dict[str, int]:
    """The place of the sentence that each of the stimulus's models is to reject."""
    if isinstance(stimulus, Triplet):
        return {stimulus.model_1: 1, stimulus.model_2: 2}
    if isinstance(stimulus, Pair):
        return {stimulus.model_1: 0, stimulus.model_2: 1}
    if stimulus.condition is Condition.NATURAL_SYNTHETIC:
        rejecting = stimulus.model_1 if stimulus.kind_2 is Kind.SYNTHETIC_1 else stimulus.model_2
        return {rejecting: 1}
    if stimulus.model_1:
        return {stimulus.model_1: 0, stimulus.model_2: 1}
    return {}


def _labels(stimulus: Stimulus, log_probs: Mapping[str, list[float]]) -> list[list[str]]:
    """Label of each sentence: its kind, and the model that rejects it, or nothing.

    Of natural pairs no more is said than is known: both models may prefer the same sentence
    (`PairSettings.agreeing`). Ranks of pairs say whether they do, of trials the scores.
    """
    if isinstance(stimulus, Trial):
        kinds = [str(kind).split("_")[0] for kind in (stimulus.kind_1, stimulus.kind_2)]
    elif isinstance(stimulus, Triplet):
        kinds = ["natural", "synthetic", "synthetic"]
    else:
        kinds = ["natural", "natural"]
    rejecting = {place: model for model, place in _rejected(stimulus).items()}
    if isinstance(stimulus, Pair):
        disagree = stimulus.controversial
    elif isinstance(stimulus, Trial) and stimulus.condition is Condition.NATURAL_CONTROVERSIAL:
        disagree = all(
            model in log_probs and log_probs[model][place] < log_probs[model][1 - place]
            for place, model in rejecting.items()
        )
    else:
        disagree = True
    if not disagree:
        rejecting = {}
    return [[kind, rejecting.get(place, "")] for place, kind in enumerate(kinds)]


def _controversiality(
    stimulus: Stimulus, log_probs: Mapping[str, list[float]]
) -> tuple[float | None, str]:
    """Disagreement of the models, to sort by, and in words; None where nothing tells."""
    if isinstance(stimulus, Triplet):
        nats = stimulus.controversiality
        return nats if math.isfinite(nats) else None, f"controversiality {nats:.1f} nats"
    if isinstance(stimulus, Pair):  # Eq. 5 of the 2023 paper: the lower, the more controversial
        ranks = stimulus.rank_1_model_1 + stimulus.rank_2_model_2
        return -ranks, f"sum of ranks {ranks:.2f}"
    if {stimulus.model_1, stimulus.model_2} <= log_probs.keys():
        (a, b), (c, d) = log_probs[stimulus.model_1], log_probs[stimulus.model_2]
        apart = abs((b - a) - (d - c))
        if math.isfinite(apart):  # not where a model finds a sentence impossible
            return apart, f"the models’ preferences lie {apart:.1f} nats apart"
    return None, ""
