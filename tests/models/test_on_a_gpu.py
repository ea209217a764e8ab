"""Scores and searches on a GPU are correct and wait for it as little as possible.

`simulated_gpu` replaces the GPU. Witness for the numbers: the same model on the CPU. As in
PyTorch itself, it is an error to mix tensors of two devices.
"""

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from contstim.models.base import Continuation, LanguageModel
from contstim.models.catalog import load_model, load_scorer
from contstim.models.merging import Answer, NetworkCall, compute_all, merged, runner
from contstim.models.recurrent.network import Kind, write_folder
from contstim.optimization.search.recipes import DEFAULT
from contstim.optimization.search.restarts import SINGLE
from contstim.optimization.search.synthesize import synthesize
from contstim.testing.contract import SENTENCES, WORDS, tolerance
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary
from tests.models import tiny
from tests.models.architectures import ARCHITECTURES, TOLERANCES, compare, save
from tests.models.classifier.test_adapter import build as build_classifier
from tests.models.recurrent.conftest import KINDS
from tests.models.recurrent.conftest import build as build_recurrent
from tests.models.simulated_gpu import simulated_gpu
from tests.models.tiny import Folder

TEXTS = [Sentence.parse(text) for text in tiny.TEXTS]
FEW = [Sentence.parse(text) for text in ("She sleeps there.", "Birds were singing!", "Stay.")]
NAMES = [
    "gpt2@chain", "llama", "bert@pll-original", "bert@chain", "modernbert@pll-whole-word",
    pytest.param("electra@chain-mixture", marks=pytest.mark.slow),
]  # fmt: skip


def compute_answers(model: LanguageModel) -> dict[str, np.ndarray]:
    """Return everything that a search asks a model."""
    sentence = FEW[0]
    replacements = model.replacements(sentence, 1, WORDS)
    values_by_kind = {
        "scores": model.log_probs(FEW),
        "replacements": model.replacement_log_probs(sentence, 1, WORDS),
        "exact": replacements.exact,
        "estimates": replacements.estimate,
        "bounds": replacements.upper_bound,
    }
    if model.convention.rule == "log-likelihood":
        values_by_kind["continuations"] = model.continuation_log_probs([Continuation(sentence, 2)])
    return values_by_kind


def assert_close(ours: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert ours.keys() == expected.keys()
    for kind, values in expected.items():
        limit = tolerance(values[np.isfinite(values)])
        np.testing.assert_allclose(ours[kind], values, rtol=0, atol=limit, err_msg=kind)


def check_gpu_equals_cpu(specification: str) -> int:
    """Compare a model on the GPU and the CPU; return the number of operations on the GPU."""
    expected = compute_answers(load_model(specification, device="cpu"))
    with simulated_gpu() as gpu:
        model = load_model(specification, device="cuda")
        gpu.operations = 0
        assert_close(compute_answers(model), expected)
    return gpu.operations


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_transformers_equal_the_cpu(tiny_checkpoint: Folder, name: str) -> None:
    assert check_gpu_equals_cpu(tiny.specification(tiny_checkpoint, name)) > 100


@pytest.mark.parametrize("kind", KINDS)
def test_recurrent_networks_equal_the_cpu(kind: Kind, tmp_path: Path) -> None:
    model = build_recurrent(kind)
    write_folder(tmp_path / "model", model._network, model._words)
    assert check_gpu_equals_cpu(f"{kind}:{tmp_path / 'model'}") > 20


@pytest.mark.parametrize("base", ["bert", "gpt2"])
def test_classifiers_equal_the_cpu(base: str, tiny_checkpoint: Folder, tmp_path: Path) -> None:
    specification = (
        f"classifier:{build_classifier(tiny_checkpoint(base), tmp_path / base, num_labels=2)}"
    )
    expected = load_scorer(specification, device="cpu").scores(SENTENCES)
    with simulated_gpu() as gpu:
        model = load_scorer(specification, device="cuda")
        gpu.operations = 0
        assert model.scores(SENTENCES) == pytest.approx(expected, abs=1e-5)
    assert gpu.operations > 20


def test_bfloat16_is_rounded_as_on_the_cpu(tiny_checkpoint: Folder) -> None:
    specification = tiny.specification(tiny_checkpoint, "gpt2")
    cpu_model = load_model(specification, device="cpu", dtype="bfloat16")
    exact = cpu_model.float32_log_probs(SENTENCES)
    with simulated_gpu():
        model = load_model(specification, device="cuda", dtype="bfloat16")
        rounded, ours = model.log_probs(SENTENCES), model.float32_log_probs(SENTENCES)
    assert ours == pytest.approx(exact, rel=1e-6)
    assert rounded == pytest.approx(exact, rel=0.02)
    assert (np.abs(rounded / exact - 1) > 1e-4).any()


@pytest.mark.parametrize(
    ("names", "shared"),
    [
        pytest.param(("gpt2", "bert@pll-original"), False, marks=pytest.mark.slow, id="alone"),
        pytest.param(("bert@pll-original", "gpt2"), True, id="in shared batches"),
    ],
)
def test_searches_equal_cpu(tiny_checkpoint: Folder, names: tuple[str, str], shared: bool) -> None:
    specifications = [tiny.specification(tiny_checkpoint, name) for name in names]
    natural = Sentence.parse("She sleeps there.")
    words = Vocabulary.from_sentences([natural, *TEXTS[:4]])
    recipe = replace(DEFAULT, perturbation=None, restarts=SINGLE)  # one search of one round
    accept, reject = (load_model(name, device="cpu") for name in specifications)
    expected = synthesize(accept, reject, natural, words, recipe=recipe)
    batches = []

    def compute_twice(call: NetworkCall) -> Answer:
        """Compute the call in one batch with the same call of another search."""
        batches.append(call)
        return compute_all([call, call])[0]

    with simulated_gpu() as gpu, ExitStack() as stack:
        accept, reject = (load_model(name, device="cuda") for name in specifications)
        gpu.operations = 0
        if shared:
            stack.enter_context(runner(compute_twice))
            stack.enter_context(merged())
        result = synthesize(accept, reject, natural, words, recipe=recipe)
    assert gpu.operations > 1_000
    assert (len(batches) > 10) == shared
    assert result.synthetic == expected.synthetic != natural
    assert result.log_probs == pytest.approx(expected.log_probs, rel=1e-5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [n for n, a in ARCHITECTURES.items() if not a.refused])
def test_architectures_are_scored_correctly_on_a_gpu(name: str, tmp_path: Path) -> None:
    """Witness: a plain forward pass on the CPU; see `architectures`."""
    folder = save(name, tmp_path)
    with simulated_gpu():
        errors = compare(folder, "float32", device="cuda")
    assert errors.largest <= TOLERANCES["float32"] * errors.largest_score
