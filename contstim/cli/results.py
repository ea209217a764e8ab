"""Results of steps on standard output, most as a table of rows."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import typer

from contstim.cli.output import (
    changed_words,
    names_for_tables,
    print_rows,
    print_summary,
    print_table,
    remark,
    remark_folder,
    results_table,
    terminal,
)
from contstim.wording import counted, p_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.evaluation.criteria import AcceptabilityEvaluation
    from contstim.experiments.analysis.intervals import Estimate
    from contstim.experiments.analysis.mixed.models import MixedAnalysis
    from contstim.experiments.analysis.run import Analysis
    from contstim.experiments.analysis.tables import Row
    from contstim.models.scoring import ModelScores
    from contstim.optimization.jobs.results import TripletResults
    from contstim.optimization.search.synthesize import SymmetricPair, Synthesis
    from contstim.reviews import ItemKind, Review
    from contstim.steps.evaluation import Comparison
    from contstim.steps.sentences import FindSentences, NaturalSentences


# What to look at first of the folder of a step, by the first word of its command
_PAGES = {"mixed": "fits.csv", **dict.fromkeys(("analyze", "evaluate", "reproduce"), "report.html")}


def show_result(step: Any, value: Any, *, quiet: bool) -> None:
    """Print what a step found, as its command does; nothing of steps that say all themselves."""
    match step.name:
        case "score":
            _scores(value, quiet=quiet)
        case "sentences":
            _sentences(step, value)
        case "synthesize":
            _synthesized(step, value)
        case "triplets":
            _triplets(value, quiet=quiet)
        case "review" if step.review:
            from contstim.reviews import read_reviews

            _reviews(read_reviews(step.review), len(value.items), value.items[0].kind)
        case "analyze":
            _analysis(value, quiet=quiet)
        case "mixed":
            _mixed(value)
        case "controls":
            _controls(*value)
        case "compare":
            _comparison(value)
        case "train acceptability":
            from contstim.evaluation.folder import page_table

            for name in ("summary", "features"):
                if value.tables[name]:
                    print_summary("Matthews correlation", page_table(value.tables[name]), ())
        case "reproduce golan2023":
            _analysis(value[0], quiet=quiet)
            _claims(value[1])
        case "reproduce adc":
            _criteria(value[0], quiet=quiet)
            _claims(value[1])
        case "evaluate blimp":
            from contstim.evaluation.minimal_pair_report import accuracy_table

            table = accuracy_table(value)
            names = [str(name) for name, *_ in table.rows]
            print_summary("Accuracy on minimal pairs (95 % interval)", table, names)
        case "evaluate acceptability":
            _criteria(value, quiet=quiet)
        case "evaluate desiderata":
            from contstim.evaluation.desiderata_report import desiderata_summary

            print_summary("Desiderata of scoring rules", desiderata_summary(value), value.models)
        case name if name.startswith("import "):
            print(value.report)
    if page := _PAGES.get(step.name.split()[0]):
        remark_folder(step.out / page, quiet=quiet)
    # After everything is written and printed: the status is for scripts
    if step.name.startswith("reproduce") and any(said != ours for _, said, ours in value[1]):
        raise typer.Exit(1)


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
        *uses, in_all = found.needs.rows
        header = ("natural sentences for", "model pairs or groups", "each", "needed")
        print_rows(header, [*uses, (in_all[0], "", "", in_all[3])])
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
    for gain, reason, loosened_by in costs:
        if gain > 0:
            by = as_flags(loosened_by, type(step))
            remark(f"  {gain:>+9,} left out only because {reason} ({by})")
    if all(gain <= 0 for gain, *_ in costs):
        remark("  No single rule gains any.")


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


def _synthesized(step: Any, value: Any) -> None:
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


def _synthesis(result: Synthesis | SymmetricPair) -> None:
    """A table of sentences and log-probabilities, why the search ended, and what it cost."""
    from contstim.optimization.search.synthesize import SymmetricPair

    names = names_for_tables(result.models)
    columns = [*names.values()]
    if isinstance(result, SymmetricPair):
        climbs = result.climbs
        # Log-probabilities are models × sentences; a row of the table is a sentence. The first
        # climb scores model_2, which is to accept, before model_1.
        of_1, of_2 = zip(*result.log_probs, strict=True)
        second, first, *others = climbs[0].start.log_probs.tolist()
        rows = [
            ("natural", result.natural, (first, second, *others)),
            (f"{columns[0]} rejects", result.sentence_1, of_1),
            (f"{columns[1]} rejects", result.sentence_2, of_2),
        ]
        summary = f"Disagreement {result.disagreement:.2f} nats. "
    else:
        columns = [f"{r}: {name}" for r, name in zip(result.roles, columns, strict=True)]
        climbs, summary = (result.climb,), ""
        rows = [
            ("natural", result.natural, result.natural_log_probs),
            ("synthetic", result.synthetic, result.log_probs),
        ]
    table = results_table("", "sentence", *columns, texts=2)
    for kind, sentence, scores in rows:
        words = changed_words(sentence, result.natural)
        table.add_row(kind, words, *(f"{score:.2f}" for score in scores))
    print_table(table, names)
    n_steps = sum(len(climb.steps) for climb in climbs)
    # A later start counts if a word was replaced from there; the first one counts always.
    starts = sum(len({0, *(step.round for step in climb.steps)}) for climb in climbs)
    visits = sum(climb.visits for climb in climbs)
    lines = [
        f"{summary}Log-probabilities in nats. {counted(n_steps, 'word')} replaced in "
        f"{counted(visits, 'visit')} from {counted(starts, 'start')}; ended because "
        f"{climbs[-1].end}."
    ]
    if len(result.searches) > 1:
        lines.append(
            f"This is the best of {len(result.searches)} searches, the last {result.in_vain} of "
            f"which gained next to nothing; {result.end_of_searches}."
        )
    lines += [
        f"{name} read {counted(cost.rows, 'sequence')} of {counted(cost.tokens, 'token')}."
        for name, cost in result.costs.items()
        if cost.rows
    ]
    for line in lines:
        terminal().print(line)


def _triplets(results: TripletResults, *, quiet: bool) -> None:
    """Print means of each pair of models, and say what failed and was passed over."""
    from contstim.optimization.jobs.tasks import SEEDS

    if not quiet:
        models, rows = [*results.conventions], []
        names = names_for_tables(models)
        for pair in results.pairs:
            means = (pair.controversiality, pair.drop_1, pair.drop_2)
            shown = ("–" if mean is None else f"{mean:.2f}" for mean in means)
            numbers = (pair.rows, pair.unchanged, pair.failed)
            both = f"{names[pair.model_1]}\n× {names[pair.model_2]}"
            rows.append((both, pair.triplets, *shown, *numbers))
        header = ("models", "triplets", "Eq. 4", "drop 1", "drop 2", "passes", "unchanged")
        print_rows((*header, "failed"), rows, models=models)
        terminal().print(
            "Means in nats: controversiality (Eq. 4), and how far each model's score falls; "
            "passes of both networks, in all."
        )
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


def _reviews(review: Review, n_items: int, kind: ItemKind) -> None:
    """Print the decisions of reviewers about items of a kind, in a few lines."""
    from contstim.reviews import Decision

    # A file may hold decisions about pairs, triplets and trials
    decisions = [item for item in review.decisions if item.kind is kind]
    for name in dict.fromkeys(item.reviewer for item in decisions):
        # By item, not by row: files may repeat each other's rows
        own = {i.item_id: i.decision for i in decisions if i.reviewer == name and i.decision}
        rejected = [*own.values()].count(Decision.REJECT)
        print(f"{name}: {len(own):,} of {counted(n_items, kind)} decided, {rejected:,} rejected")
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
    columns = [{row["model"]: row["value"] for row in result.models} for result in results]
    headings = [
        f"{result.scope.name.lower()}\n{result.measure.name.rpartition('-')[2]}"
        for result in results
    ]
    whom = "artificial participants" if analysis.origin.simulated > 0 else "people"
    models = analysis.ratings.models
    # A dash where the model is not judged on these trials; a space keeps digits aligned.
    rows = []
    for model in models:
        cells = [
            f"{column[model]:.3f}{'*' if model in result.below_ceiling() else ' '}"
            if model in column
            else "–"
            for result, column in zip(results, columns, strict=True)
        ]
        rows.append((model, *cells))
    print_rows(("model", *headings), rows, title=f"Consistency with {whom}", models=models)
    cannot: dict[str, list[str]] = {}  # why nothing can be tested, "" where it can → scopes
    for result in results:
        text = result.detectability.cannot(str(analysis.sampling.units))
        cannot.setdefault(text, []).append(result.scope.name.lower())
    # Nowhere can anything be tested, for one reason: a legend of stars would mislead
    if "" not in cannot and len(cannot) == 1:
        print(f"Differences {next(iter(cannot))}.")
    else:
        limits = [f"{', '.join(scopes)}: {text}" for text, scopes in cannot.items() if text]
        stars = "* significantly below the noise ceiling on the same trials"
        print("; ".join([stars, *limits]))


def _interval(estimate: Estimate, times: float = 1.0) -> str:
    low, high = sorted((times * estimate.low, times * estimate.high))
    return f"{low:.3g} to {high:.3g}"


def _mixed(analysis: MixedAnalysis) -> None:
    best_first = sorted(analysis.fits, key=lambda fit: -fit.log_likelihood)
    names, rated = [fit.name for fit in best_first], analysis.empty.rated
    rows: list[tuple[object, ...]] = []
    for fit in best_first:
        (row,) = fit.coefficients
        estimate = row["estimate"]
        interval = _interval(estimate, row["typical_ratio"])
        fitted = (fit.name, f"{fit.log_likelihood:,.1f}", f"{fit.aic:,.0f}")
        effect = f"{row['typical_effect']:.2f}"
        rows.append((*fitted, effect, interval, p_text(estimate.p_value)))
    header = ("model", "log-likelihood", "AIC", "effect of a\ntypical ratio", "95 %")
    title = (
        f"{counted(rated.size, 'rating')}, {counted(len(rated.participants), 'participant')}, "
        f"{counted(rated.n_trials, 'trial')}"
    )
    print_rows((*header, "p, not\nadjusted"), rows, title=title, models=names)
    # Each model against the next best: whether the order can be relied on
    pairs = {frozenset((row["first"], row["second"])): row for row in analysis.comparisons}
    rows = []
    for better, worse in pairwise(names):
        pair = pairs[frozenset((better, worse))]
        interval = _interval(pair["difference"], 1 if pair["first"] == better else -1)
        nats = f"{abs(pair['difference'].value):.1f}"
        rows.append((better, worse, nats, interval, p_text(pair["adjusted"])))
    if rows:
        header = ("fits better", "than", "by nats", "95 %", "p")
        print_rows(header, rows, texts=2, title="Next best models", models=names)
        print(f"These p-values are adjusted (Benjamini, Hochberg) over {pair['family']}.")


def _controls(tests: Sequence[Row], preferences: Sequence[Row]) -> None:
    models = [row["model"] for row in (*tests, *preferences)]
    families = dict.fromkeys(row["family"] for row in (*tests, *preferences))
    counts = []
    for test in tests:
        trials = "where people prefer the other" if test["errors_only"] else "all"
        interval = f"{test['low']:.1%} to {test['high']:.1%}" if test["pairs"] else ""
        numbers = (test["fewer"], test["pairs"], interval, p_text(test["adjusted"]))
        counts.append((test["model"], trials, *numbers))
    if counts:
        header = ("model", "trials", "fewer preferred", "of", "95 %", "p")
        print_rows(header, counts, texts=2, title="Numbers of tokens", models=models)
    features = []
    for row in preferences:
        difference = row["difference"]
        shares = (f"{row['model_share']:.1%}", f"{row['people_share']:.1%}", row["trials"])
        tested = (f"{difference.value:.3g}", _interval(difference), p_text(row["adjusted"]))
        features.append((row["model"], row["feature"], *shares, *tested))
    if features:
        headings = ("model", "prefers more", "in", "people in", "of trials", "difference", "95 %")
        title = "Features of sentences"
        print_rows((*headings, "p"), features, texts=2, title=title, models=models)
    if families:
        print(f"P-values are adjusted (Benjamini, Hochberg) over: {'; '.join(families)}.")


def _claims(compared: Sequence[tuple[str, str, str]]) -> None:
    rows = [
        (about, published, ours, "holds" if published == ours else "does not hold")
        for about, published, ours in compared
    ]
    print_rows(("", "published", "ours", ""), rows, texts=4, title="Published claims")
    print(f"{sum(row[1] == row[2] for row in rows)} of {len(rows)} claims hold.")
