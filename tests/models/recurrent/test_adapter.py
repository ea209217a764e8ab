"""RNN, LSTM and BiLSTM against enumeration and word-by-word networks; their folders on disk."""

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
    """Witness: one sentence for each word of the vocabulary and one for all others, enumerated."""
    model = build("bilstm", cutoffs=cutoffs)
    sentence = Sentence.parse("Do you know the answer")
    everything = (*word_list().words, "zyzzyva")
    scored = model.token_log_probs([sentence.replace(position, word) for word in everything])
    assert np.exp([terms[position].log_prob for terms in scored]).sum() == pytest.approx(
        1, abs=1e-5
    )


@pytest.mark.parametrize("cutoffs", [(), CUTOFFS])
@pytest.mark.parametrize("kind", ["rnn", "lstm"])
def test_probabilities_of_continuations_sum_to_one(kind: Kind, cutoffs: tuple[int, ...]) -> None:
    """Witness: after "Do you" comes the end, a word of the vocabulary, or another: enumerated."""
    model = build(kind, cutoffs=cutoffs)
    everything = (*word_list().words, "zyzzyva")
    ended = model.token_log_probs([Sentence(("Do", "you"))])[0][-1].log_prob
    going_on = model.token_log_probs([Sentence(("Do", "you", word)) for word in everything])
    log_probs = np.array([ended, *(terms[2].log_prob for terms in going_on)])
    assert np.exp(log_probs).sum() == pytest.approx(1, abs=1e-5)
    entropies = {terms[2].entropy for terms in going_on}
    assert [*entropies] == pytest.approx([-np.exp(log_probs) @ log_probs] * len(entropies))


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("cutoffs", [(), CUTOFFS])
def test_bilstm_states_never_see_predicted_words(layers: int, cutoffs: tuple[int, ...]) -> None:
    """Changing the word at a place changes every other place's distribution, and not its own."""
    model = build("bilstm", layers=layers, cutoffs=cutoffs)
    sentence = SENTENCES[0]
    for position in range(len(sentence)):
        changed = sentence.replace(position, "sleeps")
        before, after = (_distributions(model, s) for s in (sentence, changed))
        own = np.arange(len(sentence)) == position
        np.testing.assert_array_equal(before[own], after[own])
        assert (np.abs(before[~own] - after[~own]).max(axis=1) > 1e-3).all()


def _distributions(model: RecurrentModel, sentence: Sentence) -> np.ndarray:
    """(words of the sentence, words of the vocabulary) log p as the network itself gives it."""
    ids = torch.from_numpy(model._words.numbers(sentence.words))[None]
    with torch.inference_mode():
        states = model._network._around(ids, torch.ones_like(ids, dtype=torch.bool))
        found: np.ndarray = model._network.distributions(states[0])[:, 1:].numpy()
    return found


@pytest.mark.parametrize("cutoffs", [(), CUTOFFS])
def test_scores_are_those_of_torch_cells_by_hand(kind: Kind, cutoffs: tuple[int, ...]) -> None:
    """Witness: `torch.nn.RNNCell` and `LSTMCell` with the same weights, one word after another."""
    model = build(kind, cutoffs=cutoffs)
    for sentence, score in zip(SENTENCES, model.log_probs(SENTENCES), strict=True):
        assert score == pytest.approx(_by_hand(model, sentence), abs=1e-4)


def _by_hand(model: RecurrentModel, sentence: Sentence) -> float:
    network, kind = model._network, model._network.shape.kind
    ids = model._words.numbers(sentence.words).tolist()
    before = _stepped(network.forwards, network.embedding, [BOUNDARY, *ids])
    if kind == "bilstm":
        after = _stepped(network.backwards, network.embedding, [BOUNDARY, *ids[::-1]])
        states = [torch.cat([before[i], after[len(ids) - 1 - i]]) for i in range(len(ids))]
        targets = ids
    else:
        states, targets = before, [*ids, BOUNDARY]
    with torch.no_grad():
        every = network.distributions(torch.stack(states))
    return float(sum(every[i, target] for i, target in enumerate(targets)))


def _stepped(
    layers: torch.nn.RNNBase, embedding: torch.nn.Embedding, ids: list[int]
) -> list[torch.Tensor]:
    """The state after each number, from torch's single-step cell."""
    is_lstm = isinstance(layers, torch.nn.LSTM)
    cell = (torch.nn.LSTMCell if is_lstm else torch.nn.RNNCell)(8, 16)
    cell.load_state_dict({name[:-3]: weight for name, weight in layers.state_dict().items()})
    state, states = None, []
    with torch.no_grad():
        for number in ids:
            state = cell(embedding.weight[number][None], state)
            states.append((state[0] if is_lstm else state)[0])
    return states


def test_bounds_are_what_the_words_before_and_the_word_cost(kind: Kind) -> None:
    """The bound is the sum of the terms that no later reading of the candidate can change."""
    model = build(kind)
    sentence = SENTENCES[0]
    for position in range(len(sentence)):
        bound = model.replacements(sentence, position, [sentence.words[position]]).upper_bound[0]
        terms = [term.log_prob for term in model.token_log_probs([sentence])[0]]
        known = terms[position] if kind == "bilstm" else sum(terms[: position + 1])
        assert bound == pytest.approx(known, abs=1e-4)


def test_the_fingerprint_follows_weights_and_words(kind: Kind) -> None:
    first, again = build(kind), build(kind)
    assert first.convention == again.convention
    with torch.no_grad():
        again._network.embedding.weight[5, 2] += 1e-3
    changed = type(again)(again._network, again._words, name="changed")
    assert changed.convention.fingerprint != first.convention.fingerprint


def test_every_reading_of_the_layers_counts_as_a_pass(kind: Kind) -> None:
    """Witness: hooks on the recurrent layers; the two stacks read a whole sentence in one pass."""
    model = build(kind)
    passed: list[int] = []

    def note(_module: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        passed.append(len(inputs[0]))

    stacks = [layer for layer in model._network.modules() if isinstance(layer, torch.nn.RNNBase)]
    for stack in stacks:
        stack.register_forward_pre_hook(note)

    with counting(Tally()) as tally:
        model.log_probs([SENTENCE])
    assert tally.total.rows * len(stacks) == sum(passed)

    passed.clear()
    for _ in range(2):  # what has been read is remembered, and costs nothing the second time
        with counting(Tally()) as tally:
            model.replacements(SENTENCE, 2, ("dog", "a"))
        assert tally.total.rows == sum(passed)
        passed.clear()
    assert tally.total.rows == 0


PARSED = [Sentence.parse(text) for text in TEXTS]


def saved(kind: Kind, folder: Path, cutoffs: tuple[int, ...] = ()) -> RecurrentModel:
    model = build(kind, cutoffs=cutoffs)
    write_folder(folder, model._network, model._words)
    return model


@pytest.mark.parametrize("cutoffs", [(), CUTOFFS])
def test_folders_read_back_the_same(kind: Kind, cutoffs: tuple[int, ...], tmp_path: Path) -> None:
    model = saved(kind, tmp_path, cutoffs)
    for specification in (f"{kind}:{tmp_path}", str(tmp_path)):
        again = load_model(specification, device="cpu")
        assert again.name == specification
        assert again.convention == model.convention
        assert (again.log_probs(SENTENCES) == model.log_probs(SENTENCES)).all()
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"recurrent.json", "model.safetensors", "vocabulary.csv"}


def test_a_folder_tells_its_family(kind: Kind, tmp_path: Path) -> None:
    saved(kind, tmp_path)
    rule = "pseudo-log-likelihood" if kind == "bilstm" else "log-likelihood"
    assert parse_model(f"{tmp_path}@{rule}").family == kind
    others = {"rnn": "lstm", "lstm": "bilstm", "bilstm": "rnn"}
    with pytest.raises(ModelError, match=f"of kind {kind}: write {kind}:"):
        load_model(f"{others[kind]}:{tmp_path}")


def test_words_are_the_most_frequent_ones() -> None:
    """Witness: `collections.Counter`."""
    counts = Counter(word for sentence in PARSED for word in sentence.words)
    words = WordList.from_sentences(PARSED, size=10)
    assert len(words.words) == 10
    assert min(counts[word] for word in words.words) >= max(
        count for word, count in counts.items() if word not in words.words
    )
    twice = WordList.from_sentences(PARSED, min_count=2)
    assert set(twice.words) == {word for word, count in counts.items() if count >= 2}
    assert [a + b for a, b in zip(twice.initial, twice.inner, strict=True)] == [
        counts[word] for word in twice.words
    ]
    assert len(set(words.numbers((*words.words, "zyzzyva", "xkcd")).tolist())) == 11


def test_the_vocabulary_comes_from_the_counts(kind: Kind) -> None:
    """Witness: words counted one by one."""
    found = build(kind).vocabulary(2)
    starts = [sentence.words[0] for sentence in PARSED]
    assert set(found.initial) == {word for word in starts if starts.count(word) >= 2}
    inner = [word for sentence in PARSED for word in sentence.words[1:]]
    assert set(found.inner) == {word for word in inner if inner.count(word) >= 2}


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        *(({"size": size}, r"has \d+ distinct words") for size in (0, -1, 10_000)),
        ({"min_count": 1_000}, "at least 1,000 times, too few for a vocabulary"),
    ],
)
def test_vocabularies_that_the_text_cannot_give(limits: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        WordList.from_sentences(PARSED, **limits)


def test_a_folder_without_a_model_and_one_whose_files_do_not_fit(
    folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(ModelError, match=r"contains no recurrent model .* 'contstim train rnn"):
        load_model(f"lstm:{tmp_path}")
    facts = json.loads((folder / "recurrent.json").read_text())
    (folder / "recurrent.json").write_text(json.dumps(facts | {"hidden": 32}))
    with pytest.raises(ModelError, match="Cannot read the weights"):
        load_model(f"lstm:{folder}")
    (folder / "recurrent.json").write_text(json.dumps(facts))
    lines = (folder / "vocabulary.csv").read_text().splitlines()
    for n, message in ((-1, "is damaged: its network reads"), (1, "not a table of words and")):
        (folder / "vocabulary.csv").write_text("\n".join(lines[:n]) + "\n")
        with pytest.raises(ModelError, match=message):
            load_model(f"lstm:{folder}")


FILES = ("recurrent.json", "model.safetensors", "vocabulary.csv")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lstm")
    saved("lstm", folder, CUTOFFS)
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    """A copy of a saved model."""
    return Path(shutil.copytree(whole, tmp_path / "model"))


CASES = [(name, damage) for name in FILES for damage in DAMAGES]
CASES.remove(("model.safetensors", "carriage returns"))  # other numbers are as good as any


@pytest.mark.parametrize(("name", "damage"), CASES)
def test_damage_is_refused_or_harmless(folder: Path, name: str, damage: str) -> None:
    def read() -> object:
        return load_model(f"lstm:{folder}", device="cpu").log_probs(SENTENCES)

    check_refused_or_same(folder / name, damage, read)
    with contextlib.suppress(ModelError):
        load_model(str(folder), device="cpu")


ODD: tuple[object, ...] = (None, 0, -1, 2.5, 10**30, "8", "", True, [8], {}, float("nan"), "9" * 99)


@pytest.mark.parametrize("value", ODD, ids=lambda value: repr(value)[:9])
@pytest.mark.parametrize(
    "name", ["format", "kind", "words", "embedding", "hidden", "layers", "dropout", "cutoffs"]
)
def test_wrong_sizes_are_refused(folder: Path, name: str, value: object) -> None:
    """A width of 10^30 must not first ask for the memory."""
    facts = json.loads((folder / "recurrent.json").read_text())
    (folder / "recurrent.json").write_text(json.dumps(facts | {name: value}))
    if (name, value) == ("dropout", 0):  # a network may hide nothing
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
        ('"the",1,1', "'the' is there twice"),
        ('"",1,1', "'' is not a word"),
        ('"two words",1,1', "is not a word"),
        ('"<s>",1,1', "is not a word"),
        ('"zyzzyva",-1,1', "'-1' is not a count"),
        ('"zyzzyva",1_0,1', "'1_0' is not a count"),
        ('"zyzzyva",1.0,1', "'1.0' is not a count"),
        (f'"zyzzyva",{"9" * 5_000},1', "is not a count"),
    ],
)
def test_bad_words_are_refused(folder: Path, row: str, message: str) -> None:
    lines = (folder / "vocabulary.csv").read_text().splitlines()
    (folder / "vocabulary.csv").write_text("\n".join([*lines[:-1], row]) + "\n")
    with pytest.raises(ModelError, match=message):
        read_folder(folder)
