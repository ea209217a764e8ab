"""Costs of a search: it counts each pass once, and earlier calls of its models change nothing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pytest

from contstim.files.arrays import FloatArray
from contstim.models.base import LanguageModel, Replacements
from contstim.models.causal.adapter import CausalModel
from contstim.models.checkpoints import load_checkpoint
from contstim.models.loading import Loading
from contstim.models.masked.adapter import MaskedModel
from contstim.models.ngram.adapter import NgramModel
from contstim.optimization.search.recipes import RECIPES
from contstim.optimization.search.restarts import SINGLE
from contstim.optimization.search.synthesize import synthesize
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary
from tests.models.tiny import TEXTS, build
from tests.optimization.search.toys import NATURAL, WORDS, TableModel

SHORT = Sentence.parse("The teacher reads.")
ENGLISH = Vocabulary.from_sentences([Sentence.parse(text) for text in TEXTS[:3]])


class CountingModel(TableModel):
    """Counts the sentences that pass through it."""

    n_passed = 0

    def log_probs(self, sentences: Sequence[Sentence]) -> FloatArray:
        self.n_passed += len(sentences)
        return super().log_probs(sentences)

    def replacements(self, sentence: Sentence, position: int, words: Sequence[str]) -> Replacements:
        self.n_passed += self.says != "exact"
        return super().replacements(sentence, position, words)


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("says", ["exact", "estimate", "bound"])
def test_every_pass_is_counted_once(recipe: str, says: str) -> None:
    """Witness: the counts of the models."""
    accept, reject = CountingModel(0, says), CountingModel(1, says)
    synthesis = synthesize(accept, reject, NATURAL, WORDS, recipe=RECIPES[recipe])
    rows_by_model = {name: cost.rows for name, cost in synthesis.costs.items()}
    assert rows_by_model == {model.name: model.n_passed for model in (accept, reject)}


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, LanguageModel]:
    folder = tmp_path_factory.mktemp("networks")
    gpt2, roberta = (
        load_checkpoint(str(build(name, folder)), Loading(device="cpu"))
        for name in ("gpt2", "roberta")
    )
    return {"gpt2": CausalModel(gpt2), "roberta": MaskedModel(roberta, pass_budget=128)}


@pytest.mark.parametrize(
    ("pair", "recipe"),
    [
        (("roberta", "gpt2"), "golan2023"),
        (("trigram", "gpt2"), "default"),
    ],
)
def test_earlier_scores_do_not_change_a_search(
    networks: dict[str, LanguageModel], trigram: NgramModel, pair: tuple[str, str], recipe: str
) -> None:
    """Witness: the same search after the models have scored other sentences."""
    accept, reject = (({**networks, "trigram": trigram})[name] for name in pair)
    other_sentence = Sentence.parse("They saw a difficult home.")
    for model in (accept, reject):
        model.replacements(other_sentence, 2, ("small", "a"))
    first = synthesize(accept, reject, SHORT, ENGLISH, recipe=RECIPES[recipe], restarts=SINGLE)
    for model, position in product((accept, reject), range(len(SHORT))):
        model.replacements(SHORT, position, SHORT.words[position : position + 1])
    second = synthesize(accept, reject, SHORT, ENGLISH, recipe=RECIPES[recipe], restarts=SINGLE)
    assert second.costs == first.costs
    assert [step.cost for step in second.climb.steps] == [step.cost for step in first.climb.steps]
    assert second.synthetic == first.synthetic
    assert len(second.evaluations) == len(first.evaluations)
