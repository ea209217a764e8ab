"""Searches whose every move was recorded, to be compared with what the code does now.

    python -m tests.optimization.search.golden

records them anew, which only a change that is meant to move searches may do.
"""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from contstim.models.causal.adapter import CausalModel
from contstim.models.checkpoints import load_checkpoint
from contstim.models.loading import Loading
from contstim.models.masked.adapter import MaskedModel
from contstim.models.ngram.adapter import NgramModel
from contstim.optimization.search.recipes import RECIPES
from contstim.optimization.search.restarts import SINGLE
from contstim.optimization.search.synthesize import Synthesis, synthesize
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary
from tests.models.tiny import TEXTS, build, train_ngrams
from tests.optimization.search.toys import NATURAL, WORDS, TableModel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from contstim.models.base import LanguageModel

RECORDED = ("default", "golan2023")
"""The recipes that are guarded."""

RECORD = Path(__file__).with_name("golden_searches.json")
SHORT = Sentence.parse("She sleeps in the house.")
VOCABULARY = Vocabulary.from_sentences([Sentence.parse(text) for text in TEXTS])

PAIRS = (
    ("trigram", "bigram"),
    ("bigram", "llama"),
    ("trigram", "gpt2"),
    ("llama", "gpt2"),
    ("roberta", "gpt2"),
    ("roberta", "trigram"),
    ("bigram", "modernbert"),
    ("modernbert", "roberta"),
)
"""Accept model, reject model."""

TOYS: dict[str, Callable[[int], LanguageModel]] = {
    "exact": lambda seed: TableModel(seed, "exact"),
    "estimate": lambda seed: TableModel(seed, "estimate"),
    "bound": lambda seed: TableModel(seed, "bound"),
    "drafted": lambda seed: TableModel(seed, "estimate", draft_error=1.0),
}


def toy_searches() -> Iterator[tuple[str, Callable[[], Synthesis]]]:
    """Searches over made-up models of every kind, the same on every machine."""
    for (accept, reject), recipe, seed in product(product(TOYS, repeat=2), RECORDED, (0, 1)):

        def search(
            accept: str = accept, reject: str = reject, recipe: str = recipe, seed: int = seed
        ) -> Synthesis:
            pair = TOYS[accept](2 * seed), TOYS[reject](2 * seed + 1)
            return synthesize(
                *pair, NATURAL, WORDS, recipe=RECIPES[recipe], seed=seed, restarts=SINGLE
            )

        yield f"{accept}/{reject}/{recipe}/{seed}", search


def models(folder: Path) -> dict[str, LanguageModel]:
    """A small model of each family, written into a folder and loaded from there."""

    def load(name: str) -> Any:
        return load_checkpoint(str(build(name, folder)), Loading(device="cpu"))

    return {
        "bigram": NgramModel(train_ngrams(2, folder / "2.arpa"), "bigram"),
        "trigram": NgramModel(train_ngrams(3, folder / "3.arpa"), "trigram"),
        "gpt2": CausalModel(load("gpt2"), name="gpt2"),
        "llama": CausalModel(load("llama"), rule="chain", name="llama"),
        "roberta": MaskedModel(load("roberta"), name="roberta", pass_budget=128),
        "modernbert": MaskedModel(load("modernbert"), rule="pll-word-l2r", name="modernbert"),
    }


def searches(loaded: dict[str, LanguageModel]) -> Iterator[tuple[str, Callable[[], Synthesis]]]:
    """Searches over small networks and n-gram models, each pair under both of these recipes."""
    for (accept, reject), recipe in product(PAIRS, RECORDED):

        def search(accept: str = accept, reject: str = reject, recipe: str = recipe) -> Synthesis:
            pair = loaded[accept], loaded[reject]
            return synthesize(
                *pair, SHORT, VOCABULARY, recipe=RECIPES[recipe], seed=1, restarts=SINGLE
            )

        yield f"{accept}/{reject}/{recipe}", search


def facts(found: Synthesis) -> dict[str, Any]:
    """What a search did: steps, what it scored, rows and tokens passed, the scores in the end."""
    return {
        "synthetic": found.synthetic.text,
        "steps": [f"{step.position} {step.new}" for step in found.climb.steps],
        "visits": found.climb.visits,
        "evaluations": len(found.evaluations),
        "passes": {name: [cost.rows, cost.tokens] for name, cost in found.costs.items()},
        "log_probs": list(found.log_probs),
    }


def record() -> None:
    """Write what all searches do now."""
    everything = [*toy_searches(), *searches(models(Path(mkdtemp())))]
    lines = [f"{json.dumps(name)}: {json.dumps(facts(run()))}" for name, run in everything]
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    record()
