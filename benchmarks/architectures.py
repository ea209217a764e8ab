"""Which architectures of networks are scored right, which are refused, and how exactly.

    python benchmarks/architectures.py [--quick] [--all]

Tiny random checkpoints are saved to disk, loaded as every command loads them, and compared with
plain forward passes of one row in float32: log-probabilities of sentences in one batch, sentences
with a word replaced, upper bounds, and continuations (of masked networks, the mean over all
orders). Printed is the largest error as a share of the longest score, in float32 and bfloat16; in
less than float32 the witness has the same rounded weights. --quick takes three architectures; --all
also those of the installed transformers that small settings can be guessed for, in float32 alone.
"""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import torch
import transformers

from contstim.errors import ModelError
from contstim.models.checkpoints.source import UnavailableError

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.models.architectures import (
    ARCHITECTURES,
    TOLERANCES,
    Architecture,
    compare,
    save,
)

if TYPE_CHECKING:
    from contstim.models.loading import Precision

QUICK = ("GPT-2", "BERT", "XLNet")
MOST_WEIGHTS = 5_000_000  # of a network whose settings were guessed
SMALL: dict[str, Any] = {
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "emb_dim", "dim", "embedding_size"), 32),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "num_layers", "n_layers"), 2),
    **dict.fromkeys(("encoder_layers", "decoder_layers", "num_decoder_layers"), 2),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads"), 4),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 4),
    **dict.fromkeys(("intermediate_size", "hidden_dim", "ffn_dim", "d_ff", "d_inner"), 48),
    **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim", "ffn_hidden_size", "block_ff_dim"), 48),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"), 4),
    **dict.fromkeys(("num_experts_per_tok", "moe_k", "moe_topk"), 2),
    **dict.fromkeys(("moe_intermediate_size", "shared_expert_intermediate_size"), 16),
    **dict.fromkeys(("n_group", "topk_group", "n_shared_experts", "first_k_dense_replace"), 1),
    **dict.fromkeys(("sliding_window", "attention_window_size", "local_attention"), 4),
    **dict.fromkeys(("head_dim", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim"), 8),
    **dict.fromkeys(("v_head_dim", "state_size", "ssm_state_size", "mamba_d_state"), 8),
    **dict.fromkeys(("linear_key_head_dim", "linear_value_head_dim"), 8),
    **dict.fromkeys(("mamba_n_heads", "mamba_num_heads", "linear_num_value_heads"), 4),
    **dict.fromkeys(("mamba_d_head", "mamba_head_dim", "q_lora_rank"), 16),
    **dict.fromkeys(("word_embed_proj_dim", "attention_hidden_size", "lru_width"), 32),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "mamba_d_ssm"), 64),
    **dict.fromkeys(("pad_token_id", "padding_idx", "pad_index"), 2),
    "num_key_value_heads": 2,
    "linear_num_key_heads": 2,
    "mamba_n_groups": 1,
    "n_groups": 1,
    "rotary_dim": 4,
    "hidden_size_per_layer_input": 8,
    "vocab_size_per_layer_input": 100,
}
"""What configurations call their sizes, and sizes that fit together."""

hf: Any = transformers


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="three architectures: a smoke run")
    parser.add_argument("--all", action="store_true", help="also those with guessed settings")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    hf.utils.logging.disable_progress_bar()
    hf.utils.logging.set_verbosity_error()

    print("| architecture | | float32 | bfloat16 |")
    print("| --- | --- | --- | --- |")
    for name in QUICK if options.quick else ARCHITECTURES:
        with TemporaryDirectory() as folder:
            save(name, Path(folder))
            print(f"| {name} | {' | '.join(outcomes(Path(folder)))} |", flush=True)
    if options.all:
        print_guessed()


def outcomes(folder: Path) -> list[str]:
    """Right, wrong or refused, and the error in both precisions."""
    precisions: tuple[Precision, ...] = ("float32", "bfloat16")
    verdict, cells = "right", []
    for precision in precisions:
        try:
            errors = compare(folder, precision)
        except ModelError as error:
            reason = re.sub(r"^(\([^)]*\) )", "", str(error).removeprefix(f"{folder} "))
            cells.append(re.split(r"[:;,.]| although", reason)[0])
            if precision == "float32":
                return ["refused", *cells, ""]
            continue
        share = errors.largest / errors.longest
        cells.append(f"{share:.0e}")
        if share > TOLERANCES[precision]:
            verdict = "wrong"
    return [verdict, *cells]


def print_guessed() -> None:
    """Compare every causal and masked network of the library that small settings fit."""
    auto = hf.models.auto
    causal, masked = (
        auto.modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        auto.modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    )
    pairs = [*causal.items(), *(pair for pair in masked.items() if pair not in causal.items())]
    counts: dict[str, int] = {}
    print("\nwith guessed settings, float32:")
    for kind, head in pairs:
        config = auto.configuration_auto.CONFIG_MAPPING_NAMES.get(kind, "")
        with TemporaryDirectory() as folder:
            try:
                outcome = guessed(head, config, Path(folder))
            except UnavailableError as error:  # the settings do not fit together
                outcome = f"not built: {str(error)[-60:]}"
            except ModelError as error:
                outcome = f"refused: {str(error).removeprefix(f'{folder} ')[:90]}"
            except Exception as error:  # the guess fits no network
                outcome = f"not built: {type(error).__name__}"
        first = outcome.partition(":")[0].partition(" ")[0]
        counts[first] = counts.get(first, 0) + 1
        print(f"{kind:26} {head:38} {outcome}", flush=True)
    print(", ".join(f"{n} {outcome}" for outcome, n in sorted(counts.items())))


def guessed(head: str, config: str, folder: Path) -> str:
    """The outcome of a network with guessed settings."""
    kind = getattr(hf, config)
    names = kind().to_dict()
    settings = {name: size for name, size in SMALL.items() if name in names}
    if names.get("num_key_value_heads") == names.get("num_attention_heads"):
        settings |= {"num_key_value_heads": 4} if "num_key_value_heads" in names else {}
    with torch.device("meta"):
        network = getattr(hf, head)(kind(**{"vocab_size": 100, **settings}))
    if sum(weight.numel() for weight in network.parameters()) > MOST_WEIGHTS:
        return "not built: too large"
    ARCHITECTURES[kind.__name__] = Architecture(head, config, settings)
    save(kind.__name__, folder)
    errors = compare(folder, "float32")
    share = errors.largest / errors.longest
    return f"{'right' if share <= TOLERANCES['float32'] else 'wrong'} {share:.0e}"


if __name__ == "__main__":
    main()
