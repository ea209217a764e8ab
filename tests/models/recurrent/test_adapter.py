"""RNN, LSTM and BiLSTM against enumeration and step-by-step networks; their folders on disk."""

import contextlib
import json
import shutil
from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch

from contstim.errors import InputError, ModelError
from contstim.models.catalog import load_model
from contstim.models.costs import Tally, counting
from contstim.models.recurrent.adapter import RecurrentModel
from contstim.models.recurrent.network import Kind, read_folder, write_folder
from contstim.models.specifications import parse_model
from contstim.models.vocabularies import BOUNDARY, WordList
from contstim.testing.contract import SENTENCES, LanguageModelContract
from contstim.words.sentence import Sentence
from tests.models.damages import DAMAGES, check_refused_or_same
from tests.models.recurrent.conftest import KINDS, build, word_list
from tests.models.tiny import TEXTS

CUTOFFS = (20, 60)

SENTENCE = Sentence.parse("The old teacher reads a book.")


class TestContract(LanguageModelContract):
    @pytest.fixture(
        scope="module",
        params=[*product(KINDS, (1,), ((),)), ("lstm", 1, CUTOFFS), ("bilstm", 2, CUTOFFS)],
        ids=str,
    )
    @classmethod
    def model(cls, request: pytest.FixtureRequest) -> RecurrentModel:
        kind, layers, cutoffs = request.param
        return build(kind, layers=layers, cutoffs=cutoffs)


@pytest.mark.parametrize("cutoffs", [(), CUTOFFS])
@pytest.mark.parametrize("position", [0, 2, 4])
def test_bilstm_probabilities_of_words_sum_to_one(cutoffs: tuple[int, ...], position: int) -> None:
    """Witness: enumeration of one sentence for each known word and one for all unknown words."""
    model = build("bilstm", cutoffs=cutoffs)
    sentence = Sentence.parse("Do you know the answer")
    all_words = (*word_list().words, "zyzzyva")
    scored = model.token_log_probs([sentence.replace(position, word) for word in all_words])
    probabilities = np.exp([terms[position].log_prob for terms in scored])
    assert probabilities.sum() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("cutoffs", [(), CUTOFFS])
@pytest.mark.parametrize("kind", ["rnn", "lstm"])
def test_probabilities_of_continuations_sum_to_one(kind: Kind, cutoffs: tuple[int, ...]) -> None:
    """Witness: enumeration of the end, all known words and an unknown word after "Do you"."""
    model = build(kind, cutoffs=cutoffs)
    all_words = (*word_list().words, "zyzzyva")
    ended = model.token_log_probs([Sentence(("Do", "you"))])[0][-1].log_prob
    continued = model.token_log_probs([Sentence(("Do", "you", word)) for word in all_words])
    log_probs = np.array([ended, *(terms[2].log_prob for terms in continued)])
    assert np.exp(log_probs).sum() == pytest.approx(1, abs=1e-5)
    entropies = {terms[2].entropy for terms in continued}
    assert [*entropies] == pytest.approx([-np.exp(log_probs) @ log_probs] * len(entropies))


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("cutoffs", [(), CUTOFFS])
def test_bilstm_states_never_see_predicted_words(layers: int, cutoffs: tuple[int, ...]) -> None:
    """Changing a word changes the distributions at all other positions, but not at its own."""
    model = build("bilstm", layers=layers, cutoffs=cutoffs)
    sentence = SENTENCES[0]
    for position in range(len(sentence)):
        changed = sentence.replace(position, "sleeps")
        before, after = (_compute_distributions(model, s) for s in (sentence, changed))
        is_changed = np.arange(len(sentence)) == position
        np.testing.assert_array_equal(before[is_changed], after[is_changed])
        assert (np.abs(before[~is_changed] - after[~is_changed]).max(axis=1) > 1e-3).all()


def _compute_distributions(model: RecurrentModel, sentence: Sentence) -> np.ndarray:
    """Return log p by position and word of the vocabulary, from the network itself."""
    ids = torch.from_numpy(model._words.numbers(sentence.words))[None]
    with torch.inference_mode():
        states = model._network._around(ids, torch.ones_like(ids, dtype=torch.bool))
        log_probs: np.ndarray = model._network.distributions(states[0])[:, 1:].numpy()
    return log_probs


@pytest.mark.parametrize("cutoffs", [(), CUTOFFS])
def test_scores_equal_those_of_torch_cells(kind: Kind, cutoffs: tuple[int, ...]) -> None:
    """Witness: `torch.nn.RNNCell` and `LSTMCell` with the same weights, one word after another."""
    model = build(kind, cutoffs=cutoffs)
    for sentence, score in zip(SENTENCES, model.log_probs(SENTENCES), strict=True):
        assert score == pytest.approx(_score_by_cells(model, sentence), abs=1e-4)


def _score_by_cells(model: RecurrentModel, sentence: Sentence) -> float:
    network, kind = model._network, model._network.shape.kind
    ids = model._words.numbers(sentence.words).tolist()
    forward = _compute_states(network.forwards, network.embedding, [BOUNDARY, *ids])
    if kind == "bilstm":
        backward = _compute_states(network.backwards, network.embedding, [BOUNDARY, *ids[::-1]])
        states = [torch.cat([forward[i], backward[len(ids) - 1 - i]]) for i in range(len(ids))]
        targets = ids
    else:
        states, targets = forward, [*ids, BOUNDARY]
    with torch.no_grad():
        log_probs = network.distributions(torch.stack(states))
    return float(sum(log_probs[i, target] for i, target in enumerate(targets)))


def _compute_states(
    layers: torch.nn.RNNBase, embedding: torch.nn.Embedding, ids: list[int]
) -> list[torch.Tensor]:
    """Return the state after each number, from torch's single-step cell."""
    is_lstm = isinstance(layers, torch.nn.LSTM)
    cell = (torch.nn.LSTMCell if is_lstm else torch.nn.RNNCell)(8, 16)
    cell.load_state_dict({name[:-3]: weight for name, weight in layers.state_dict().items()})
    state, states = None, []
    with torch.no_grad():
        for number in ids:
            state = cell(embedding.weight[number][None], state)
            states.append((state[0] if is_lstm else state)[0])
    return states


def test_bounds_are_sums_of_terms_up_to_the_word(kind: Kind) -> None:
    """The bound is the sum of the terms that later words cannot change."""
    model = build(kind)
    sentence = SENTENCES[0]
    for position in range(len(sentence)):
        bound = model.replacements(sentence, position, [sentence.words[position]]).upper_bound[0]
        terms = [term.log_prob for term in model.token_log_probs([sentence])[0]]
        expected = terms[position] if kind == "bilstm" else sum(terms[: position + 1])
        assert bound == pytest.approx(expected, abs=1e-4)


def test_fingerprint_depends_on_weights_and_words(kind: Kind) -> None:
    first, same_model = build(kind), build(kind)
    assert first.convention == same_model.convention
    with torch.no_grad():
        same_model._network.embedding.weight[5, 2] += 1e-3
    changed = type(same_model)(same_model._network, same_model._words, name="changed")
    assert changed.convention.fingerprint != first.convention.fingerprint


def test_passes_of_all_layers_are_counted(kind: Kind) -> None:
    """Witness: hooks on the recurrent layers; the two stacks read a sentence in one pass."""
    model = build(kind)
    rows_passed: list[int] = []

    def record_rows(_module: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        rows_passed.append(len(inputs[0]))

    stacks = [layer for layer in model._network.modules() if isinstance(layer, torch.nn.RNNBase)]
    for stack in stacks:
        stack.register_forward_pre_hook(record_rows)

    with counting(Tally()) as tally:
        model.log_probs([SENTENCE])
    assert tally.total.rows * len(stacks) == sum(rows_passed)

    rows_passed.clear()
    for _ in range(2):  # the second call is cached and costs nothing
        with counting(Tally()) as tally:
            model.replacements(SENTENCE, 2, ("dog", "a"))
        assert tally.total.rows == sum(rows_passed)
        rows_passed.clear()
    assert tally.total.rows == 0


PARSED = [Sentence.parse(text) for text in TEXTS]


def save_model(kind: Kind, folder: Path, cutoffs: tuple[int, ...] = ()) -> RecurrentModel:
    model = build(kind, cutoffs=cutoffs)
    write_folder(folder, model._network, model._words)
    return model


@pytest.mark.parametrize("cutoffs", [(), CUTOFFS])
def test_saved_folders_are_read_back(kind: Kind, cutoffs: tuple[int, ...], tmp_path: Path) -> None:
    model = save_model(kind, tmp_path, cutoffs)
    for specification in (f"{kind}:{tmp_path}", str(tmp_path)):
        loaded = load_model(specification, device="cpu")
        assert loaded.name == specification
        assert loaded.convention == model.convention
        assert (loaded.log_probs(SENTENCES) == model.log_probs(SENTENCES)).all()
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"recurrent.json", "model.safetensors", "vocabulary.csv"}


def test_folder_determines_its_family(kind: Kind, tmp_path: Path) -> None:
    save_model(kind, tmp_path)
    rule = "pseudo-log-likelihood" if kind == "bilstm" else "log-likelihood"
    assert parse_model(f"{tmp_path}@{rule}").family == kind
    other_kinds = {"rnn": "lstm", "lstm": "bilstm", "bilstm": "rnn"}
    with pytest.raises(ModelError, match=f"of kind {kind}: write {kind}:"):
        load_model(f"{other_kinds[kind]}:{tmp_path}")


def test_word_lists_contain_the_most_frequent_words() -> None:
    """Witness: `collections.Counter`."""
    counts = Counter(word for sentence in PARSED for word in sentence.words)
    words = WordList.from_sentences(PARSED, size=10)
    assert len(words.words) == 10
    others = [count for word, count in counts.items() if word not in words.words]
    assert min(counts[word] for word in words.words) >= max(others)
    twice = WordList.from_sentences(PARSED, min_count=2)
    assert set(twice.words) == {word for word, count in counts.items() if count >= 2}
    totals = [a + b for a, b in zip(twice.initial, twice.inner, strict=True)]
    assert totals == [counts[word] for word in twice.words]
    assert len(set(words.numbers((*words.words, "zyzzyva", "xkcd")).tolist())) == 11


def test_vocabulary_is_selected_by_counts(kind: Kind) -> None:
    """Witness: words counted one by one."""
    vocabulary = build(kind).vocabulary(2)
    starts = [sentence.words[0] for sentence in PARSED]
    assert set(vocabulary.initial) == {word for word in starts if starts.count(word) >= 2}
    inner = [word for sentence in PARSED for word in sentence.words[1:]]
    assert set(vocabulary.inner) == {word for word in inner if inner.count(word) >= 2}


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        *(({"size": size}, r"has \d+ distinct words") for size in (0, -1, 10_000)),
        ({"min_count": 1_000}, "at least 1,000 times. These are too few for a vocabulary"),
    ],
)
def test_impossible_limits_of_word_lists_are_refused(limits: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        WordList.from_sentences(PARSED, **limits)


def test_folder_without_a_consistent_model_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"contains no recurrent model .* 'contstim train rnn"):
        load_model(f"lstm:{tmp_path}")
    facts = json.loads((folder / "recurrent.json").read_text())
    (folder / "recurrent.json").write_text(json.dumps(facts | {"hidden": 32}))
    with pytest.raises(ModelError, match="Cannot read the weights"):
        load_model(f"lstm:{folder}")
    (folder / "recurrent.json").write_text(json.dumps(facts))
    lines = (folder / "vocabulary.csv").read_text().splitlines()
    for n, message in ((-1, "is damaged: its network has"), (1, "not a table of words and")):
        (folder / "vocabulary.csv").write_text("\n".join(lines[:n]) + "\n")
        with pytest.raises(ModelError, match=message):
            load_model(f"lstm:{folder}")


FILES = ("recurrent.json", "model.safetensors", "vocabulary.csv")


@pytest.fixture(scope="module")
def original_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lstm")
    save_model("lstm", folder, CUTOFFS)
    return folder


@pytest.fixture
def folder(original_folder: Path, tmp_path: Path) -> Path:
    """A copy of a saved model."""
    return Path(shutil.copytree(original_folder, tmp_path / "model"))


CASES = [(name, damage) for name in FILES for damage in DAMAGES]
CASES.remove(("model.safetensors", "carriage returns"))  # gives other valid weights


@pytest.mark.parametrize(("name", "damage"), CASES)
def test_damage_is_refused_or_harmless(folder: Path, name: str, damage: str) -> None:
    def compute_scores() -> object:
        return load_model(f"lstm:{folder}", device="cpu").log_probs(SENTENCES)

    check_refused_or_same(folder / name, damage, compute_scores)
    with contextlib.suppress(ModelError):
        load_model(str(folder), device="cpu")


ODD: tuple[object, ...] = (None, 0, -1, 2.5, 10**30, "8", "", True, [8], {}, float("nan"), "9" * 99)


@pytest.mark.parametrize("value", ODD, ids=lambda value: repr(value)[:9])
@pytest.mark.parametrize(
    "name", ["format", "kind", "words", "embedding", "hidden", "layers", "dropout", "cutoffs"]
)
def test_wrong_sizes_are_refused(folder: Path, name: str, value: object) -> None:
    """A width of 10^30 must be refused before memory is allocated."""
    facts = json.loads((folder / "recurrent.json").read_text())
    (folder / "recurrent.json").write_text(json.dumps(facts | {name: value}))
    if (name, value) == ("dropout", 0):  # valid: dropout may be zero
        assert len(read_folder(folder)[1]) == facts["words"]
        return
    with pytest.raises(ModelError, match=r"does not describe a recurrent model|Cannot read"):
        load_model(f"lstm:{folder}", device="cpu")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_refused(folder: Path, value: float) -> None:
    weights = safetensors.torch.load_file(folder / "model.safetensors")
    weights["forwards.bias_hh_l0"][3] = value
    safetensors.torch.save_file(weights, folder / "model.safetensors")
    with pytest.raises(ModelError, match=r"forwards\.bias_hh_l0 has values that are not finite"):
        read_folder(folder)
    halved = {name: weight.half() for name, weight in weights.items()}
    safetensors.torch.save_file(halved, folder / "model.safetensors")
    with pytest.raises(ModelError, match=r"torch\.float16"):
        read_folder(folder)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ('"the",1,1', "'the' occurs twice"),
        ('"",1,1', "'' is not a word"),
        ('"two words",1,1', "is not a word"),
        ('"<s>",1,1', "is not a word"),
        ('"zyzzyva",-1,1', "'-1' is not a count"),
        ('"zyzzyva",1_0,1', "'1_0' is not a count"),
        ('"zyzzyva",1.0,1', "'1.0' is not a count"),
        (f'"zyzzyva",{"9" * 5_000},1', "is not a count"),
    ],
)
def test_invalid_words_and_counts_are_refused(folder: Path, row: str, message: str) -> None:
    lines = (folder / "vocabulary.csv").read_text().splitlines()
    (folder / "vocabulary.csv").write_text("\n".join([*lines[:-1], row]) + "\n")
    with pytest.raises(ModelError, match=message):
        read_folder(folder)
