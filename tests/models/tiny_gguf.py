"""A tiny Llama as a GGUF file with 8-bit weights, and as a folder with the same weights."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from numpy.typing import NDArray

from tests.models.tiny import CONTEXT

Weights = NDArray[np.float32]

hf: Any = transformers
_HEADS, _WIDTH = 2, 64
_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "model.layers": "blk",
}


def build(folder: Path, tokenizer_folder: Path, *, seed: int = 0) -> tuple[Path, Path]:
    """Write `model.gguf` and the folder `converted`.

    Weights are quantized and dequantized by the package `gguf`, and those of queries and keys are
    stored in the order of llama.cpp: the halves of each rotated pair next to each other.
    The tokenizer of `tokenizer_folder` has byte-level BPE.
    """
    gguf = pytest.importorskip("gguf")
    tokenizer = hf.AutoTokenizer.from_pretrained(tokenizer_folder)
    network = _make_network(tokenizer, seed)
    writer = gguf.GGUFWriter(folder / "model.gguf", "llama")
    _write_configuration(writer, network.config)
    _write_tokenizer(writer, tokenizer)
    kind = gguf.GGMLQuantizationType.Q8_0
    state = network.state_dict()
    for name, weight in state.items():
        if name == "lm_head.weight":  # tied to the embedding
            continue
        values = weight.numpy()
        if values.ndim == 1:
            writer.add_tensor(_gguf_name(name), values)
            continue
        rotated = "q_proj" in name or "k_proj" in name
        stored = gguf.quants.quantize(_interleave(values) if rotated else values, kind)
        writer.add_tensor(_gguf_name(name), stored, raw_dtype=kind)
        dequantized = gguf.quants.dequantize(stored, kind)
        weight.copy_(torch.from_numpy(_separate(dequantized) if rotated else dequantized))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    network.save_pretrained(folder / "converted")
    tokenizer.save_pretrained(folder / "converted")
    return folder / "model.gguf", folder / "converted"


def _make_network(tokenizer: Any, seed: int) -> Any:
    torch.manual_seed(seed)
    return hf.LlamaForCausalLM(
        hf.LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=_WIDTH,
            intermediate_size=2 * _WIDTH,
            num_hidden_layers=2,
            num_attention_heads=_HEADS,
            max_position_embeddings=CONTEXT,
            initializer_range=0.3,
            tie_word_embeddings=True,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
        )
    )


def _write_configuration(writer: Any, config: Any) -> None:
    writer.add_name("tiny")
    writer.add_vocab_size(config.vocab_size)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])


def _write_tokenizer(writer: Any, tokenizer: Any) -> None:
    model = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    tokens = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().__getitem__)
    special = set(tokenizer.all_special_tokens)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token in special else 1 for token in tokens])
    writer.add_token_merges([" ".join(pair) for pair in model["merges"]])
    writer.add_bos_token_id(tokenizer.bos_token_id)
    writer.add_eos_token_id(tokenizer.eos_token_id)


def _gguf_name(name: str) -> str:
    for theirs, ours in _NAMES.items():
        name = name.replace(theirs, ours)
    return name


def _interleave(weight: Weights) -> Weights:
    """Return the rows of each head in the order 0, n/2, 1, n/2 + 1, …, of n rows."""
    rows = weight.reshape(_HEADS, 2, -1, weight.shape[1])
    return np.ascontiguousarray(rows.swapaxes(1, 2).reshape(weight.shape))


def _separate(weight: Weights) -> Weights:
    """Undo `_interleave`."""
    rows = weight.reshape(_HEADS, -1, 2, weight.shape[1])
    return np.ascontiguousarray(rows.swapaxes(1, 2).reshape(weight.shape))
