"""Tiny random checkpoints of many architectures, with plain forward passes as the witness.

All share a tokenizer of a hundred tokens, which puts `<s>` before a text and `</s>` after it. The
witness loads a checkpoint with `from_pretrained` and reads one row at a time, without batches,
padding, caches or code of contstim.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer, decoders, pre_tokenizers, processors, trainers
from tokenizers import models as tokenizer_models

from contstim.files.arrays import FloatArray
from contstim.models.base import Continuation, LanguageModel
from contstim.models.catalog import load_model
from contstim.models.loading import Device, Precision
from contstim.words.sentence import Sentence
from tests.models.tiny import TEXTS

hf: Any = transformers

N_TOKENS = 100
WIDTH = 32
WINDOW = 4
"""Tokens in a sliding window and in local attention, fewer than in most sentences here."""

_SIZES: dict[str, Any] = {"hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 4}
_SIZES |= {"intermediate_size": 48, "max_position_embeddings": 64}
_GROUPED = {**_SIZES, "num_key_value_heads": 2}
_HEADS = {**_GROUPED, "head_dim": 8}
_LAYERS = {"hidden_size": WIDTH, "n_layer": 2, "n_head": 4}
_EMBEDDED = {"n_embd": WIDTH, "n_layer": 2, "n_head": 4, "n_positions": 64}
_STATES = {"hidden_size": WIDTH, "num_hidden_layers": 2, "state_size": 4}
_EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
_LINEAR = {"linear_num_key_heads": 2, "linear_num_value_heads": 4}
_LINEAR |= {"linear_key_head_dim": 8, "linear_value_head_dim": 8}


@dataclass(frozen=True)
class Architecture:
    """A network of `transformers`, given by the names of its classes."""

    head: str  # class of the network
    config: str  # class of its configuration
    settings: dict[str, Any]  # of the configuration, except the vocabulary
    # Expected error message; empty if the scores must be right
    refused: str = ""
    # Precisions that the library cannot compute and contstim must refuse
    unsupported: tuple[Precision, ...] = ()


def _settings(sizes: dict[str, Any], numbers: str) -> dict[str, Any]:
    return sizes | {name: int(value) for name, value in (n.split("=") for n in numbers.split())}


def _causal(stem: str, sizes: dict[str, Any], numbers: str = "", config: str = "") -> Architecture:
    return Architecture(f"{stem}ForCausalLM", config or f"{stem}Config", _settings(sizes, numbers))


def _masked(
    stem: str,
    sizes: dict[str, Any],
    numbers: str = "",
    refused: str = "",
    unsupported: tuple[Precision, ...] = (),
) -> Architecture:
    settings = _settings(sizes, numbers)
    return Architecture(f"{stem}ForMaskedLM", f"{stem}Config", settings, refused, unsupported)


_READS_LATER_WORDS = "not a causal language model: its predictions of a word depend on later words"
_READS_PADDING = "reads the padding tokens of a batch"
_NEITHER_KIND = "neither a causal nor a masked language model"
_HALF_PRECISIONS: tuple[Precision, ...] = ("bfloat16", "float16")
_SLIDING = f"sliding_window={WINDOW}"
_LOCAL_EXPERTS = f"num_local_experts=4 num_experts_per_tok=2 {_SLIDING}"
_ALTERNATING_LAYERS = {"layer_types": ["sliding_attention", "full_attention"]}
_RELATIVE = {**_SIZES, "relative_attention": True, "pos_att_type": ["c2p", "p2c"]}

ARCHITECTURES: dict[str, Architecture] = {
    "GPT-2": Architecture("GPT2LMHeadModel", "GPT2Config", _EMBEDDED),
    "GPT-NeoX (Pythia)": _causal("GPTNeoX", _SIZES),
    "GPT-Neo": _causal(
        "GPTNeo",
        {"attention_types": [[["global", "local"], 1]], "hidden_size": WIDTH},
        f"num_layers=2 num_heads=4 window_size={WINDOW} max_position_embeddings=64",
    ),
    "GPT-J": _causal("GPTJ", _EMBEDDED, "rotary_dim=4"),
    "OPT": _causal("OPT", _SIZES, f"ffn_dim=48 word_embed_proj_dim={WIDTH}"),
    "BLOOM": _causal("Bloom", _LAYERS),
    "Falcon": _causal("Falcon", _SIZES, "ffn_hidden_size=48"),
    "Falcon with ALiBi": _causal("Falcon", {**_SIZES, "alibi": True}, "ffn_hidden_size=48"),
    "MPT": _causal("Mpt", {}, f"d_model={WIDTH} n_heads=4 n_layers=2 max_seq_len=64"),
    "Phi": _causal("Phi", _SIZES),
    "Phi 3": _causal("Phi3", _GROUPED, f"{_SLIDING} pad_token_id=2"),
    "Llama": _causal("Llama", _GROUPED),
    "Mistral": _causal("Mistral", _GROUPED, _SLIDING),
    "Qwen 2": _causal("Qwen2", _GROUPED),
    "Qwen 3": _causal("Qwen3", _HEADS),
    "Gemma": _causal("Gemma", _HEADS),
    "Gemma 2": _causal("Gemma2", _HEADS, _SLIDING),
    "Gemma 3": _causal("Gemma3", _HEADS | _ALTERNATING_LAYERS, _SLIDING, "Gemma3TextConfig"),
    "OLMo 2": _causal("Olmo2", _GROUPED),
    "StableLM": _causal("StableLm", _GROUPED),
    "Granite": _causal("Granite", _GROUPED),
    "SmolLM 3": _causal("SmolLM3", _GROUPED),
    "Mixtral (experts)": _causal("Mixtral", _GROUPED, _LOCAL_EXPERTS),
    "Qwen 3 (experts)": _causal("Qwen3Moe", _HEADS | _EXPERTS),
    "OLMoE (experts)": _causal("Olmoe", _GROUPED | _EXPERTS),
    "GPT-OSS (experts)": _causal("GptOss", _HEADS | _ALTERNATING_LAYERS, _LOCAL_EXPERTS),
    "Moshi": _causal("Moshi", _GROUPED, f"num_key_value_heads=4 ffn_dim=48 {_SLIDING}"),
    "DeepSeek 3 (experts)": _causal(
        "DeepseekV3",
        _SIZES,
        "num_key_value_heads=4 n_routed_experts=4 num_experts_per_tok=2 n_group=1 topk_group=1 "
        "moe_intermediate_size=16 first_k_dense_replace=1 q_lora_rank=16 kv_lora_rank=8 "
        "qk_nope_head_dim=8 qk_rope_head_dim=8 v_head_dim=8",
    ),
    "Mamba": _causal("Mamba", _STATES),
    "Mamba 2": _causal(
        "Mamba2", _STATES, "state_size=8 num_heads=4 head_dim=16 n_groups=1 chunk_size=8"
    ),
    "RWKV": _causal(
        "Rwkv", {}, f"hidden_size={WIDTH} num_hidden_layers=2 attention_hidden_size={WIDTH}"
    ),
    "Jamba (hybrid)": _causal(
        "Jamba",
        {**_GROUPED, "use_mamba_kernels": False},
        "num_experts=2 attn_layer_period=2 attn_layer_offset=1 mamba_d_state=4 mamba_dt_rank=4",
    ),
    "Qwen 3 Next (hybrid)": _causal(
        "Qwen3Next",
        _HEADS | _EXPERTS | _LINEAR | {"layer_types": ["linear_attention", "full_attention"]},
        "shared_expert_intermediate_size=16",
    ),
    "BERT as a decoder": Architecture(
        "BertLMHeadModel", "BertConfig", {**_SIZES, "is_decoder": True}
    ),
    "BERT": _masked("Bert", _SIZES),
    "RoBERTa": _masked("Roberta", _SIZES),
    "XLM-R": _masked("XLMRoberta", _SIZES),
    "DistilBERT": _masked(
        "DistilBert",
        {},
        f"dim={WIDTH} n_layers=2 n_heads=4 hidden_dim=48 max_position_embeddings=64",
    ),
    "ALBERT": _masked("Albert", _SIZES, "embedding_size=16"),
    "ELECTRA": _masked("Electra", _SIZES, "embedding_size=16"),
    "DeBERTa": _masked("Deberta", _RELATIVE, unsupported=_HALF_PRECISIONS),
    "DeBERTa 2 and 3": _masked(
        "DebertaV2",
        _RELATIVE
        | {"share_att_key": True, "norm_rel_ebd": "layer_norm", "position_biased_input": False},
        "position_buckets=8",
    ),
    "ModernBERT": _masked(
        "ModernBert", _SIZES, f"local_attention={WINDOW} global_attn_every_n_layers=2"
    ),
    "MPNet": _masked("MPNet", _SIZES),
    "FNet": _masked(
        "FNet",
        {**_SIZES, "use_tpu_fourier_optimizations": False},
        refused=_READS_PADDING,
        unsupported=_HALF_PRECISIONS,
    ),
    "ConvBERT": _masked("ConvBert", _SIZES, "embedding_size=16", _READS_PADDING),
    "XLNet": Architecture(
        "XLNetLMHeadModel",
        "XLNetConfig",
        {"d_model": WIDTH, "n_layer": 2, "n_head": 4, "d_inner": 48},
        _READS_LATER_WORDS,
        _HALF_PRECISIONS,
    ),
    "BERT with a causal head": Architecture(
        "BertLMHeadModel", "BertConfig", _SIZES, _READS_LATER_WORDS
    ),
    "T5 (encoder and decoder)": Architecture(
        "T5ForConditionalGeneration",
        "T5Config",
        {"d_model": WIDTH, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4},
        _NEITHER_KIND,
    ),
    "BART (encoder and decoder)": Architecture(
        "BartForConditionalGeneration",
        "BartConfig",
        {"d_model": WIDTH}
        | {
            f"{side}_{size_name}": n
            for side in ("encoder", "decoder")
            for size_name, n in (("layers", 2), ("attention_heads", 4), ("ffn_dim", 48))
        },
        _NEITHER_KIND,
    ),
}


def save_tokenizer(folder: Path) -> Any:
    """Train and save the tokenizer of all architectures: byte pairs of lower-case letters."""
    special = {"bos": "<s>", "eos": "</s>", "pad": "<pad>", "unk": "<unk>", "mask": "<mask>"}
    backend = Tokenizer(tokenizer_models.BPE(unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=N_TOKENS, special_tokens=list(special.values()), show_progress=False
    )
    texts = [text.lower() for text in TEXTS] * 2
    backend.train_from_iterator([*texts, " ".join("abcdefghijklmnopqrstuvwxyz")], trainer)
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        special_tokens=[(token, backend.token_to_id(token)) for token in ("<s>", "</s>")],
    )
    tokenizer = hf.PreTrainedTokenizerFast(
        tokenizer_object=backend,
        model_input_names=["input_ids", "attention_mask"],
        model_max_length=64,
        cls_token="<s>",
        sep_token="</s>",
        **{f"{role}_token": token for role, token in special.items()},
    )
    tokenizer.save_pretrained(folder)
    return tokenizer


def save(name: str, folder: Path, *, sharpen: bool = True) -> Path:
    """Save a checkpoint of this architecture, a key of `ARCHITECTURES`, to a folder."""
    architecture = ARCHITECTURES[name]
    tokenizer = save_tokenizer(folder)
    ids = {f"{role}_token_id": getattr(tokenizer, f"{role}_token_id") for role in _ROLES}
    settings = {"vocab_size": len(tokenizer), **ids, **architecture.settings}
    config = getattr(hf, architecture.config)(**settings)
    torch.manual_seed(0)
    model = getattr(hf, architecture.head)(config)
    if sharpen:
        _sharpen(model)
    model.save_pretrained(folder)
    return folder


_ROLES = ("bos", "eos", "pad", "cls", "sep", "mask")


@torch.no_grad()
def _sharpen(model: torch.nn.Module) -> None:
    """Draw matrices at a scale where a word changes log-probabilities by nats.

    Other weights, such as the decay rates of recurrent networks, keep their initial values.
    """
    for name, weight in model.named_parameters():
        is_state = any(part in name for part in ("A_log", "conv", "time_", "lru", "rg_lru"))
        if weight.ndim >= 2 and not is_state:
            weight.normal_(std=0.5 if "emb" in name or "wte" in name else 1.5 * WIDTH**-0.5)


SENTENCES = tuple(
    Sentence(tuple(text.split()))
    for text in ("she was here", "the old teacher often reads the letters", "birds sing")
)
"""Sentences of several lengths, so that rows are padded; most exceed a sliding window."""

SHORT_SENTENCES = (Sentence(("she", "was")),)
"""A sentence with few orders of uncovering tokens, because the witness tries all of them."""

CANDIDATES = ("dogs", "the", "neighbour")
"""Words of one to many tokens."""

TOLERANCES: dict[Precision, float] = {"float32": 1e-6, "bfloat16": 1e-2}
"""Largest allowed difference from the witness, as a share of the largest score.

bfloat16 rounds to one part in 256 at every step and may route a token to other experts.
"""

POSITIONS = (0, 4, 6)
"""The first position, one beyond a sliding window, and the last, next to the end mark."""


class Witness:
    """Reads a checkpoint, rounded to `dtype`, in plain float32 passes of one row each."""

    def __init__(self, folder: Path, dtype: Precision) -> None:
        from transformers.models.auto import modeling_auto as auto

        config = hf.AutoConfig.from_pretrained(folder)
        causal = set(auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values())
        self.is_causal = config.architectures[0] in causal
        head = hf.AutoModelForCausalLM if self.is_causal else hf.AutoModelForMaskedLM
        self._network = head.from_pretrained(folder, dtype=dtype).float().eval()
        self._tokenizer = hf.AutoTokenizer.from_pretrained(folder)
        self._mask = self._tokenizer.mask_token_id
        self._passes: dict[tuple[int, ...], FloatArray] = {}  # log-probabilities by ids

    def scores(self, sentences: Sequence[Sentence]) -> FloatArray:
        """Return log-probabilities, or original pseudo-log-likelihoods if masked, nats."""
        score = self._log_likelihood if self.is_causal else self._pseudo_log_likelihood
        return np.array([score(sentence.text) for sentence in sentences])

    def continuations(self, items: Sequence[Continuation]) -> FloatArray:
        """Return log-probabilities of the words from a position on, nats."""
        parts = ((" ".join(s.words), " ".join(s.words[:start])) for s, start in items)
        return np.array([self._log_likelihood(text, context) for text, context in parts])

    def mean_over_orders(self, sentence: Sentence) -> float:
        """Return the mean over all orders of the words and of the tokens within each word, nats.

        In each order, one token after the other is uncovered.
        """
        ends = [len(self._ids(" ".join(sentence.words[:n]))) for n in range(len(sentence) + 1)]
        words = [range(1 + a, 1 + b) for a, b in pairwise(ends)]
        ids = self._ids_with_marks(sentence.text)
        totals = []
        for order in permutations(words):
            total, hidden = 0.0, {position for word in words for position in word}
            for word in order:
                scores = [self._uncover(ids, hidden, row) for row in permutations(word)]
                total += float(np.mean(scores))
                hidden = hidden - set(word)
            totals.append(total)
        return float(np.mean(totals))

    def _uncover(self, ids: list[int], hidden: set[int], positions: Sequence[int]) -> float:
        total = 0.0
        for position in positions:
            masked = [self._mask if i in hidden else token for i, token in enumerate(ids)]
            total += self._log_probs(masked)[position, ids[position]]
            hidden = hidden - {position}
        return total

    def _log_likelihood(self, text: str, context: str = "") -> float:
        first, ids = len(self._ids(context)), self._ids(text)
        log_probs = self._log_probs([self._tokenizer.bos_token_id, *ids[:-1]])
        return float(log_probs[np.arange(len(ids)), ids][first:].sum())

    def _pseudo_log_likelihood(self, text: str) -> float:
        ids = self._ids_with_marks(text)
        total = 0.0
        for position in range(1, len(ids) - 1):
            masked = [*ids[:position], self._mask, *ids[position + 1 :]]
            total += self._log_probs(masked)[position, ids[position]]
        return total

    def _log_probs(self, ids: list[int]) -> FloatArray:
        """Return log p of every token at every position, shape (n_tokens, N_TOKENS), nats."""
        key = tuple(ids)
        if key not in self._passes:
            settings = {"use_cache": False} if self.is_causal else {}
            with torch.inference_mode():
                logits = self._network(input_ids=torch.tensor([ids]), **settings).logits[0]
            self._passes[key] = torch.log_softmax(logits.double(), dim=-1).numpy()
        return self._passes[key]

    def _ids(self, text: str) -> list[int]:
        return list(self._tokenizer(text, add_special_tokens=False)["input_ids"])

    def _ids_with_marks(self, text: str) -> list[int]:
        return list(self._tokenizer(text)["input_ids"])


@dataclass(frozen=True)
class Errors:
    """Largest differences between a model and the witness by kind of score, nats."""

    log_probs: float  # of whole sentences, in one batch
    # Of sentences with a word replaced, at the first, a middle and the last position
    replaced: float
    bounds: float  # excess of the true score over an upper bound
    continued: float  # of continuations; for masked models, of the mean over all orders
    float32: float  # of whole sentences, computed in float32 in every precision
    largest_score: float  # largest of all compared scores, nats

    @property
    def largest(self) -> float:
        """The largest error in the model's own precision."""
        return max(self.log_probs, self.replaced, self.bounds, self.continued)


def compare(folder: Path, dtype: Precision, device: Device = "cpu") -> Errors:
    """Load a checkpoint with `load_model` and compare its scores with the witness."""
    model = load_model(f"hf:{folder}", device=device, dtype=dtype)
    witness = Witness(folder, dtype)
    if not witness.is_causal:
        model = load_model(f"hf:{folder}@pll-original", device=device, dtype=dtype)
    true_scores = witness.scores(SENTENCES)
    replacement_errors, shortfalls, largest_scores = [], [0.0], [float(np.abs(true_scores).max())]
    sentence = SENTENCES[1]
    for position in POSITIONS if witness.is_causal else POSITIONS[1:2]:
        expected = witness.scores([sentence.replace(position, word) for word in CANDIDATES])
        scores = model.replacement_log_probs(sentence, position, CANDIDATES)
        bounds = model.replacements(sentence, position, CANDIDATES).upper_bound
        replacement_errors.append(_largest_difference(scores - expected))
        shortfalls.append(float((expected - bounds).max()))
        largest_scores.append(float(np.abs(expected).max()))
    return Errors(
        _largest_difference(model.log_probs(SENTENCES) - true_scores),
        max(replacement_errors),
        max(shortfalls),
        _continuation_error(model, witness)
        if witness.is_causal
        else _order_error(folder, dtype, witness, device),
        _largest_difference(model.float32_log_probs(SENTENCES) - true_scores),
        max(largest_scores),
    )


def _continuation_error(model: LanguageModel, witness: Witness) -> float:
    items = [Continuation(s, start) for s in SENTENCES for start in range(len(s))]
    return _largest_difference(model.continuation_log_probs(items) - witness.continuations(items))


def _order_error(folder: Path, dtype: Precision, witness: Witness, device: Device) -> float:
    model = load_model(f"hf:{folder}@chain-unrestricted", device=device, dtype=dtype)
    true_scores = np.array([witness.mean_over_orders(sentence) for sentence in SHORT_SENTENCES])
    return _largest_difference(model.log_probs(SHORT_SENTENCES) - true_scores)


def _largest_difference(differences: FloatArray) -> float:
    return float(np.abs(differences).max())
