"""The mixture over orders beside its lower bound, the mean over orders.

    python benchmarks/mixture.py [--quick] [--model bert-mini] [--sentences 20] [--longest 3]

Runs on $CONTSTIM_MODELS/bert-mini, or on any folder of a masked model, and on sentences of the
held-out text in $CONTSTIM_DATA, or else of the embedded English, whose words have one token each.
Prints

* how far the mixture is above the chain (their gap), by number of words, all orders exactly;
* the time of twelve words in 4,095 contexts, and that of the sums alone;
* the error of 128 random orders, as papers on masked diffusion use them: the mean of their
  log-probabilities, and the log of their mean probability, against all orders;
* how well drafts and estimates rank words at a position, under both rules.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
import torch
from inputs import DATA, MODELS
from scipy.stats import spearmanr

from contstim.english import generate
from contstim.models.checkpoints import load_checkpoint
from contstim.models.loading import Loading
from contstim.models.masked.adapter import MaskedModel
from contstim.models.masked.plan import mixed
from contstim.models.masked.rules import orders_plan
from contstim.words.corpus import read_sentences

if TYPE_CHECKING:
    from contstim.models.masked.plan import Plan
    from contstim.words.sentence import Sentence

N_ORDERS, N_SEEDS, LONGEST = 128, 50, 12


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--model", default=str(MODELS / "bert-mini"), help="folder of the model")
    parser.add_argument("--sentences", type=int, default=20, help="of each length")
    parser.add_argument("--longest", type=int, default=3, help="sentences of twelve words")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="two short sentences: a smoke run")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if not Path(options.model).is_dir():
        print(f"skipped: no {options.model} (set CONTSTIM_MODELS)")
        return
    checkpoint = load_checkpoint(options.model, Loading(device="cpu"))
    model = MaskedModel(checkpoint, rule="chain-mixture", pass_budget=2**LONGEST - 1)
    lengths = (3, 4) if options.quick else (4, 6, 8, 10)
    sentences = single_tokens(model)
    print(f"{Path(options.model).name}: chain-mixture less chain, nats (one token a word)")
    print("words  sentences  chain    mixture  gap: mean  smallest  largest  a word")
    for n_words in lengths:
        gaps(
            model, n_words, sentences.get(n_words, [])[: 2 if options.quick else options.sentences]
        )
    longest = max(lengths) if options.quick else LONGEST
    chosen = sentences.get(longest, [])[: 1 if options.quick else options.longest]
    gaps(model, longest, chosen)
    orders(model, longest, chosen)
    if options.quick:
        ranking(model, sentences[4][:1], 3)
    else:
        ranking(model, sentences[6][:4], 40)


def single_tokens(model: MaskedModel) -> dict[int, list[Sentence]]:
    """Sentences whose words have one token each, by the number of words."""
    text = DATA / "text" / "openstax.heldout.txt"
    many = list(read_sentences(text)) if text.is_file() else generate(4_000, seed=0)
    chosen: dict[int, list[Sentence]] = {}
    for sentence, reason in zip(many, model.unscorable(many), strict=True):
        plain = len(sentence) <= LONGEST and sentence.bare.replace(" ", "").isalpha()
        if plain and not reason and model.token_counts([sentence])[0] == len(sentence):
            chosen.setdefault(len(sentence), []).append(sentence)
    return chosen


def gaps(model: MaskedModel, n_words: int, sentences: list[Sentence]) -> None:
    """Exact mixtures of some sentences against the exact chain."""
    if not sentences:
        return
    start = perf_counter()
    mixtures = model.log_probs(sentences)
    seconds = (perf_counter() - start) / len(sentences)
    bounds = model.lower_bounds(sentences)
    assert bounds is not None
    gap = mixtures - bounds
    print(
        f"{n_words:5d}  {len(sentences):9d}  {bounds.mean():7.2f}  {mixtures.mean():7.2f}  "
        f"{gap.mean():9.3f}  {gap.min():8.3f}  {gap.max():7.3f}  {gap.mean() / n_words:6.3f}"
        f"   {2**n_words - 1:,} contexts, {seconds:.2f} s a sentence"
    )


def orders(model: MaskedModel, n_words: int, sentences: list[Sentence]) -> None:
    """The error of random orders against all of them, from the same answers."""
    means, logs, bounds = [], [], []
    passes = 0
    encodings = model._encode(sentences)
    answered = model._network.answer(encodings, model._plan)
    for encoding, (plan, answers) in zip(encodings, answered, strict=True):
        start = perf_counter()
        exact = plan.score(answers)
        seconds = perf_counter() - start
        table = dict(zip(questions(plan), answers.tolist(), strict=True))
        for seed in range(N_SEEDS):
            sample = mixed(orders_plan(encoding.word_of, seed, N_ORDERS))
            values = np.array([table[question] for question in questions(sample)])
            means.append(sample.weight @ values - exact)
            bounds.append(sample.weight @ values - plan.weight @ answers)
            logs.append(sample.score(values) - exact)
            passes = max(passes, len(sample.hidden))
    if not means:
        return
    print(f"{n_words} words: the sum over all contexts takes {1000 * seconds:.1f} ms of that time")
    print(
        f"{N_ORDERS} random orders ({passes:,} contexts at most), {N_SEEDS} times for each sentence"
    )
    for what, errors in (
        ("mean of log-probabilities, against the mixture", means),
        ("mean of log-probabilities, against the chain", bounds),
        ("log of mean probability, against the mixture", logs),
    ):
        print(
            f"    {what:50s} error: mean {np.mean(errors):7.3f}, root mean square "
            f"{np.sqrt(np.mean(np.square(errors))):6.3f} nats"
        )


def questions(plan: Plan) -> list[tuple[bytes, int]]:
    """The hidden tokens, and the token in question, of each question."""
    hidden = [row.tobytes() for row in plan.hidden]
    return [(hidden[r], t) for r, t in zip(plan.row.tolist(), plan.token.tolist(), strict=True)]


def ranking(model: MaskedModel, sentences: list[Sentence], n_words: int) -> None:
    """Rank correlation of cheap scores of words with their exact scores, over positions."""
    vocabulary = sorted(model.checkpoint.tokenizer.get_vocab())
    words = [token for token in vocabulary if token.isalpha() and token.islower()]
    words = words[:: max(1, len(words) // n_words)][:n_words]
    for rule in ("chain", "chain-mixture"):
        same = MaskedModel(model.checkpoint, rule=rule)
        drafts = {f"draft {effort}": same.draft(effort) for effort in (0, 1, 2)}
        agreement: dict[str, list[float]] = {}
        start = perf_counter()
        for sentence in sentences:
            position = len(sentence) // 2
            exact = same.replacement_log_probs(sentence, position, words)
            cheap = {"estimate": same.replacements(sentence, position, words).estimate}
            for name, draft in drafts.items():
                assert draft is not None
                cheap[name] = draft.replacement_log_probs(sentence, position, words)
            for name, scores in cheap.items():
                agreement.setdefault(name, []).append(float(spearmanr(scores, exact).statistic))
        figures = ", ".join(f"{name} {np.mean(each):.3f}" for name, each in agreement.items())
        print(
            f"{rule}: {len(words)} words at a position of {len(sentences)} sentences, Spearman's "
            f"correlation with exact scores: {figures} ({perf_counter() - start:.1f} s)"
        )


if __name__ == "__main__":
    main()
