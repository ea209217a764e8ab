"""Causal networks read what came before and nothing else; masked ones read both sides.

The witness is the mathematics of the kind: the probability of the next token cannot depend on what
follows.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from contstim.errors import ModelError
from contstim.models.checkpoints import load_checkpoint
from contstim.models.loading import Loading
from tests.models import tiny
from tests.models.checkpoints.conftest import Copy, edit

hf: Any = transformers

SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
}
LEFT_TO_RIGHT: dict[str, Callable[[int], Any]] = {
    "mamba": lambda n: hf.MambaForCausalLM(
        hf.MambaConfig(vocab_size=n, hidden_size=32, num_hidden_layers=2, state_size=4)
    ),
    "mamba2": lambda n: hf.Mamba2ForCausalLM(
        hf.Mamba2Config(
            vocab_size=n,
            hidden_size=32,
            num_hidden_layers=2,
            num_heads=4,
            head_dim=16,
            n_groups=1,
            state_size=8,
        )
    ),
    "rwkv": lambda n: hf.RwkvForCausalLM(
        hf.RwkvConfig(vocab_size=n, hidden_size=32, num_hidden_layers=2, attention_hidden_size=32)
    ),
    "mixtral": lambda n: hf.MixtralForCausalLM(
        hf.MixtralConfig(
            vocab_size=n,
            **SIZES,
            num_key_value_heads=2,
            num_local_experts=4,
            num_experts_per_tok=2,
            sliding_window=4,
        )
    ),
    "mpt": lambda n: hf.MptForCausalLM(
        hf.MptConfig(vocab_size=n, d_model=32, n_heads=4, n_layers=2, max_seq_len=16)
    ),
    "bloom": lambda n: hf.BloomForCausalLM(
        hf.BloomConfig(vocab_size=n, hidden_size=32, n_layer=2, n_head=4)
    ),
    "opt": lambda n: hf.OPTForCausalLM(
        hf.OPTConfig(
            vocab_size=n,
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            ffn_dim=64,
            max_position_embeddings=64,
            word_embed_proj_dim=32,
        )
    ),
}


def _save(model: Any, tokenizer_of: Path, out: Path) -> Path:
    shutil.copytree(tokenizer_of, out, ignore=shutil.ignore_patterns("*.safetensors", "config*"))
    model.save_pretrained(out)
    return out


@pytest.mark.parametrize("kind", LEFT_TO_RIGHT)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_networks_that_read_from_left_to_right_are_loaded(
    tiny_checkpoint: Callable[[str], Path], tmp_path: Path, kind: str, dtype: Any
) -> None:
    """With weights as they are drawn first, of which the words before change least."""
    torch.manual_seed(0)
    folder = _save(LEFT_TO_RIGHT[kind](400), tiny_checkpoint("gpt2"), tmp_path / kind)
    assert load_checkpoint(str(folder), Loading(device="cpu", dtype=dtype)).kind == "causal"


@pytest.mark.parametrize("kind", sorted(tiny.BUILDERS))
def test_the_probe_passes_sound_networks_in_half_precision(
    tiny_checkpoint: Callable[[str], Path], kind: str
) -> None:
    load_checkpoint(str(tiny_checkpoint(kind)), Loading(device="cpu", dtype="bfloat16"))


def test_xlnet_is_no_causal_model(tiny_checkpoint: Callable[[str], Path], tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = hf.XLNetLMHeadModel(
        hf.XLNetConfig(vocab_size=400, d_model=32, n_layer=2, n_head=4, d_inner=64)
    )
    folder = _save(model, tiny_checkpoint("gpt2"), tmp_path / "xlnet")
    with pytest.raises(
        ModelError, match=r"not a causal language model: its predictions of a word depend"
    ):
        load_checkpoint(str(folder), Loading(device="cpu"))


def test_bert_is_causal_only_as_a_decoder(
    tiny_checkpoint: Callable[[str], Path], tmp_path: Path
) -> None:
    torch.manual_seed(0)
    config = hf.BertConfig(vocab_size=220, **SIZES, is_decoder=True)
    folder = _save(hf.BertLMHeadModel(config), tiny_checkpoint("bert"), tmp_path / "bert")
    assert load_checkpoint(str(folder), Loading(device="cpu")).kind == "causal"
    edit(folder / "config.json", is_decoder=False)
    with pytest.raises(ModelError, match=r"BERT without is_decoder"):
        load_checkpoint(str(folder), Loading(device="cpu"))


def test_a_masked_network_that_reads_one_side_is_refused(copy: Copy) -> None:
    folder = copy("bert")
    edit(folder / "config.json", is_decoder=True)
    with pytest.raises(ModelError, match="does not depend on the words that follow"):
        load_checkpoint(str(folder), Loading(device="cpu"))
