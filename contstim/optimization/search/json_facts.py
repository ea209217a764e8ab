"""Results of a search as plain values, to be written as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from contstim.optimization.search.symmetric import SymmetricPair

if TYPE_CHECKING:
    from contstim.optimization.search.climb import Climb
    from contstim.optimization.search.synthesize import Synthesis


def json_facts(result: Synthesis | SymmetricPair) -> dict[str, Any]:
    """Sentences, log-probabilities (nats) by model, every accepted step, and what it cost."""
    shared = {
        "natural": result.natural.text,
        "changed": result.changed,
        "recipe": result.recipe,
        "costs": {name: asdict(cost) for name, cost in result.costs.items()},
        "restarts": result.history.budget.text,
        "seconds": result.history.budget.seconds,
        "searches": [asdict(search) for search in result.history.searches],
        "end_of_searches": result.history.end.value,
    }
    if isinstance(result, SymmetricPair):
        names = result.models
        of_1, of_2 = (dict(zip(names, s, strict=True)) for s in zip(*result.log_probs, strict=True))
        # The first model of a climb is the one that is to prefer its sentence.
        turned = (names[1], names[0], *names[2:])
        return shared | {
            "model_1": result.model_1,
            "model_2": result.model_2,
            "sentence_1": result.sentence_1.text,
            "sentence_2": result.sentence_2.text,
            "log_probs_sentence_1": of_1,
            "log_probs_sentence_2": of_2,
            "disagreement": result.disagreement,
            "climbs": [
                _climb(climb, names if turn % 2 else turned)
                for turn, climb in enumerate(result.climbs)
            ],
        }
    names = result.roles if len(set(result.roles)) == len(result.roles) else result.models
    return (
        {"accept": result.accept, "reject": result.reject, "synthetic": result.synthetic.text}
        | shared
        | {
            "log_probs_natural": dict(zip(names, result.natural_log_probs, strict=True)),
            "log_probs_synthetic": dict(zip(names, result.log_probs, strict=True)),
        }
        | _climb(result.climb, names)
    )


def _climb(climb: Climb, names: tuple[str, ...]) -> dict[str, Any]:
    return {
        "steps": [
            {
                "visit": step.visit,
                "start": step.round + 1,
                "position": step.position,
                "old": step.old,
                "new": step.new,
                "sentence": step.sentence.text,
                "log_probs": dict(zip(names, step.log_probs.tolist(), strict=True)),
            }
            for step in climb.steps
        ],
        "visits": climb.visits,
        "end": climb.end.value,
    }
