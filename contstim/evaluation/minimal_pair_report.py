"""Tables, figures and the page of an evaluation on minimal pairs.

A paradigm is a type of minimal pair with one kind of error; a phenomenon consists of paradigms. A
method compares two sides of a pair: by default, the good and the bad sentence. Other methods
compare words after a prefix; see `contstim.evaluation.minimal_pairs.Method`.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from contstim.evaluation.accuracies import BIN, FEATURES, contrasts
from contstim.evaluation.folder import Findings, page_table, table_of
from contstim.evaluation.minimal_pairs import AGREEMENT
from contstim.evaluation.scores import LeftOut
from contstim.files.tables import cells_by_name, columns_of
from contstim.reporting.canvas import BLACK, BLUE, GREY, ORANGE, heat_map, panels, plain_log, widest
from contstim.reporting.report import Details, Heading, Paragraph, Table, short_names, shortened
from contstim.wording import quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from matplotlib.figure import Figure

    from contstim.evaluation.accuracies import Accuracies, MinimalPairEvaluation
    from contstim.evaluation.folder import Columns, Row
    from contstim.evaluation.scores import PairScores
    from contstim.reporting.report import Part


_TIE_RULE_TEXTS = {"wrong": "a tie is wrong", "half": "a tie counts one half"}
_SHOWN = 10
_COLOURS = (BLUE, ORANGE, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", BLACK)  # Okabe & Ito (2008)
_LINES = ("-", "--", ":")


def minimal_pair_findings(evaluation: MinimalPairEvaluation) -> Findings:
    """Prepare accuracies as a page, figures, and tables.

    paradigms     accuracies by method and paradigm
    phenomena     mean accuracies by method and phenomenon, and overall
    contrasts     mean accuracies in groups of paradigms; see `published_contrasts`
    profile       accuracy in bins of length, perplexity and other features
    correlations  correlations of accuracies between models, over paradigms
    people        people's agreement with the labels, which state the acceptable sentences
    pairs         scores of each pair under each model
    ties          number of ties by paradigm
    left_out      sentences that a model cannot score, with reasons
    refusals      methods that a model does not support, with reasons

    `contrasts` and `correlations` exist only for full sentences. `correlations` also needs at least
    two columns of accuracies. Tables may be empty.
    """
    settings, tables = evaluation.settings, _tables(evaluation)
    return Findings(
        "Minimal pairs",
        accuracy_table(evaluation),
        tuple(_parts(evaluation, tables)),
        tables,
        partial(minimal_pair_figures, evaluation),
        {
            "ties": settings.ties,
            "sample": settings.sample or "all",
            "seed": settings.seed,
            "identical_pairs": {
                s.method.value: len(s.identical) for s in evaluation.scoring.by_method
            },
        },
    )


def _tables(evaluation: MinimalPairEvaluation) -> dict[str, Columns]:
    scoring, full = evaluation.scoring, evaluation.full
    models = [model for scores in scoring.by_method for model in scores.models]
    tables = {
        "paradigms": table_of(evaluation.paradigms()),
        "phenomena": table_of(
            {"method": method.value, "phenomenon": name} | accuracies.group_cells(members)
            for method, accuracies in evaluation.accuracies.items()
            for name, members in accuracies.groups.items()
        ),
        "ties": table_of(
            (row for scores in scoring.by_method for row in _tie_rows(scores)),
            dict.fromkeys(["method", "paradigm", "identical", *models]),
        ),
        "pairs": table_of(row for scores in scoring.by_method for row in _pair_rows(scores)),
        "left_out": columns_of(LeftOut, scoring.left_out),
        "refusals": table_of(
            (
                {"model": model, "method": method.value, "reason": reason}
                for (model, method), reason in scoring.refusals.items()
            ),
            ("model", "method", "reason"),
        ),
        "profile": table_of(evaluation.profile, BIN),
        "people": table_of(
            ({"paradigm": name} | agreement for name, agreement in evaluation.people.items()),
            ("paradigm", *AGREEMENT),
        ),
    }
    if full:
        rows = (
            {"contrast": contrast, "condition": condition} | full.group_cells(members)
            for (contrast, condition), members in contrasts(full).items()
        )
        tables["contrasts"] = table_of(rows, ("contrast", "condition", *full.group_cells()))
    if full and len(full.columns) > 1:
        correlations = dict(zip(full.columns, full.correlations().T.tolist(), strict=True))
        tables["correlations"] = {"model": list(full.columns), **correlations}
    return tables


def _tie_rows(scores: PairScores) -> Iterator[Row]:
    """Yield a row for each paradigm with ties.

    It contains the number of pairs with identical sides, and each model's number of ties.
    """
    identical = Counter(pair.paradigm for pair in scores.identical)
    paradigms = np.array([pair.paradigm for pair in scores.pairs])
    for name in sorted(set(paradigms[scores.ties.any(axis=1)].tolist())):
        about = {"method": scores.method.value, "paradigm": name, "identical": identical[name]}
        ties = scores.ties[paradigms == name].sum(axis=0).tolist()
        yield about | dict(zip(scores.models, ties, strict=True))


def _pair_rows(scores: PairScores) -> Iterator[Row]:
    for pair, row in zip(scores.pairs, cells_by_name(scores.columns()), strict=True):
        # A side of a prefix method has a line break between the prefix and the critical words. The
        # method compares the probabilities of the critical words
        good, bad = (s.text.replace("\n", " | ") for s in pair.sides(scores.method) or ())
        yield row | {"good": good, "bad": bad}


def accuracy_table(evaluation: MinimalPairEvaluation) -> Table:
    """Tabulate accuracies, their intervals and numbers of ties, by method.

    The rows are models, people and published models.
    """
    rows: list[Row] = []
    for scores in evaluation.scoring.by_method:
        ties = scores.ties.sum(axis=0).tolist()
        rows.append({"": scores.method.value} | evaluation.accuracies[scores.method].group_cells())
        rows.append({"": "ties"} | dict(zip(scores.models, ties, strict=True)))
    columns = table_of(rows)
    del columns["paradigms"]
    table = page_table(columns)
    # Transposed, so that each model has a row
    (_, *header), *body = zip(table.header, *table.rows, strict=True)
    return Table(["", *map(str, header)], body)


def _parts(evaluation: MinimalPairEvaluation, tables: Mapping[str, Columns]) -> Iterator[Part]:
    full, left_out = evaluation.full, evaluation.scoring.left_out
    yield Paragraph(
        "A model is correct if it gives the good side of a pair (the acceptable sentence, or its "
        f"critical word) the higher score; {_TIE_RULE_TEXTS[evaluation.settings.ties]}. Pairs with "
        "two equal sides do not count. Accuracies of phenomena and overall accuracies are means "
        "over paradigms. Brackets contain 95 % intervals (Wilson 1927), which generalise to other "
        "pairs of the same paradigms. Columns without intervals are results of people or of "
        "published models; the pairs of these results may differ from the pairs above."
    )
    if evaluation.scoring.refusals:
        yield page_table(tables["refusals"])
    for method, accuracies in evaluation.accuracies.items():
        paradigms = quantity(len(accuracies.paradigms), "paradigm")
        yield Heading(f"Accuracy, {method}")
        yield Paragraph(f"{quantity(accuracies.pairs_of(), 'pair')} of {paradigms}.")
        names = {"phenomenon": "", "pairs": "pairs", **{name: name for name in accuracies.columns}}
        yield page_table(tables["phenomena"], names, method=method.value)
    if tables["ties"]["paradigm"]:
        yield Heading("Ties")
        yield Details("By paradigm", [page_table(tables["ties"])])
    if left_out:
        sentences = quantity(len({omission.sentence for omission in left_out}), "sentence")
        yield Heading("Left out")
        yield Paragraph(f"At least one model cannot score {sentences}; see left_out.csv.")
        yield page_table(tables["left_out"], max_rows=_SHOWN)
    judged_paradigms = evaluation.people.keys() & (full.paradigms if full else ())
    if judged_paradigms:
        people = [evaluation.people[paradigm] for paradigm in sorted(judged_paradigms)]
        individual = float(np.mean([paradigm["individual"] for paradigm in people]))
        majorities = sum(paradigm["majorities"] for paradigm in people)
        items = quantity(sum(paradigm["items"] for paradigm in people), "pair")
        yield Heading("People")
        yield Paragraph(
            f"In {quantity(len(people), 'paradigm')}, single participants choose the acceptable "
            f"sentence in a proportion of {individual:.6f} (mean over paradigms). The majority of "
            f"participants chooses it in {majorities:,} of {items}."
        )
    if any(tables.get("contrasts", {}).values()):
        yield from (Heading("Contrasts"), page_table(tables["contrasts"]))


def minimal_pair_figures(evaluation: MinimalPairEvaluation) -> dict[str, Figure]:
    """Draw all figures for which the evaluation has data, and return them by file name."""
    full = evaluation.full
    figures = {
        f"phenomena-{method}": phenomena_figure(
            accuracies, f"Accuracy (%), {method}, {quantity(accuracies.pairs_of(), 'pair')}"
        )
        for method, accuracies in evaluation.accuracies.items()
    }
    # With two paradigms every correlation is 1 or -1
    if full and len(full.columns) > 1 and len(full.paradigms) > 2:
        figures["correlations"] = correlations_figure(full)
    if evaluation.profile:
        figures["profile"] = profile_figure(evaluation.profile)
    return figures


def phenomena_figure(accuracies: Accuracies, title: str) -> Figure:
    """Draw the accuracy of every column in every phenomenon and overall, in per cent."""
    names = shortened([name.replace("_", " ") for name in accuracies.groups])
    values = np.stack([accuracies.mean(paradigms) for paradigms in accuracies.groups.values()])
    return heat_map(names, short_names(accuracies.columns), values, title=title, middle=0.5)


def correlations_figure(accuracies: Accuracies) -> Figure:
    """Draw the correlations of accuracies between columns, over paradigms, in hundredths."""
    names, values = short_names(accuracies.columns), accuracies.correlations()
    title = "Correlation of accuracies over paradigms (hundredths)"
    return heat_map(names, names, values, title=title, middle=0.0, numbers="hundredths")


def profile_figure(bins: Sequence[Row]) -> Figure:
    """Draw a panel for each feature with a line for each model (Warstadt et al. 2020, Fig. 2)."""
    features = [name for name in FEATURES if any(row["feature"] == name for row in bins)]
    models = list(dict.fromkeys(row["model"] for row in bins))
    names = short_names(models)
    width, n = max(3.4, 1.9 * len(features) - 0.4, 0.8 + 2 * widest(names)), len(features)
    figure, grid = panels(n, n, width / n, 2 + 0.09 * len(models), sharey=True)
    for axes, feature in zip(grid[0], features, strict=True):
        for number, model in enumerate(models):
            line = [row for row in bins if (row["model"], row["feature"]) == (model, feature)]
            axes.plot(
                [row["mean"] for row in line],
                [row["accuracy"] for row in line],
                # When all colours are used, further lines are dashed
                linestyle=_LINES[number // len(_COLOURS) % len(_LINES)],
                color=_COLOURS[number % len(_COLOURS)],
                marker="o",
                ms=2.5,
                lw=1,
                label=names[number],
            )
        axes.axhline(0.5, color=GREY, lw=0.6)
        axes.set_xlabel(FEATURES[feature].replace(" of", "\nof"))
        if feature == "perplexity":
            axes.set_xscale("log")
            plain_log(axes.xaxis)
    grid[0, 0].set_ylabel("accuracy")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    return figure
