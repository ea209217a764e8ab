"""Results of steps on standard output."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import typer

from contstim.cli.output import (
    changed_words,
    names_for_tables,
    print_summary,
    print_table,
    remark,
    remark_folder,
    results_table,
    terminal,
)
from contstim.wording import counted, p_equation, p_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from contstim.evaluation.criteria import AcceptabilityEvaluation
    from contstim.experiments.analysis.controls import FeaturePreference, TokenCountTest
    from contstim.experiments.analysis.mixed.comparisons import MixedAnalysis
    from contstim.experiments.analysis.run import Analysis
    from contstim.experiments.design.sentence_needs import SentenceNeeds
    from contstim.models.scoring import ModelScores
    from contstim.optimization.jobs.results import TripletResults
    from contstim.optimization.search.symmetric import SymmetricPair
    from contstim.optimization.search.synthesize import Synthesis
    from contstim.reviews import ItemKind, Review
    from contstim.steps.evaluation import Comparison
    from contstim.steps.sentences import FindSentences, NaturalSentences


def show_result(step: Any, value: Any, *, quiet: bool) -> None:
    """Print what a step found, as its command does; nothing of steps that say all themselves."""
    match step.name.split()[0]:
        case "score":
            _scores(value, quiet=quiet)
        case "sentences":
            _sentences(step, value)
        case "synthesize":
            if step.as_json:
                print(value.as_json)
            else:
                _synthesis(value.result)
                rules = ", ".join(f"{name}: {rule}" for name, rule in value.rules.items())
                print(f"Scoring rules: {rules}.")
            if not value.result.changed:
                remark(
                    "Nothing was found: no sentence on which these models disagree more. Try "
                    "another --seed, another sentence, more words, or fewer constraints."
                )
        case "triplets":
            if not quiet:
                _print_statistics(value)
            _tell_failures(value, quiet=quiet)
        case "review" if step.review:
            from contstim.reviews import read_reviews

            _reviews(read_reviews(step.review), len(value.items), value.items[0].kind)
        case "import":
            print(value.report)
        case "analyze":
            _analysis(value, quiet=quiet)
            remark_folder(step.out / "report.html", quiet=quiet)
        case "mixed":
            _mixed(value)
            remark_folder(step.out / "fits.csv", quiet=quiet)
        case "controls":
            _controls(*value)
        case "compare":
            _comparison(value)
        case "evaluate":
            _evaluation(step, value, quiet=quiet)
        case "train" if step.name.endswith("acceptability"):
            from contstim.evaluation.folder import page_table

            for name in ("summary", "features"):
                if value.tables[name]:
                    print_summary("Matthews correlation", page_table(value.tables[name]), ())
        case "reproduce":
            _reproduction(step, *value, quiet=quiet)


def _scores(scores: Sequence[ModelScores], *, quiet: bool) -> None:
    for scored in scores:
        if scored.lower_bounds is not None and scored.log_probs is not None:
            gaps = scored.log_probs - scored.lower_bounds
            remark(
                f"  {scored.name}: {scored.log_probs.mean():.2f} nats on average, the mean over "
                f"orders {scored.lower_bounds.mean():.2f}: a gap of {gaps.mean():.2f} "
                f"({gaps.min():.2f} to {gaps.max():.2f}).",
                quiet=quiet,
            )
        if scored.n_sampled:
            remark(
                f"  {scored.name}: {scored.n_sampled:,} scores are sampled; --standard-errors FILE "
                f"tells how good they are.",
                quiet=quiet,
            )


def _sentences(step: FindSentences, found: NaturalSentences) -> None:
    from contstim.cli.commands import as_flags
    from contstim.corpus import read_sentences
    from contstim.filters import costs_of_rules

    if found.needs is not None:
        _needs(found.needs)
    if not found.too_few:
        return
    remark(
        f"{found.too_few:,} sentences too few for a study of {step.study.for_models} "
        f"models: give more text, ask for less, or loosen a rule."
    )
    # What was read is gone by now; a pipe cannot be read again
    if str(step.text) == "-":
        remark("What a rule costs is counted for files only: give --text FILE.")
        return
    costs = costs_of_rules(read_sentences(step.text, prose=step.settings.prose), found.rules)
    for cost in costs:
        if cost.gain > 0:
            by = as_flags(cost.loosened_by, type(step))
            remark(f"  {cost.gain:>+9,} left out only because {cost.reason} ({by})")
    if all(cost.gain <= 0 for cost in costs):
        remark("  No single rule gains any.")


def _reproduction(
    step: Any, found: Any, compared: Sequence[tuple[str, str, str]], *, quiet: bool
) -> None:
    if step.name.endswith("adc"):
        _criteria(found, quiet=quiet)
    else:
        _analysis(found, quiet=quiet)
    _claims(compared, step.out / "report.html", quiet=quiet)


def _evaluation(step: Any, found: Any, *, quiet: bool) -> None:
    match step.name.split()[1]:
        case "blimp":
            from contstim.evaluation.minimal_pair_report import accuracy_table

            table = accuracy_table(found)
            names = [str(name) for name, *_ in table.rows]
            print_summary("Accuracy on minimal pairs (95 % interval)", table, names)
        case "acceptability":
            _criteria(found, quiet=quiet)
        case "desiderata":
            from contstim.evaluation.desiderata_report import desiderata_summary

            table = desiderata_summary(found)
            print_summary("Desiderata of scoring rules", table, found.models)
    remark_folder(step.out / "report.html", quiet=quiet)


def _criteria(evaluation: AcceptabilityEvaluation, *, quiet: bool) -> None:
    """Print how many pairs meet each criterion, and say what is not evaluated."""
    from contstim.evaluation.acceptability_report import criteria_table

    title = f"Criteria met by {len(evaluation.pairs):,} minimal pairs"
    print_summary(title, criteria_table(evaluation), evaluation.models)
    for reason, number in evaluation.excluded_for().items():
        if number:
            remark(f"Not evaluated: {counted(number, 'pair')}, {reason}.", quiet=quiet)
    left_out = {omission.sentence for omission in evaluation.scores.left_out}
    if left_out:
        sentences = counted(len(left_out), "sentence")
        remark(f"Without a score: {sentences}; see left_out.csv.", quiet=quiet)


def _comparison(comparison: Comparison) -> None:
    findings = comparison.findings
    print_summary(findings.title, findings.summary, comparison.models)
    print("Set them against each other:", *comparison.commands, sep="\n  ")
    for triplet in comparison.triplets:
        print(f"{triplet.model_1} rejects: {triplet.synthetic_1}")
        print(f"{triplet.model_2} rejects: {triplet.synthetic_2}")
        if not triplet.distinct:
            print(f"Nothing was found from {triplet.natural.text!r}: {triplet.alike}.")


def _needs(needs: SentenceNeeds) -> None:
    table = results_table("natural sentences for", "model pairs or groups", "each", "needed")
    for row in needs.rows:
        last = row is needs.rows[-1]
        numbers = ("", "") if last else (f"{row.times:,}", f"{row.each:,}")
        table.add_row(row.use, *numbers, f"{row.needed:,}")
    print_table(table)


def _synthesis(result: Synthesis | SymmetricPair) -> None:
    """A table of sentences and log-probabilities, why the search ended, and what it cost."""
    from contstim.optimization.search.symmetric import SymmetricPair

    if isinstance(result, SymmetricPair):
        names = names_for_tables(result.models)
        columns = list(names.values())
        climbs = result.climbs
        # Log-probabilities are models × sentences; a row of the table is a sentence. The first
        # climb scores model_2, which is to accept, before model_1.
        of_1, of_2 = zip(*result.log_probs, strict=True)
        of_natural = climbs[0].start_log_probs.tolist()
        rows = [
            ("natural", result.natural, (of_natural[1], of_natural[0], *of_natural[2:])),
            (f"{columns[0]} rejects", result.sentence_1, of_1),
            (f"{columns[1]} rejects", result.sentence_2, of_2),
        ]
        summary = f"Disagreement {result.disagreement:.2f} nats. "
    else:
        names = names_for_tables(result.models)
        columns = [
            f"{r}: {names[name]}" for r, name in zip(result.roles, result.models, strict=True)
        ]
        climbs = (result.climb,)
        rows = [
            ("natural", result.natural, result.natural_log_probs),
            ("synthetic", result.synthetic, result.log_probs),
        ]
        summary = ""
    table = results_table("", "sentence", *columns, texts=2)
    for kind, sentence, scores in rows:
        words = changed_words(sentence, result.natural)
        table.add_row(kind, words, *(f"{score:.2f}" for score in scores))
    print_table(table, names)
    console = terminal()
    steps = [step for climb in climbs for step in climb.steps]
    # A later start counts if a word was replaced from there; the first one counts always.
    starts = sum(len({0, *(step.round for step in climb.steps)}) for climb in climbs)
    visits = sum(climb.visits for climb in climbs)
    console.print(
        f"{summary}Log-probabilities in nats. {counted(len(steps), 'word')} replaced in "
        f"{counted(visits, 'visit')} from {counted(starts, 'start')}; ended because "
        f"{climbs[-1].end.value}."
    )
    history = result.history
    if len(history.searches) > 1:
        console.print(f"This is the {history.text}; {history.end.value}.")
    for name, cost in result.costs.items():
        if cost.rows:
            text = (
                f"{name} read {counted(cost.rows, 'sequence')} of {counted(cost.tokens, 'token')}."
            )
            console.print(text)


def _reviews(review: Review, n_items: int, kind: ItemKind) -> None:
    """Print the decisions of reviewers about items of a kind, in a few lines."""
    from contstim.reviews import Decision

    # A file may hold decisions about pairs, triplets and trials
    decisions = [item for item in review.decisions if item.kind is kind]
    for name in dict.fromkeys(item.reviewer for item in decisions):
        # By item, not by row: files may repeat each other's rows
        of_reviewer = {
            item.item_id: item.decision
            for item in decisions
            if item.reviewer == name and item.decision
        }
        n_decided = len(of_reviewer)
        n_rejected = list(of_reviewer.values()).count(Decision.REJECT)
        print(f"{name}: {n_decided:,} of {counted(n_items, kind)} decided, {n_rejected:,} rejected")
    names = {item.item_id for item in decisions}
    print(
        f"rejected by anybody: {len(review.rejected & names):,}; reviewers disagree: "
        f"{len(review.disagreements.keys() & names):,}"
    )


def _analysis(analysis: Analysis, *, quiet: bool) -> None:
    """Print who takes part, and how consistent each model is, on standard output."""
    from contstim.experiments.analysis.figures import shown

    remark(str(analysis.admission), quiet=quiet and not analysis.admission.excluded)
    if analysis.origin.warning:
        terminal().print(analysis.origin.warning, style="bold red", markup=False)
    results = shown(analysis)
    columns = [{row.model: row for row in result.models} for result in results]
    names = names_for_tables(analysis.ratings.models)
    headings = [
        f"{result.scope.name.lower()}\n{result.measure.name.rpartition('-')[2]}"
        for result in results
    ]
    whom = "artificial participants" if analysis.origin.simulated > 0 else "people"
    table = results_table("model", *headings, title=f"Consistency with {whom}")
    for model in analysis.ratings.models:
        # A dash where the model is not judged on these trials; a space keeps digits aligned.
        cells = [
            f"{column[model].value:.3f}{'*' if model in result.below_ceiling() else ' '}"
            if model in column
            else "–"
            for result, column in zip(results, columns, strict=True)
        ]
        table.add_row(names[model], *cells)
    print_table(table, names)
    print(_legend(analysis))


def _legend(analysis: Analysis) -> str:
    """Legend of the stars; where nothing can be tested, that a missing star says nothing."""
    from contstim.experiments.analysis.figures import shown

    legend = "* significantly below the noise ceiling on the same trials"
    cannot: dict[str, list[str]] = {}  # why nothing can be tested, "" where it can → scopes
    for result in shown(analysis):
        text = result.detectability.cannot(str(analysis.sampling.units))
        cannot.setdefault(text, []).append(result.scope.name.lower())
    # Nowhere can anything be tested, for one reason: a legend of stars would mislead
    if "" not in cannot and len(cannot) == 1:
        return f"Differences {next(iter(cannot))}."
    limits = [f"{', '.join(scopes)}: {text}" for text, scopes in cannot.items() if text]
    return "; ".join([legend, *limits])


def _mixed(analysis: MixedAnalysis) -> None:
    best_first = sorted(analysis.fits, key=lambda fit: -fit.log_likelihood)
    names, rated = names_for_tables([fit.name for fit in best_first]), analysis.empty.rated
    title = (
        f"{counted(rated.size, 'rating')}, "
        f"{counted(len(rated.participants), 'participant')}, "
        f"{counted(rated.n_trials, 'trial')}"
    )
    table = results_table(
        "model",
        "log-likelihood",
        "AIC",
        "effect of a\ntypical ratio",
        "95 %",
        "p, not\nadjusted",
        title=title,
    )
    for fit in best_first:
        (row,) = fit.coefficients
        low, high = (end * row.typical_ratio for end in (row.estimate.low, row.estimate.high))
        table.add_row(
            names[fit.name],
            f"{fit.log_likelihood:,.1f}",
            f"{fit.aic:,.0f}",
            f"{row.typical_effect:.2f}",
            f"{low:.2f} to {high:.2f}",
            p_text(row.estimate.p_value),
        )
    print_table(table, names)
    # Each model against the next best: whether the order can be relied on
    rows = {frozenset((row.first, row.second)): row for row in analysis.comparisons}
    for better, worse in pairwise(best_first):
        pair = rows[frozenset((better.name, worse.name))]
        sign = 1 if pair.first == better.name else -1
        low, high = sorted(sign * end for end in (pair.difference.low, pair.difference.high))
        print(
            f"{better.name} fits better than {worse.name} by {abs(pair.difference.value):.1f} nats "
            f"(95 %: {low:.1f} to {high:.1f}), adjusted {p_equation(pair.adjusted)}"
        )
    if analysis.comparisons:
        print(f"P-values are adjusted by Benjamini and Hochberg over {pair.family}.")


def _controls(tests: Sequence[TokenCountTest], preferences: Sequence[FeaturePreference]) -> None:
    for test in tests:
        where = (
            "where people prefer the other sentence" if test.errors_only else "on all its trials"
        )
        interval = f" (95 %: {test.low:.1%} to {test.high:.1%})" if test.pairs else ""
        print(
            f"{test.model} prefers fewer tokens {where}: {test.fewer:,} of {test.pairs:,}"
            f"{interval}, adjusted {p_equation(test.adjusted)}"
        )
    for row in preferences:
        apart = row.difference
        print(
            f"{row.model} prefers more {row.feature} in {row.model_share:.1%} of "
            f"{counted(row.trials, 'trial')}, people in {row.people_share:.1%}; difference of "
            f"{row.feature} {apart.value:.3g} (95 %: {apart.low:.3g} to {apart.high:.3g}), "
            f"adjusted {p_equation(row.adjusted)}"
        )
    families = dict.fromkeys([test.family for test in tests] + [row.family for row in preferences])
    if families:
        print(f"P-values are adjusted by Benjamini and Hochberg over: {'; '.join(families)}.")


def _claims(compared: Sequence[tuple[str, str, str]], page: Path, *, quiet: bool) -> None:
    """Print the claims; status 1 if one does not hold."""
    table = results_table("", "published", "ours", "", texts=4, title="Published claims")
    table.show_lines = True  # claims are sentences of several lines
    for about, published, ours in compared:
        table.add_row(about, published, ours, "holds" if published == ours else "does not hold")
    print_table(table)
    failed = sum(published != ours for _, published, ours in compared)
    print(f"{len(compared) - failed} of {len(compared)} claims hold.")
    remark_folder(page, quiet=quiet)
    # After everything is written and printed: the status is for scripts
    if failed:
        raise typer.Exit(1)


def _print_statistics(results: TripletResults) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    names = names_for_tables(list(results.conventions))
    table = Table(box=SIMPLE_HEAD)
    table.add_column("models", overflow="fold")
    for name in ("triplets", "Eq. 4", "drop 1", "drop 2", "passes", "unchanged", "failed"):
        table.add_column(name, justify="right", no_wrap=True)
    for pair in results.pairs:
        means = (pair.controversiality, pair.drop_1, pair.drop_2)
        table.add_row(
            f"{names[pair.model_1]}\n× {names[pair.model_2]}",
            f"{pair.triplets:,}",
            *("–" if mean is None else f"{mean:.2f}" for mean in means),
            f"{pair.rows:,}",
            f"{pair.unchanged:,}",
            f"{pair.failed:,}",
        )
    print_table(table, names)
    terminal().print(
        "Means in nats: controversiality (Eq. 4), and how far each model's score falls; passes of "
        "both networks, in all."
    )


def _tell_failures(results: TripletResults, *, quiet: bool) -> None:
    from contstim.optimization.jobs.tasks import SEEDS

    if results.unchanged:
        remark(
            f"The searches named above found nothing with {SEEDS} seeds; their sentences are not "
            f"in the table. For others in their place raise --per-pair, or give more words."
        )
    if results.failures:
        remark("Run the same command with --retry-failed to try them again.")
    for pair in results.pairs:
        if pair.inadmissible:
            reasons = ", ".join(f"{number:,} {reason}" for reason, number in pair.reasons.items())
            replaced = f"for {pair.missing:,} there is no other" if pair.missing else "all replaced"
            remark(
                f"{pair.model_1} × {pair.model_2}: "
                f"{counted(pair.inadmissible, 'natural sentence')} passed over ({reasons}); "
                f"{replaced}.",
                quiet=quiet and not pair.missing,
            )
