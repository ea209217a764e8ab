"""How `contstim synthesize` shows what it finds: step by step, as a table, as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from contstim.cli.output import (
    changed_words,
    names_for_tables,
    print_table,
    remark,
    results_table,
    terminal,
)
from contstim.optimization.search.symmetric import SymmetricPair
from contstim.wording import counted

if TYPE_CHECKING:
    from contstim.optimization.search.climb import Climb, Step
    from contstim.optimization.search.synthesize import Synthesis


def print_step(step: Step) -> None:
    """One line on standard error: log-probabilities, what was replaced, and the sentence."""
    scores = " ".join(f"{score:9.2f}" for score in step.log_probs)
    start = f" (start {step.round + 1})" if step.round else ""
    remark(f"{scores}  {step.old} → {step.new}: {step.sentence.text}{start}")


def print_result(found: Synthesis | SymmetricPair) -> None:
    """A table of sentences and log-probabilities, why the search ended, and what it cost."""
    if isinstance(found, SymmetricPair):
        names = names_for_tables((found.model_1, found.model_2))
        columns = list(names.values())
        climbs = found.climbs
        of_1, of_2 = zip(*found.log_probs, strict=True)
        rows = [
            ("natural", found.natural, climbs[0].start_log_probs[::-1].tolist()),
            (f"{columns[0]} rejects", found.sentence_1, of_1),
            (f"{columns[1]} rejects", found.sentence_2, of_2),
        ]
        summary = f"Disagreement {found.disagreement:.2f} nats. "
    else:
        names = names_for_tables(found.models)
        columns = [f"{r}: {names[name]}" for r, name in zip(found.roles, found.models, strict=True)]
        climbs = (found.climb,)
        rows = [
            ("natural", found.natural, found.natural_log_probs),
            ("synthetic", found.synthetic, found.log_probs),
        ]
        summary = ""
    table = results_table("", "sentence", *columns, texts=2)
    for kind, sentence, scores in rows:
        shown = changed_words(sentence, found.natural)
        table.add_row(kind, shown, *(f"{score:.2f}" for score in scores))
    print_table(table, names)
    console = terminal()
    console.print(f"{summary}Log-probabilities in nats. {_story(climbs)}")
    for name, cost in found.costs.items():
        if cost.rows:
            text = (
                f"{name} read {counted(cost.rows, 'sequence')} of {counted(cost.tokens, 'token')}."
            )
            console.print(text)


def _story(climbs: tuple[Climb, ...]) -> str:
    steps = [step for climb in climbs for step in climb.steps]
    starts = sum(len({0, *(step.round for step in climb.steps)}) for climb in climbs)
    visits = sum(climb.visits for climb in climbs)
    return (
        f"{counted(len(steps), 'word')} replaced in {counted(visits, 'visit')} from {starts} "
        f"start{'s' if starts > 1 else ''}; ended because {climbs[-1].end.value}."
    )


def as_json(found: Synthesis | SymmetricPair) -> dict[str, Any]:
    """The same as plain values."""
    shared = {
        "natural": found.natural.text,
        "changed": found.changed,
        "recipe": found.recipe,
        "costs": {name: asdict(cost) for name, cost in found.costs.items()},
    }
    if isinstance(found, SymmetricPair):
        pair = (found.model_1, found.model_2)
        of_1, of_2 = (dict(zip(pair, s, strict=True)) for s in zip(*found.log_probs, strict=True))
        return shared | {
            "model_1": found.model_1,
            "model_2": found.model_2,
            "sentence_1": found.sentence_1.text,
            "sentence_2": found.sentence_2.text,
            "log_probs_sentence_1": of_1,
            "log_probs_sentence_2": of_2,
            "disagreement": found.disagreement,
            "climbs": [
                _climb(climb, pair if turn % 2 else pair[::-1])  # first who is to prefer it
                for turn, climb in enumerate(found.climbs)
            ],
        }
    names = found.roles if len(set(found.roles)) == len(found.roles) else found.models
    return (
        {"accept": found.accept, "reject": found.reject, "synthetic": found.synthetic.text}
        | shared
        | {
            "log_probs_natural": dict(zip(names, found.natural_log_probs, strict=True)),
            "log_probs_synthetic": dict(zip(names, found.log_probs, strict=True)),
        }
        | _climb(found.climb, names)
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
