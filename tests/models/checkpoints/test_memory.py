"""Whether a network fits is said before it is loaded, and what would help."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
import torch
import transformers

from contstim.errors import ModelError
from contstim.models.batching import Budget
from contstim.models.checkpoints import load_checkpoint, memory
from contstim.models.checkpoints.devices import Placement
from contstim.models.checkpoints.memory import Need, check_memory, free_memory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Folder = Callable[[str], Path]

hf: Any = transformers

# Published sizes: Radford et al. (2019), Devlin et al. (2019) with its output layer, and the model
# card of Llama 3.1
PUBLISHED = [
    (lambda: hf.GPT2Config(), hf.GPT2LMHeadModel, 124_439_808),
    (lambda: hf.GPT2Config(n_embd=1600, n_layer=48, n_head=25), hf.GPT2LMHeadModel, 1_557_611_200),
    (
        lambda: hf.BertConfig(
            hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096
        ),
        hf.BertForMaskedLM,
        335_174_458,
    ),
    (
        lambda: hf.LlamaConfig(
            vocab_size=128_256,
            hidden_size=8192,
            intermediate_size=28_672,
            num_hidden_layers=80,
            num_attention_heads=64,
            num_key_value_heads=8,
        ),
        hf.LlamaForCausalLM,
        70_553_706_496,
    ),
]


@pytest.mark.parametrize(("config", "kind", "n_weights"), PUBLISHED)
def test_weights_are_counted_as_published(
    config: Callable[[], Any], kind: Any, n_weights: int
) -> None:
    with torch.device("meta"):
        network = kind(config())
    tables = sum(buffer.nbytes for buffer in network.buffers())
    assert Need.of(network, "float32").weights == 4 * n_weights + tables
    assert Need.of(network, "bfloat16").weights == 2 * n_weights + tables
    needs = [Need.of(network, "bfloat16", kind) for kind in (None, "int8", "int4")]
    assert sorted(needs, key=lambda need: -need.weights) == needs


@pytest.mark.parametrize("name", ["gpt2", "bert", "llama"])
def test_a_pass_takes_about_what_is_said(tiny_checkpoint: Folder, name: str) -> None:
    """Witness: all tensors that the operations of a pass return, counted as they are made."""
    from torch.utils import _python_dispatch

    mode: Any = _python_dispatch.TorchDispatchMode
    made: list[int] = []

    class Count(mode):  # type: ignore[misc]
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            result = func(*args, **(kwargs or {}))
            made.extend(
                tensor.nbytes
                for tensor in (result if isinstance(result, tuple) else (result,))
                if isinstance(tensor, torch.Tensor) and tensor._base is None
            )
            return result

    checkpoint = load_checkpoint(str(tiny_checkpoint(name)), device="cpu")
    ids = torch.ones((8, 16), dtype=torch.int64)
    with torch.inference_mode(), Count():
        torch.log_softmax(checkpoint.model(input_ids=ids).logits, dim=-1)
    said = ids.numel() * Need.of(checkpoint.model, "float32").a_token
    assert max(made) < said < sum(made) * 2


def test_a_network_that_does_not_fit_is_refused_before_it_is_loaded(
    tiny_checkpoint: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A copy: what another test has loaded and still uses would not be loaded again
    folder = shutil.copytree(tiny_checkpoint("gpt2"), tmp_path / "gpt2")
    monkeypatch.setattr(memory, "free_memory", lambda _: 100_000)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("its weights were loaded")

    monkeypatch.setattr(hf.GPT2LMHeadModel, "from_pretrained", refuse)
    with pytest.raises(ModelError) as refusal:
        load_checkpoint(str(folder), device="cpu", dtype="float32")
    message = str(refusal.value)
    assert "does not fit" in message
    assert "97.7 KiB" in message
    for way in ("--dtype bfloat16", "--quantize int8", "--quantize int4", "--device-map auto"):
        assert way in message


def test_what_fits_in_less_precision_is_loaded(
    tiny_checkpoint: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = str(shutil.copytree(tiny_checkpoint("gpt2"), tmp_path / "gpt2"))
    whole = load_checkpoint(location, device="cpu").model
    full, half = (Need.of(whole, dtype).least for dtype in ("float32", "bfloat16"))
    monkeypatch.setattr(memory, "free_memory", lambda _: (full + half) // 2)
    del whole
    assert load_checkpoint(location, device="cpu", dtype="bfloat16").model.dtype == torch.bfloat16


def test_a_gpu_s_memory_and_that_of_the_machine_are_told_apart(
    tiny_checkpoint: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = load_checkpoint(str(tiny_checkpoint("gpt2")), device="cpu").model
    need = Need.of(network, "float32")
    placement = Placement("cuda", "float32")
    for free, place in (
        ({"cuda": need.least, "cpu": need.weights}, ""),
        ({"cuda": need.least - 1, "cpu": need.weights}, "the device cuda are free"),
        ({"cuda": need.least, "cpu": need.weights - 1}, "this machine, through which"),
        ({"cuda": None, "cpu": None}, ""),  # systems that do not say what is free
    ):
        monkeypatch.setattr(memory, "free_memory", free.get)
        if place:
            with pytest.raises(ModelError, match=place):
                check_memory("big", network, placement)
        else:
            check_memory("big", network, placement)


def test_the_memory_of_a_job_is_bounded_by_its_control_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = tmp_path / "slurm" / "job_7"
    group.mkdir(parents=True)
    for folder, limit in ((tmp_path, "max"), (tmp_path / "slurm", "8000"), (group, "5000")):
        (folder / "memory.max").write_text(limit)
        (folder / "memory.current").write_text("3000")
        (folder / "memory.stat").write_text("anon 10\ninactive_file 500\ntotal_inactive_file 9\n")
    membership = tmp_path / "cgroup"
    membership.write_text("1:name=systemd:/\n0::/slurm/job_7\n")
    assert sorted(memory.left_in_groups(membership, tmp_path)) == [2500, 5500]
    assert memory.left_in_groups(tmp_path / "absent", tmp_path) == []
    monkeypatch.setattr(memory, "left_in_groups", lambda: [1])
    assert free_memory("cpu") == 1


def test_a_batch_is_part_of_the_message(
    tiny_checkpoint: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = load_checkpoint(str(tiny_checkpoint("bert")), device="cpu").model
    monkeypatch.setattr(memory, "free_memory", lambda _: 0)
    with pytest.raises(ModelError, match=f"a batch of {Budget.for_device('cpu').tokens:,} tokens"):
        check_memory("big", network, Placement("cpu", "float32"))


def test_memory_that_runs_out_while_loading_names_the_ways(
    tiny_checkpoint: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other programs may take what was free a moment before."""

    def fail(*_: object, **__: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    monkeypatch.setattr(hf.AutoModelForMaskedLM, "from_pretrained", fail)
    with pytest.raises(ModelError, match=r"needs more memory .* --quantize int8 or int4, --device"):
        load_checkpoint(str(tiny_checkpoint("albert")), device="cpu", dtype="bfloat16")
