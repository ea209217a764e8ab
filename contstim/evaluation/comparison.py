"""Agreement and disagreement of models, or of scoring rules, on the ranks of sentences."""

from __future__ import annotations

import shlex
from collections import Counter
from itertools import combinations, groupby, islice
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError, ScoreError
from contstim.evaluation.folder import Findings, page_table, table_of
from contstim.evaluation.scores import score_readable
from contstim.items.correlation import pearson
from contstim.items.scores import ScoreTable
from contstim.models.specifications import with_name
from contstim.optimization.selection.natural import strata
from contstim.optimization.selection.question import NaturalQuestion
from contstim.reporting.canvas import BLUE, GREY, agreement_map, panels, widest
from contstim.reporting.report import Bullets, Heading, Paragraph, code, emphasis, short_names
from contstim.wording import quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from matplotlib.figure import Figure

    from contstim.evaluation.folder import Row
    from contstim.models.base import Scorer
    from contstim.reporting.report import Part
    from contstim.store import Store
    from contstim.words.sentence import Sentence


_MAX_PANELS, _PANELS_PER_ROW = 12, 4
_MAX_LISTED = 3
_DISAGREEMENT = ("model_1", "model_2", "sentence", "rank_1", "rank_2", "log_prob_1", "log_prob_2")


def read_tables(paths: Iterable[Path]) -> dict[str, ScoreTable]:
    """Return name → table of scores.

    The name is the path's stem. If several paths have the same stem, the name is the whole path.
    """
    all_paths = list(paths)
    stems = Counter(path.stem for path in all_paths)
    return {p.stem if stems[p.stem] == 1 else str(p): ScoreTable.from_file(p) for p in all_paths}


def gather(
    tables: Mapping[str, ScoreTable],
    models: Sequence[Scorer] = (),
    sentences: Sequence[Sentence] | None = None,
    *,
    store: Store | None = None,
    progress: Callable[[Scorer, int], None] | None = None,
) -> tuple[ScoreTable, dict[str, str]]:
    """Score sentences with models, and join these scores with the scores of tables.

    Args:
        tables: tables of scores, by name.
        models: models that score `sentences`, in addition to the models of the tables.
        sentences: sentences that `models` score; by default all sentences of the tables.
        store: see `score_sentences`.
        progress: see `score_sentences`.

    Returns:
        Joined scores of the sentences that all tables share; and a mapping from the text of each
        excluded sentence to the reason.

    Raises:
        InputError: if there are fewer than two models in total, or no sentences for `models`.
        ScoreError: see `join_tables`.
        ModelError, StoreError: see `score_sentences`.
    """
    model_names = [name for table in tables.values() for name in table.models]
    model_names += [model.name for model in models]
    if len(model_names) < 2:
        raise InputError(f"Compare at least 2 models, got {', '.join(model_names) or 'none'}.")
    reasons: dict[str, str] = {}
    all_tables = dict(tables)
    if models:
        scored = (sentence for table in tables.values() for sentence in table.sentences or ())
        chosen = sentences if sentences is not None else list(scored)
        if not chosen:
            raise InputError("There are no sentences for the models to score. Set `sentences`.")
        scores, refused = score_readable(models, chosen, store=store, progress=progress)
        all_tables["models"] = scores
        reasons = {o.sentence: f"{o.model}: {o.reason}" for o in refused}
    table, missing_by_table = join_tables(all_tables)
    # If a model refused a sentence, its reason has precedence, because it is more informative
    for name, missing_texts in missing_by_table.items():
        for text in missing_texts:
            reasons.setdefault(text, f"not among the sentences of {name}")
    return table, reasons


def join_tables(tables: Mapping[str, ScoreTable]) -> tuple[ScoreTable, dict[str, tuple[str, ...]]]:
    """Join tables on their common sentences, in the order of the first table.

    Sentences are identical if their `Sentence.text` is equal. If several tables have a model of the
    same name, each column of this model is named `table:model`.

    Returns:
        The joined table; and a mapping from the name of each table to its missing sentences, which
        only other tables have.

    Raises:
        ScoreError: if a table has no sentences, or fewer than two sentences are common.
    """
    for name, table in tables.items():
        if table.sentences is None:
            raise ScoreError(f"{name} must have a column 'sentence'.")
    union = dict.fromkeys(sentence for table in tables.values() for sentence in table.rows)
    missing_by_table = {
        name: tuple(sentence.text for sentence in union if sentence not in table.rows)
        for name, table in tables.items()
    }
    # Ranks are only comparable for the same set of sentences
    common = [s for s in union if all(s in table.rows for table in tables.values())]
    if len(common) < 2:
        raise ScoreError(
            f"The tables must share at least 2 sentences, got {len(common)} of {len(union):,}."
        )
    times = Counter(model for table in tables.values() for model in table.models)
    columns = {
        f"{name}:{model}" if times[model] > 1 else model: table.column(model)[table.rows_of(common)]
        for name, table in tables.items()
        for model in table.models
    }
    scores = np.stack(list(columns.values()), axis=1)
    return ScoreTable(tuple(common), tuple(columns), scores), missing_by_table


def model_agreements(table: ScoreTable) -> list[Row]:
    """Compute how much every two models agree on the ranks of the sentences.

    Each row describes a pair of models. `spearman` is the correlation of ranks, and `pearson` is
    the correlation of finite scores. Both are nan if a model's values are constant. `agreement` is
    the share of pairs of sentences that both models order in the same way; a tie counts one half.
    `kendall` is Kendall's tau-a.

    Raises:
        ScoreError: if there are fewer than two sentences.
    """
    agreement, ranks, scores = table.agreement(), table.ranks(), table.log_probs
    return [
        {
            "model_1": table.models[i],
            "model_2": table.models[j],
            "spearman": pearson(ranks[:, i], ranks[:, j]),
            # Two sentences in opposite orders count -1 in tau-a, and 0 in the agreement
            "kendall": float(2 * agreement[i, j] - 1),
            "pearson": pearson(scores[:, i], scores[:, j]),
            "agreement": float(agreement[i, j]),
        }
        for i, j in combinations(range(len(table.models)), 2)
    ]


def disagreements(table: ScoreTable, top: int) -> list[Row]:
    """List the sentences with the greatest differences in rank, for each ordered pair of models.

    A listed sentence has a higher rank under model_2 than under model_1. For each ordered pair, at
    most `top` sentences are listed. Ranks are divided by the number of sentences, so they are in
    (0, 1]; the most likely sentence has the rank 1. A score has the unit of its model.
    """
    # Ranks instead of scores, because models may have different units or scales
    ranks, texts, models = table.ranks(), list(map(str, table.sentences or ())), table.models
    rows: list[Row] = []
    for pair in combinations(range(len(models)), 2):
        for i, j in (pair, pair[::-1]):
            gain = ranks[:, j] - ranks[:, i]  # (n_sentences,)
            for row in np.argsort(-gain, kind="stable")[: min(top, (gain > 0).sum())]:
                numbers = (*ranks[row, [i, j]].tolist(), *table.log_probs[row, [i, j]].tolist())
                cells = (models[i], models[j], texts[row], *numbers)
                rows.append(dict(zip(_DISAGREEMENT, cells, strict=True)))
    return rows


def select_command(folder: Path, table: ScoreTable) -> str:
    """Return the command that selects pairs of natural sentences on which the models disagree.

    The command requests ten pairs of sentences for each pair of models, or fewer if few sentences
    distinguish two models. It reads the scores in `folder`, the output folder of the comparison.
    """
    (stratum,) = strata(table, NaturalQuestion())
    least = int(stratum.admissible().min())
    # In an ordered pair, the first model rejects a sentence and the second accepts it. If m of M
    # models accept a sentence and the others reject it, the sentence is a candidate for m (M - m)
    # ordered pairs, which is at most M²/4. Each ordered pair has at least `least` candidates. So
    # each ordered pair can have least / (M²/4) sentences that no other ordered pair uses
    per_pair = max(1, min(10, least // (len(table.models) ** 2 // 4)))
    scores, out = folder / "scores.csv", folder / "pairs.csv"
    command = f"contstim select natural --scores {{}} --per-pair {per_pair} --out {{}}"
    return command.format(shlex.quote(str(scores)), shlex.quote(str(out)))


def diff_command(models: Sequence[Scorer]) -> str:
    """Return the `contstim diff` command for these models."""
    specifications = (with_name(m.name, m.specification or m.name) for m in models)
    return shlex.join(["contstim", "diff", *specifications])


def comparison_findings(
    table: ScoreTable, *, top: int, left_out: Mapping[str, str], commands: Sequence[str]
) -> Findings:
    """Prepare a comparison as a page, two figures, and tables.

    At most `top` sentences are listed for each ordered pair of models. `left_out` maps the text of
    each excluded sentence to the reason. The page lists the `commands`, such as the result of
    `diff_command`.

    Raises:
        ScoreError: if there are fewer than two sentences.
    """
    largest, agreements = disagreements(table, top), table_of(model_agreements(table))
    summary, sentences = page_table(agreements), quantity(len(table.log_probs), "sentence")
    meaning = (
        ": the proportion of all pairs of sentences that both models order in the same way "
        "(a tie counts one half)."
    )
    parts: list[Part] = [Paragraph((f"{sentences}. ", emphasis("agreement"), meaning)), summary]
    parts.append(Heading("Sentences on which they disagree most"))
    for (lower, higher), rows in groupby(largest, lambda row: (row["model_1"], row["model_2"])):
        parts.append(Paragraph((code(lower), " ranks lower than ", code(higher), ":")))
        line = "{sentence} ({rank_1:.2f} against {rank_2:.2f})"
        parts.append(Bullets([line.format(**row) for row in islice(rows, _MAX_LISTED)]))
    if left_out:
        n_excluded = quantity(len(left_out), "sentence")
        parts.append(Paragraph(f"Excluded: {n_excluded} (left_out.csv)."))
    if commands:
        bullets = Bullets([(code(command),) for command in commands])
        parts += [Heading("Select controversial sentences"), bullets]
    return Findings(
        "Agreement of models on the order of sentences",
        summary,
        parts,
        {
            "comparison": agreements,
            "disagreements": table_of(largest, _DISAGREEMENT),
            "scores": table.columns,
            "left_out": {"sentence": list(left_out), "reason": list(left_out.values())},
        },
        lambda: {"agreement": agreement_map(table), "ranks": ranks_figure(table)},
    )


def ranks_figure(table: ScoreTable) -> Figure:
    """Draw a panel for each of up to twelve pairs of models, with a dot for each sentence."""
    pairs = list(combinations(range(len(table.models)), 2))[:_MAX_PANELS]
    # (n_sentences, n_models), ranks divided by n_sentences: 1 for the most likely sentence
    ranks, names = table.ranks(), short_names(table.models)
    side = max(2.0, 0.5 + widest(names))
    figure, grid = panels(len(pairs), _PANELS_PER_ROW, side, side)
    for axes, (i, j) in zip(grid[0], pairs, strict=True):
        axes.plot((0, 1), (0, 1), color=GREY, lw=0.8)
        axes.plot(ranks[:, i], ranks[:, j], "o", ms=2, color=BLUE, alpha=0.4, mew=0)
        axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xticks=(0, 1), yticks=(0, 1))
        axes.set_xlabel(f"rank under\n{names[i]}", fontsize="small")
        axes.set_ylabel(f"rank under\n{names[j]}", fontsize="small")
    return figure
