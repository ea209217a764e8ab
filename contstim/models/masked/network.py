"""Many questions about places of many rows, answered by few passes through a masked network.

Questions about three rows, of which the first two are equal:

    question       0  1  2  3        asks row `row` at place `place`
    row            0  0  1  2
    place          2  3  2  1

Distinct rows: A = rows 0 and 1, B = row 2. The spots are the distinct pairs of row and place, for
which the vocabulary head is computed: (A, 2), (A, 3), (B, 1). Spot 0 answers questions 0 and 2,
spot 1 answers question 1, spot 2 question 3.
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
from contstim.models.merging import NetworkCall, answer, is_merged, stacked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from contstim.files.arrays import FloatArray, IntArray
    from contstim.models.batching import Row, Write
    from contstim.models.checkpoints import Checkpoint
    from contstim.models.masked.plan import Pattern, Plan
    from contstim.models.words import Encoding

    UseLogits: TypeAlias = Callable[[Tensor, IntArray, IntArray], Write | None]

_ROWS_AT_ONCE = 16_384  # passes that are collected before they are run


class MaskedNetwork:
    """A checkpoint's network, with its mask and padding tokens, which answers many questions.

    After its last attention, a masked language model treats each place by itself, so that its last
    feed-forward layer and its head need to see only the places in question. A hook drops the others
    after the last module called `attention`, or else after the network's body. Each is tried once
    against the whole output; if neither agrees with it, the whole output is always computed.

    Args:
        checkpoint: a masked one.
        by_words: whether to normalise each token within its class, see `boundaries`.

    Raises:
        ModelError: the tokenizer has no mask token; or see `token_classes`.
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
            whole = self._logits_of_trial()
        classes = token_classes(tokenizer, whole.shape[-1]) if by_words else None
        self.normaliser = Normaliser(classes, self.device)
        self.budget = batching.Budget.for_device(self.device)
        # The module nearest to the head saves least, so it comes last
        body: Any = self.model.base_model
        attentions = [m for name, m in body.named_modules() if name.endswith(".attention")]
        for module in [] if body is self.model else [*attentions[-1:], body]:
            self._narrow = module
            if self._agrees(whole):
                break
            self._narrow = None

    @torch.inference_mode()
    def logits(self, ids: Tensor, attention: Tensor | None, places: Tensor) -> Tensor:
        """Logits at some places of a batch.

        Args:
            ids: token ids, (b, l).
            attention: 1 for tokens, 0 for padding, (b, l); None where nothing is padded, which
                the library would else find out by a question to the device.
            places: row * l + column of each wanted place, (k,).

        Returns:
            (k, n_outputs)
        """
        if self.model.training:  # `eval` visits every module
            self.model.eval()
        narrow = self._narrow
        with nullcontext() if narrow is None else _only(narrow, places):
            logits: Tensor = self.model(input_ids=ids, attention_mask=attention).logits
        # Narrowed, they are (1, k, n_outputs), else (b, l, n_outputs)
        return logits[0] if narrow is not None else logits.flatten(0, 1)[places.to(logits.device)]

    def _logits_of_trial(self) -> Tensor:
        """Logits of two short rows, one of them padded, at places in no particular order."""
        # rows of two lengths and places out of order, so that places mixed up would show
        ids = torch.tensor([[self.mask] * 3, [self.mask, self.mask, self.pad]], device=self.device)
        attention = torch.tensor([[1, 1, 1], [1, 1, 0]], device=self.device)
        return self.logits(ids, attention, torch.tensor([4, 1, 3, 2], device=self.device))

    def _agrees(self, whole: Tensor) -> bool:
        # the head computes fewer rows at once, which rounds differently
        close = max(1e-5, 4 * torch.finfo(whole.dtype).eps)
        try:
            narrow = self._logits_of_trial()
            atol = close * float(whole.abs().max())
            same = narrow.shape == whole.shape
            return same and torch.allclose(narrow, whole, rtol=close, atol=atol)
        except (AttributeError, IndexError, RuntimeError, TypeError, ValueError):
            return False

    def answer(
        self, encodings: Sequence[Encoding], plan_of: Callable[[Pattern], Plan]
    ) -> Iterator[tuple[Plan, FloatArray]]:
        """Each sentence's plan, and the answers to the plan's questions, (n_questions,), nats.

        Plans of many sentences run together. Equal rows pass through the network once, and the head
        computes each place once, whatever the number of questions about it.

        Args:
            encodings: sentences as tokens.
            plan_of: the rule's plan for a pattern.
        """
        plans: list[Plan] = []  # of the sentences whose rows wait
        rows: list[IntArray] = []  # (n_tokens,) each, those of all these sentences
        questions: list[tuple[IntArray, IntArray, IntArray]] = []  # row, place, token

        def answered() -> Iterator[tuple[Plan, FloatArray]]:
            row, place, token = map(np.concatenate, zip(*questions, strict=True))
            answers = np.empty(len(row))

            def use(logits: Tensor, asked: IntArray, spots: IntArray) -> Write:
                log_probs = self.normaliser.log_probs(logits, spots, token[asked])
                return lambda: answers.__setitem__(asked, log_probs.cpu().numpy())

            self.ask(rows, row, place, use)
            ends = np.cumsum([len(plan.row) for plan in plans])
            yield from zip(plans, np.split(answers, ends[:-1]), strict=True)

        for number, encoding in enumerate(encodings, 1):
            plan, ids = plan_of(encoding.word_of), np.array(encoding.ids, np.int64)
            # The rows of all these sentences are numbered through
            questions.append((len(rows) + plan.row, plan.token, ids[plan.token]))
            plans.append(plan)
            rows.extend(np.where(plan.hidden, self.mask, ids))
            if len(rows) >= _ROWS_AT_ONCE or number == len(encodings):
                yield from answered()
                plans, rows, questions = [], [], []

    def ask(self, rows: Sequence[Row], row: IntArray, place: IntArray, use: UseLogits) -> None:
        """Logits of the whole vocabulary at places of rows, batch by batch.

        Args:
            rows: token ids, some of them masks.
            row: the row of each question, (n_questions,).
            place: the place in its row, (n_questions,).
            use: called for each batch with the logits of its spots, (n_spots, n_outputs), the
                questions that they answer, (q,), and the spot of each of these questions, (q,);
                what it adds to earlier results it must add in the function that it returns, see
                `forward_in_batches`.
        """
        distinct, twin = batching.unique_rows(rows)
        row = twin[row]

        def run(ids: Tensor, attention: Tensor, batch: IntArray) -> Write | None:
            index = np.full(len(distinct), -1)
            index[batch] = np.arange(len(batch))
            asked = np.flatnonzero(index[row] >= 0)
            # Spots are places of the flattened batch, and questions are sorted by spot
            places, spots = np.unique(
                index[row[asked]] * ids.shape[1] + place[asked], return_inverse=True
            )
            by_spot = np.argsort(spots, kind="stable")
            there = batching.to_device(places, ids.device)
            whole = all(len(distinct[number]) == ids.shape[1] for number in batch)
            mask = None if whole else attention
            alone = partial(self.logits, ids, mask, there)
            call = NetworkCall(self.model, self.budget, ids, mask, alone, self._together, there)
            # In a batch with the calls of other searches, or by itself
            logits = answer(call) if is_merged() else alone()
            return use(logits, asked[by_spot], spots[by_spot])

        batching.forward_in_batches(distinct, run, pad=self.pad, budget=self.budget)

    def _together(self, calls: Sequence[NetworkCall]) -> list[Tensor]:
        """Several calls in one batch, all rows padded to the longest."""
        ids, attention = stacked(calls, fill=self.pad)
        places, n_rows = [], 0
        for call in calls:
            # row * length + column, of longer rows that stand further down
            rows, columns = call.about // call.shape[1], call.about % call.shape[1]
            places.append((rows + n_rows) * ids.shape[1] + columns)
            n_rows += call.shape[0]
        logits = self.logits(ids, attention, torch.cat(places))
        return list(torch.split_with_sizes(logits, [len(call.about) for call in calls]))


@contextmanager
def _only(module: torch.nn.Module, places: Tensor) -> Iterator[None]:
    """Within a `with` statement, a module returns states at some places only, (1, k, width)."""

    def gather(_module: torch.nn.Module, _inputs: Any, output: Any) -> Any:
        whole = output if isinstance(output, Tensor) else output[0]
        # The last layers may be on another device than the first
        states = whole.flatten(0, 1)[places.to(whole.device)][None]
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
