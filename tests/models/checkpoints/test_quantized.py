"""Quantized networks; GGUF files against weights that the package `gguf` reads."""

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from contstim.errors import ModelError
from contstim.files.arrays import FloatArray
from contstim.models import loading as loading_module
from contstim.models.catalog import check_model, load_model, load_scorer
from contstim.models.checkpoints import load_checkpoint
from contstim.models.loading import Loading
from contstim.models.specifications import parse_model
from contstim.models.tensors import placement_options
from contstim.words.sentence import Sentence
from tests.models import tiny, tiny_gguf
from tests.models.checkpoints.conftest import SENTENCES, score
from tests.models.tiny import Folder

hf: Any = transformers
FOUR = [Sentence.parse(text) for text in tiny.TEXTS[:4]]

needs_library = pytest.mark.skipif(
    find_spec("bitsandbytes") is None or find_spec("accelerate") is None,
    reason="needs contstim[big]",
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Checkpoints with rows in blocks of 64 weights, as four-bit quantization requires."""
    root = tmp_path_factory.mktemp("quantized")
    folder_by_name = {}
    for name, build in (("gpt2", tiny.small_gpt2), ("bert", tiny.small_bert)):
        _, tokenizer = tiny.BUILDERS[name]()
        torch.manual_seed(1)
        network = build(len(tokenizer), width=64, layers=2, heads=4)
        with torch.no_grad():
            for weight in network.parameters():
                if weight.ndim > 1:
                    weight.normal_(std=0.15)
        network.save_pretrained(root / name)
        tokenizer.save_pretrained(root / name)
        folder_by_name[name] = root / name
    return folder_by_name


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("quantize", ["int8", "int4"])
def test_quantization_options_of_the_library(
    monkeypatch: pytest.MonkeyPatch, quantize: Any, dtype: Any
) -> None:
    monkeypatch.setattr(loading_module, "find_spec", lambda _: object())
    loading = Loading(device="cpu", dtype=dtype, quantize=quantize)
    settings = placement_options(loading.resolved(), "")
    quantization = settings["quantization_config"]
    assert (quantization.load_in_8bit, quantization.load_in_4bit) == (
        quantize == "int8",
        quantize == "int4",
    )
    assert quantization.bnb_4bit_quant_type == "nf4"
    assert quantization.bnb_4bit_compute_dtype == getattr(torch, dtype)
    assert settings["device_map"] == {"": "cpu"}
    assert settings["dtype"] == dtype
    loading = Loading(dtype=dtype, device_map="auto", quantize=quantize)
    mapped = placement_options(loading.resolved(), "folder")
    assert mapped["device_map"] == "auto"


@needs_library
@pytest.mark.parametrize(("quantize", "max_error"), [("int8", 0.02), ("int4", 0.15)])
@pytest.mark.parametrize("name", ["gpt2", "bert@pll-original"])
def test_quantized_network_scores_nearly_like_the_full_network(
    folders: dict[str, Path], name: str, quantize: Any, max_error: float
) -> None:
    """Witness: the full network; int8 keeps weights to 1/250 of their row, int4 to about 1/12."""
    specification = tiny.specification(folders.__getitem__, name)
    full = load_model(specification, device="cpu")
    small = load_model(specification, device="cpu", quantize=quantize)
    ours, theirs = small.log_probs(FOUR), full.log_probs(FOUR)
    assert np.abs(ours - theirs).max() < max_error * np.abs(theirs).max()
    assert np.abs(ours - theirs).max() > 1e-4
    assert small.convention.precision == f"{quantize} with float32"
    assert small.convention.tolerance >= full.convention.tolerance
    # Search results are scored again, which must succeed with the same scores
    rescored = [small.float32_log_probs([sentence])[0] for sentence in FOUR]
    assert rescored == pytest.approx(ours, rel=small.convention.tolerance, abs=1e-4)


@pytest.fixture(scope="module")
def files(tiny_checkpoint: Folder, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A GGUF file and the folder with the same weights."""
    return tiny_gguf.build(tmp_path_factory.mktemp("gguf"), tiny_checkpoint("gpt2"))


@pytest.fixture
def folder(files: tuple[Path, Path], tmp_path: Path) -> Path:
    """A new folder with the GGUF file only."""
    shutil.copyfile(files[0], tmp_path / "tiny.gguf")
    return tmp_path


@pytest.fixture(scope="module")
def expected(files: tuple[Path, Path]) -> FloatArray:
    return score(files[1])


@pytest.mark.parametrize("form", ["hf:{0}/tiny.gguf", "{0}/tiny.gguf", "hf:{0}", "{0}"])
def test_scores_equal_those_of_dequantized_weights(
    folder: Path, expected: FloatArray, form: str, capfd: pytest.CaptureFixture[str]
) -> None:
    capfd.readouterr()
    model = load_model(form.format(folder), device="cpu")
    assert capfd.readouterr() == ("", "")
    np.testing.assert_allclose(model.log_probs(SENTENCES), expected, rtol=0, atol=1e-4)
    assert model.convention.precision == "float32"


def test_fingerprints_depend_on_weights_not_names(
    folder: Path, tiny_checkpoint: Folder, tmp_path: Path
) -> None:
    """Property: a renamed file is the same model; other weights are another model."""
    renamed = tmp_path / "renamed.GGUF"
    shutil.copyfile(folder / "tiny.gguf", renamed)
    (tmp_path / "other").mkdir()
    other_weights, _ = tiny_gguf.build(tmp_path / "other", tiny_checkpoint("gpt2"), seed=1)
    first, second, third = (
        load_checkpoint(str(path), Loading(device="cpu")).fingerprint
        for path in (folder / "tiny.gguf", renamed, other_weights)
    )
    assert first == second != third


def test_one_of_several_files_must_be_named(folder: Path) -> None:
    shutil.copyfile(folder / "tiny.gguf", folder / "second.gguf")
    with pytest.raises(ModelError, match=r"second\.gguf, tiny\.gguf.*hf:.*second\.gguf") as error:
        load_model(f"hf:{folder}")
    assert str(folder) in str(error.value)
    load_checkpoint(str(folder / "second.gguf"), Loading(device="cpu", weights=False))


@pytest.mark.parametrize(
    ("share", "is_quick"), [(0.0, True), (3e-5, True), (0.3, False), (0.6, False), (0.999, False)]
)
def test_truncated_file_is_refused(folder: Path, share: float, is_quick: bool) -> None:
    file = folder / "tiny.gguf"
    content = file.read_bytes()
    file.write_bytes(content[: int(share * len(content))])
    if is_quick:
        with pytest.raises(ModelError, match=r"tiny\.gguf.*Download it again"):
            check_model(parse_model(str(file)))
    with pytest.raises(ModelError, match=r"tiny\.gguf.*Download .* again"):
        load_model(str(file))


@pytest.mark.parametrize(
    ("specification", "message"),
    [
        ("hf:{}/missing.gguf", r"missing\.gguf"),
        ("hf:{}/tiny-00001-of-00003.gguf", "one part"),
        ("classifier:{}/tiny.gguf", "causal model"),
        ("hf:{}/tiny.gguf@pll-word-l2r", "causal model"),
        ("hf:{}/notes.txt", "is a file"),
    ],
)
def test_unusable_gguf_paths_are_refused(folder: Path, specification: str, message: str) -> None:
    shutil.copyfile(folder / "tiny.gguf", folder / "tiny-00001-of-00003.gguf")
    (folder / "notes.txt").write_text("")
    with pytest.raises(ModelError, match=message):
        load_scorer(specification.format(folder), device="cpu")


def test_quantizing_a_gguf_file_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading_module, "find_spec", lambda name: name)
    with pytest.raises(ModelError, match="quantize must be empty"):
        load_model(str(folder / "tiny.gguf"), device="cpu", quantize="int8")
