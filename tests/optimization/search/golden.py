"""Searches whose steps were recorded, for comparison with the current code.

    python -m tests.optimization.search.golden

records them again. Do this only after a change that is meant to change searches.
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

RECIPE_NAMES = ("default", "golan2023")
"""The recorded recipes."""

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
    """Yield searches over toy models of every kind, the same on every machine."""
    for (accept, reject), recipe, seed in product(product(TOYS, repeat=2), RECIPE_NAMES, (0, 1)):

        def search(
            accept: str = accept, reject: str = reject, recipe: str = recipe, seed: int = seed
        ) -> Synthesis:
            pair = TOYS[accept](2 * seed), TOYS[reject](2 * seed + 1)
            return synthesize(
                *pair, NATURAL, WORDS, recipe=RECIPES[recipe], seed=seed, restarts=SINGLE
            )

        yield f"{accept}/{reject}/{recipe}/{seed}", search


def build_models(folder: Path) -> dict[str, LanguageModel]:
    """Return a small model of each family, written to a folder and loaded from it."""

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


def network_searches(
    models_by_name: dict[str, LanguageModel],
) -> Iterator[tuple[str, Callable[[], Synthesis]]]:
    """Yield searches over small networks and n-gram models, for each pair and recorded recipe."""
    for (accept, reject), recipe in product(PAIRS, RECIPE_NAMES):

        def search(accept: str = accept, reject: str = reject, recipe: str = recipe) -> Synthesis:
            pair = models_by_name[accept], models_by_name[reject]
            return synthesize(
                *pair, SHORT, VOCABULARY, recipe=RECIPES[recipe], seed=1, restarts=SINGLE
            )

        yield f"{accept}/{reject}/{recipe}", search


def summarize(synthesis: Synthesis) -> dict[str, Any]:
    """Return a search's steps, evaluations, rows and tokens passed, and final scores."""
    return {
        "synthetic": synthesis.synthetic.text,
        "steps": [f"{step.position} {step.new}" for step in synthesis.climb.steps],
        "visits": synthesis.climb.visits,
        "evaluations": len(synthesis.evaluations),
        "passes": {name: [cost.rows, cost.tokens] for name, cost in synthesis.costs.items()},
        "log_probs": list(synthesis.log_probs),
    }


def record_searches() -> None:
    all_searches = [*toy_searches(), *network_searches(build_models(Path(mkdtemp())))]
    lines = [f"{json.dumps(name)}: {json.dumps(summarize(run()))}" for name, run in all_searches]
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    record_searches()
