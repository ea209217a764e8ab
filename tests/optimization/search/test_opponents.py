"""Searches between scorers with different units."""

from dataclasses import replace
from itertools import compress
from pathlib import Path

import numpy as np
import pytest

from contstim.english import generate
from contstim.errors import InfeasibleError, InputError, ModelError
from contstim.files.tables import write_table
from contstim.items.reviews import changed_positions
from contstim.items.stimuli import Triplet, read_triplets, triplet_columns
from contstim.models.base import Scorer
from contstim.models.catalog import load_scorer
from contstim.models.ngram.adapter import NgramModel
from contstim.optimization.search import opponents
from contstim.optimization.search.constraints import Candidates, no_repeats
from contstim.optimization.search.few_changes import FewChanges
from contstim.optimization.search.near_pairs import near_pairs
from contstim.optimization.search.recipes import GOLAN2023
from contstim.optimization.search.settings import SearchSettings
from contstim.optimization.search.synthesize import Synthesis, synthesize, synthesize_triplet
from contstim.optimization.selection.question import TripletQuestion
from contstim.optimization.selection.triplets import select_triplets
from contstim.words.sentence import Sentence, repeats
from contstim.words.vocabulary import Vocabulary
from tests.models import tiny
from tests.models.classifier.test_adapter import build
from tests.optimization.search.test_few_changes import feasible_sentences

REFERENCE = generate(60, seed=8)


@pytest.fixture(scope="module")
def slor(trained: Path) -> Scorer:
    return load_scorer(f"slor=kenlm:{trained}/2gram.arpa+slor:{trained}/1gram.arpa")


@pytest.fixture(scope="module")
def words(unseen: list[Sentence]) -> Vocabulary:
    return Vocabulary.from_sentences(unseen[:5], min_count=1)


@pytest.fixture(scope="module")
def natural(unseen: list[Sentence], words: Vocabulary) -> Sentence:
    return next(s for s in unseen if not words.missing_words(s) and not repeats(s.words))


def natural_sds(*models: Scorer) -> dict[str, float]:
    return opponents.natural_sds(models, REFERENCE)


def check_synthesis(result: Synthesis, accept: Scorer, reject: Scorer, enough: float) -> None:
    """Score the result again, in its own units."""
    pair = [result.natural, result.synthetic]
    sds = natural_sds(accept, reject)
    assert np.diff(accept.scores(pair))[0] >= -1e-4
    assert -np.diff(reject.scores(pair))[0] >= enough * sds[reject.name] - 1e-4
    expected = [[model.scores([s])[0] for model in (accept, reject)] for s in pair]
    assert result.natural_log_probs == pytest.approx(expected[0], abs=1e-4)
    assert result.log_probs == pytest.approx(expected[1], abs=1e-4)
    assert result.units == (accept.convention.unit, reject.convention.unit)


def test_standard_deviations_are_computed_within_lengths(slor: Scorer) -> None:
    """Witness: residuals from the mean of each length."""
    lengths = np.array(list(map(len, dict.fromkeys(REFERENCE))))
    scores = slor.scores([*dict.fromkeys(REFERENCE)])
    means = {n: scores[lengths == n].mean() for n in set(lengths.tolist())}
    residuals = scores - np.array([means[n] for n in lengths.tolist()])
    expected = np.sqrt((residuals**2).sum() / (len(scores) - len(means)))
    assert natural_sds(slor) == pytest.approx({slor.name: expected})
    with pytest.raises(ModelError, match="must vary"):
        opponents.natural_sds([slor], REFERENCE[:1])


@pytest.mark.parametrize("rejects_slor", [True, False])
def test_results_equal_those_of_an_exhaustive_search(
    slor: Scorer, trigram: NgramModel, words: Vocabulary, natural: Sentence, rejects_slor: bool
) -> None:
    accept, reject = (trigram, slor) if rejects_slor else (slor, trigram)
    sds, enough = natural_sds(accept, reject), 0.2
    problem, goal = (accept, reject, natural, words), FewChanges(enough, max_changes=2)
    result = synthesize(*problem, sds=sds, few_changes=goal)
    feasible = [feasible_sentences(*problem, n, enough * sds[reject.name]) for n in (1, 2)]
    n_new = 1 if feasible[0] else 2
    assert feasible[n_new - 1]
    check_synthesis(result, accept, reject, enough)
    assert len(changed_positions(natural, result.synthetic)) == n_new
    best = accept.scores(feasible[n_new - 1]).max()
    assert result.log_probs[0] == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize(
    ("name_1", "name_2"),
    [("gpt2+slor", "gpt2"), ("bert@pll-original", "bert@chain"), ("classifier", "gpt2")],
)
def test_networks_and_their_transforms_can_be_opponents(
    name_1: str, name_2: str, tiny_checkpoint: tiny.Folder, trained: Path, tmp_path: Path
) -> None:
    def load(name: str) -> Scorer:
        if name == "classifier":
            folder = build(tiny_checkpoint("bert"), tmp_path / "classifier", num_labels=2)
            return load_scorer(f"classifier:{folder}", device="cpu")
        model, _, transform = name.partition("+")
        text = tiny.specification(tiny_checkpoint, model)
        return load_scorer(f"{text}+slor:{trained}/1gram.arpa" if transform else text, device="cpu")

    models = load(name_1), load(name_2)
    in_nats = all(model.convention.is_log_probability for model in models)
    sds = None if in_nats else natural_sds(*models)
    words = Vocabulary.from_sentences(REFERENCE[:12], min_count=1)
    natural = min((s for s in REFERENCE[:12] if len(s) > 3 and not repeats(s.words)), key=len)
    enough = 0.05
    goal = FewChanges(enough, max_scored=60)
    triplet, *results = synthesize_triplet(*models, natural, words, sds=sds, few_changes=goal)
    assert any(result.changed for result in results)
    for result, (accept, reject) in zip(results, (models[::-1], models), strict=True):
        if not result.changed:
            continue
        if sds:
            check_synthesis(result, accept, reject, enough)
        drop = np.diff(reject.scores([result.synthetic, natural]))[0]
        assert drop / (sds[reject.name] if sds else 1) >= enough - 1e-4
    assert triplet.in_nats == in_nats


def test_triplets_keep_their_units_in_tables_and_selections(
    slor: Scorer, trigram: NgramModel, words: Vocabulary, natural: Sentence, tmp_path: Path
) -> None:
    sds = natural_sds(slor, trigram)
    goal = FewChanges(0.2)
    triplet, *_ = synthesize_triplet(slor, trigram, natural, words, sds=sds, few_changes=goal)
    columns = triplet_columns([triplet])
    assert "score_natural_model_1" in columns
    assert not any(name.startswith("log_prob") for name in columns)
    write_table(tmp_path / "t.csv", columns)
    assert read_triplets(tmp_path / "t.csv") == (triplet,)
    assert (triplet.unit_1, triplet.drop_unit) == ("nats per word", "standard deviations")
    drop = np.diff(slor.scores([triplet.synthetic_1, natural]))[0] / sds["slor"]
    assert triplet.drops[0] == pytest.approx(drop)
    assert triplet.controversiality == sum(triplet.drops)
    question = TripletQuestion(per_pair=1, quantiles=0, enough=0.2)
    assert select_triplets([triplet], question).triplets == (triplet,)


def test_limits_of_drops_depend_on_their_unit() -> None:
    n, s1, s2 = map(Sentence.parse, ("The dog ran.", "The cat ran.", "The dog sat."))
    in_nats = Triplet("t1", "a", "b", n, s1, s2, -1.0, -1.0, -7.0, -1.0, -1.0, -7.0, 12.0)
    n, s1, s2 = map(Sentence.parse, ("We eat fish.", "We eat bread.", "You eat fish."))
    in_sds = Triplet("t2", "a", "c", n, s1, s2, -1.0, -1.0, -1.6, -1.0, -1.0, -1.6, 1.2)
    in_sds = replace(in_sds, sd_1=1.0, sd_2=1.0, unit_1="nats", unit_2="nats per word")
    small_drop = replace(
        in_nats, triplet_id="t3", log_prob_synthetic_1_model_1=-3.0, controversiality=8.0
    )
    question = TripletQuestion(per_pair=1, quantiles=0)
    selected = select_triplets([in_nats, in_sds], question).triplets
    assert [triplet.triplet_id for triplet in selected] == ["t1", "t2"]
    with pytest.raises(InfeasibleError, match=r"5 nats or 0\.5 standard deviations"):
        select_triplets([small_drop, in_sds], question)
    with pytest.raises(InputError, match="needs drops of one unit"):
        select_triplets([in_nats, in_sds], replace(question, objective="controversiality"))
    assert SearchSettings(enough=5.0).sds == 5
    assert SearchSettings().sds == 0.5


def test_near_pairs_scale_gains_by_standard_deviations(
    slor: Scorer, trigram: NgramModel, words: Vocabulary, natural: Sentence
) -> None:
    models, sds = (slor, trigram), natural_sds(slor, trigram)
    candidates = Candidates(words, natural, (no_repeats(words.repeatable),))
    ((position, word),) = near_pairs(models, candidates, sds).values()
    best = 0.0
    for index in range(len(natural)):
        allowed = [*compress(words.at(index), candidates.allowed(natural, index))]
        gains = np.array(
            [m.replacement_scores(natural, index, allowed) - m.scores([natural]) for m in models]
        ) / np.array([[sds[m.name]] for m in models])
        smaller = np.where(gains[0] * gains[1] < 0, np.abs(gains).min(axis=0), 0)
        best = max(best, smaller.max(initial=0))
    changed = [natural.replace(position, word)]
    scaled_gains = [(m.scores(changed)[0] - m.scores([natural])[0]) / sds[m.name] for m in models]
    assert scaled_gains[0] * scaled_gains[1] < 0
    assert min(map(abs, scaled_gains)) == pytest.approx(best)


def test_incomparable_or_equivalent_opponents_are_refused(
    slor: Scorer, bigram: NgramModel, words: Vocabulary, natural: Sentence
) -> None:
    mean = load_scorer(f"mean=kenlm:{bigram.path}+mean")
    sds = {"mean": 1.0, "slor": 1.0, bigram.name: 1.0}
    with pytest.raises(ModelError, match="rank all sentences of equal length in the same order"):
        synthesize(mean, bigram, natural, words, sds=sds)
    with pytest.raises(ModelError, match="needs log-probabilities in nats"):
        synthesize(slor, bigram, natural, words)
    with pytest.raises(InputError, match="golan2023 needs log-probabilities in nats"):
        synthesize(slor, bigram, natural, words, sds=sds, recipe=GOLAN2023)
