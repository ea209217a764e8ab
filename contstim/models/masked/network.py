"""Logits of a masked network at selected positions of rows of token ids, from few passes.

A row is the token ids of a sentence, some of them replaced by masks. A question asks for the
distribution of the token at one position of one row.

Here are four questions about three rows. Rows 0 and 1 are equal:

    question       0  1  2  3        asks for the token at `position` in row `row`
    row            0  0  1  2
    position       2  3  2  1

The network reads each distinct row once: A = rows 0 and 1, B = row 2. A spot is a pair of a
distinct row and a position. The last layer, the vocabulary head, computes logits for three spots:
(A, 2), (A, 3) and (B, 1). Spot 0 answers questions 0 and 2, spot 1 answers question 1, and spot 2
answers question 3.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from contstim.errors import ModelError
from contstim.models import batching
from contstim.models.boundaries import Normaliser, token_classes
from contstim.models.merging import NetworkCall, answer, is_merged, stack_calls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from contstim.files.arrays import FloatArray, IntArray
    from contstim.models.batching import Row, Write
    from contstim.models.checkpoints import Checkpoint
    from contstim.models.masked.plan import Pattern, Plan
    from contstim.models.words import Encoding

    UseLogits: TypeAlias = Callable[[Tensor, IntArray, IntArray], Write | None]

_ROWS_AT_ONCE = 16_384  # the network runs when this many rows are collected


class MaskedNetwork:
    """Network of a masked checkpoint, which answers many questions.

    After the last attention layer, a masked language model processes each position separately. A
    hook can therefore drop positions about which no question asks. Hooks are tried at two places:
    after the last module called `attention`, then after the body of the network. The first hook
    that leaves the logits of a test input unchanged is used. If both hooks change these logits, all
    positions are computed.

    With `by_words`, the probability of each token is normalised within the token's class. One class
    contains the tokens at word boundaries, the other the tokens within words (see `boundaries`).

    Raises:
        ModelError: if the tokenizer has no mask token; also see `token_classes`.
    """

    def __init__(self, checkpoint: Checkpoint, *, by_words: bool = False) -> None:
        checkpoint.require_weights()
        tokenizer = checkpoint.tokenizer
        if tokenizer.mask_token_id is None:
            raise ModelError(
                f"The tokenizer of {checkpoint.location} has no mask token: it is not a masked "
                f"language model. Causal models have the rules log-likelihood and chain."
            )
        self.mask = int(tokenizer.mask_token_id)
        self.pad = int(tokenizer.pad_token_id if tokenizer.pad_token_id is not None else self.mask)
        self.model: torch.nn.Module = checkpoint.model
        self.device = torch.device(checkpoint.device)
        self._narrow: torch.nn.Module | None = None
        with batching.single_input(3, self.device):
            full_logits = self._logits_of_trial()
        classes = token_classes(tokenizer, full_logits.shape[-1]) if by_words else None
        self.normaliser = Normaliser(classes, self.device)
        self.budget = batching.Budget.for_device(self.device)
        # A hook nearer to the head saves less time, so it is tried last
        body: Any = self.model.base_model
        attentions = [m for name, m in body.named_modules() if name.endswith(".attention")]
        for module in [] if body is self.model else [*attentions[-1:], body]:
            self._narrow = module
            if self._agrees(full_logits):
                break
            self._narrow = None

    @torch.inference_mode()
    def logits(self, ids: Tensor, attention: Tensor | None, positions: Tensor) -> Tensor:
        """Compute logits, (k, n_outputs), at selected positions of a batch.

        Args:
            ids: token ids, (b, l).
            attention: attention mask, (b, l); None without padding, see `NetworkCall`.
            positions: row * l + column of each selected position, (k,).
        """
        if self.model.training:  # checked first, because `eval` visits every module
            self.model.eval()
        narrow = self._narrow
        with nullcontext() if narrow is None else _only(narrow, positions):
            logits: Tensor = self.model(input_ids=ids, attention_mask=attention).logits
        # With a hook, logits are (1, k, n_outputs), otherwise (b, l, n_outputs)
        if narrow is not None:
            return logits[0]
        return logits.flatten(0, 1)[positions.to(logits.device)]

    def _logits_of_trial(self) -> Tensor:
        # A hook that confuses positions changes these logits, because the two rows differ in length
        # and the positions are not sorted
        ids = torch.tensor([[self.mask] * 3, [self.mask, self.mask, self.pad]], device=self.device)
        attention = torch.tensor([[1, 1, 1], [1, 1, 0]], device=self.device)
        return self.logits(ids, attention, torch.tensor([4, 1, 3, 2], device=self.device))

    def _agrees(self, full_logits: Tensor) -> bool:
        # With a hook, the head computes fewer rows at once, which changes rounding
        rtol = max(1e-5, 4 * torch.finfo(full_logits.dtype).eps)
        try:
            narrow = self._logits_of_trial()
            atol = rtol * float(full_logits.abs().max())
            same_shape = narrow.shape == full_logits.shape
            return same_shape and torch.allclose(narrow, full_logits, rtol=rtol, atol=atol)
        except (AttributeError, IndexError, RuntimeError, TypeError, ValueError):
            return False

    def answer(
        self, encodings: Sequence[Encoding], plan_of: Callable[[Pattern], Plan]
    ) -> Iterator[tuple[Plan, FloatArray]]:
        """Yield each sentence's plan and the answers to its questions, (n_questions,), nats.

        Plans of many sentences run together. Equal rows are computed only once. Each position of a
        row is computed only once, even if several questions ask for it.
        """
        plans: list[Plan] = []  # one for each collected sentence
        rows: list[IntArray] = []  # (n_tokens,) each, of all collected sentences
        questions: list[tuple[IntArray, IntArray, IntArray]] = []  # row, position, token

        def run_collected() -> Iterator[tuple[Plan, FloatArray]]:
            row, position, token = map(np.concatenate, zip(*questions, strict=True))
            answers = np.empty(len(row))

            def use(logits: Tensor, question_numbers: IntArray, spots: IntArray) -> Write:
                log_probs = self.normaliser.log_probs(logits, spots, token[question_numbers])
                return lambda: answers.__setitem__(question_numbers, log_probs.cpu().numpy())

            self.ask(rows, row, position, use)
            ends = np.cumsum([len(plan.row) for plan in plans])
            yield from zip(plans, np.split(answers, ends[:-1]), strict=True)

        for number, encoding in enumerate(encodings, 1):
            plan, ids = plan_of(encoding.word_of), np.array(encoding.ids, np.int64)
            questions.append((len(rows) + plan.row, plan.token, ids[plan.token]))
            plans.append(plan)
            rows.extend(np.where(plan.hidden, self.mask, ids))
            if len(rows) >= _ROWS_AT_ONCE or number == len(encodings):
                yield from run_collected()
                plans, rows, questions = [], [], []

    def ask(self, rows: Sequence[Row], row: IntArray, position: IntArray, use: UseLogits) -> None:
        """Compute logits over the vocabulary at positions of rows, and call `use` for each batch.

        A batch may be retried, so `use` must not add to earlier results. Only the function that
        `use` returns may add to them, because it is called after the batch has succeeded.

        Args:
            rows: token ids, some of which are masks.
            row: row of each question, (n_questions,).
            position: position of each question in its row, (n_questions,).
            use: function of three results of a batch. The first is the logits at its spots,
                (n_spots, n_outputs). The second is the indices of the questions that these logits
                answer, (q,). The third is the spot of each of these questions, (q,).
        """
        distinct, inverse = batching.unique_rows(rows)
        row = inverse[row]

        def run(ids: Tensor, attention: Tensor, batch: IntArray) -> Write | None:
            index = np.full(len(distinct), -1)
            index[batch] = np.arange(len(batch))
            questions = np.flatnonzero(index[row] >= 0)  # of this batch
            # Spots in the flattened batch, and the spot of each question
            flat_positions = index[row[questions]] * ids.shape[1] + position[questions]
            distinct_spots, spots = np.unique(flat_positions, return_inverse=True)
            by_spot = np.argsort(spots, kind="stable")
            spot_positions = batching.to_device(distinct_spots, ids.device)
            without_padding = all(len(distinct[number]) == ids.shape[1] for number in batch)
            mask = None if without_padding else attention
            run_alone = partial(self.logits, ids, mask, spot_positions)
            call = NetworkCall(
                self.model, self.budget, ids, mask, run_alone, self._together, spot_positions
            )
            logits = answer(call) if is_merged() else run_alone()
            return use(logits, questions[by_spot], spots[by_spot])

        batching.forward_in_batches(distinct, run, pad=self.pad, budget=self.budget)

    def _together(self, calls: Sequence[NetworkCall]) -> list[Tensor]:
        ids, attention = stack_calls(calls, fill=self.pad)
        flat_positions, n_rows = [], 0
        for call in calls:
            # In the merged batch, all rows are padded to the same length, and the rows of a call
            # follow the rows of earlier calls
            rows, columns = call.about // call.shape[1], call.about % call.shape[1]
            flat_positions.append((rows + n_rows) * ids.shape[1] + columns)
            n_rows += call.shape[0]
        logits = self.logits(ids, attention, torch.cat(flat_positions))
        return list(torch.split_with_sizes(logits, [len(call.about) for call in calls]))


@contextmanager
def _only(module: torch.nn.Module, positions: Tensor) -> Iterator[None]:
    """Make a module return only the states at selected positions, (1, k, width)."""

    def gather(_module: torch.nn.Module, _inputs: Any, output: Any) -> Any:
        all_states = output if isinstance(output, Tensor) else output[0]
        # The last layers may be on another device than the first ones
        states = all_states.flatten(0, 1)[positions.to(all_states.device)][None]
        if isinstance(output, Tensor):
            return states
        if isinstance(output, tuple):
            return (states, *output[1:])
        output["last_hidden_state"] = states
        return output

    handle = module.register_forward_hook(gather)
    try:
        yield
    finally:
        handle.remove()
