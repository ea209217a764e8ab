"""The statistics of an analysis as a methods section says them, with the numbers of this one."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from contstim.experiments.analysis.crossed import BOTH
from contstim.experiments.analysis.families import CEILING, CORRECTIONS
from contstim.scale import Scale
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contstim.experiments.analysis.run import Analysis

REFERENCES = {
    "golan": "Golan, T., Siegelman, M., Kriegeskorte, N., & Baldassano, C. (2023). Testing the "
    "limits of natural language models for predicting human language judgements. Nature Machine "
    "Intelligence, 5, 952-964.",
    "wilcoxon": "Wilcoxon, F. (1945). Individual comparisons by ranking methods. Biometrics "
    "Bulletin, 1(6), 80-83.",
    "schuett": "Schütt, H. H., Kipnis, A. D., Diedrichsen, J., & Kriegeskorte, N. (2023). "
    "Statistical inference on representational geometries. eLife, 12, e82566.",
    "efron": "Efron, B. (1979). Bootstrap methods: Another look at the jackknife. Annals of "
    "Statistics, 7(1), 1-26.",
    "satterthwaite": "Satterthwaite, F. E. (1946). An approximate distribution of estimates of "
    "variance components. Biometrics Bulletin, 2(6), 110-114.",
    "kerby": "Kerby, D. S. (2014). The simple difference formula: An approach to teaching "
    "nonparametric correlation. Comprehensive Psychology, 3, 11.IT.3.1.",
    "newcombe": "Newcombe, R. G. (2006). Confidence intervals for an effect size measure based on "
    "the Mann-Whitney statistic. Part 2: Asymptotic methods and evaluation. Statistics in "
    "Medicine, 25(4), 559-573.",
    "oneill": "O'Neill, B. (2014). Some useful moment results in sampling problems. The American "
    "Statistician, 68(4), 282-296.",
    "schuirmann": "Schuirmann, D. J. (1987). A comparison of the two one-sided tests procedure and "
    "the power approach for assessing the equivalence of average bioavailability. Journal of "
    "Pharmacokinetics and Biopharmaceutics, 15(6), 657-680.",
    "westfall": "Westfall, J., Kenny, D. A., & Judd, C. M. (2014). Statistical power and optimal "
    "design in experiments in which samples of participants respond to samples of stimuli. "
    "Journal of Experimental Psychology: General, 143(5), 2020-2045.",
    "bh": "Benjamini, Y., & Hochberg, Y. (1995). Controlling the false discovery rate: A practical "
    "and powerful approach to multiple testing. Journal of the Royal Statistical Society B, 57(1), "
    "289-300.",
    "by": "Benjamini, Y., & Yekutieli, D. (2005). False discovery rate-adjusted multiple "
    "confidence intervals for selected parameters. Journal of the American Statistical "
    "Association, 100(469), 71-81.",
    "hodges": "Hodges, J. L., & Lehmann, E. L. (1963). Estimates of location based on rank tests. "
    "Annals of Mathematical Statistics, 34(2), 598-611.",
    "wilson": "Wilson, E. B. (1927). Probable inference, the law of succession, and statistical "
    "inference. Journal of the American Statistical Association, 22(158), 209-212.",
    "clopper": "Clopper, C. J., & Pearson, E. S. (1934). The use of confidence or fiducial limits "
    "illustrated in the case of the binomial. Biometrika, 26(4), 404-413.",
    "holm": "Holm, S. (1979). A simple sequentially rejective multiple test procedure. "
    "Scandinavian Journal of Statistics, 6(2), 65-70.",
    "cameron": "Cameron, A. C., Gelbach, J. B., & Miller, D. L. (2011). Robust inference with "
    "multiway clustering. Journal of Business & Economic Statistics, 29(2), 238-249.",
}
_TESTS = {
    "groups": "Wilcoxon's signed-rank test over the means of {groups} (Wilcoxon 1945), each with "
    "trials of its own, so that it speaks of items like these",
    "participants": "Wilcoxon's signed-rank test over {people} (Wilcoxon 1945). People of a group "
    "rated the same trials, so that it speaks of these very items, not of others like them",
    "crossed": "a t-test that takes people and items as crossed random factors: the difference by "
    "its standard error below, with the same degrees of freedom",
}


def methods_text(analysis: Analysis) -> tuple[str, ...]:
    """Paragraphs for a methods section; the last lists the references.

    What was measured, which tests of which family with which correction, and what intervals speak
    of, for this analysis: its numbers of people, groups and contrasts, and what was asked for.

    Args:
        analysis: what `analyze` returned.
    """
    cited = ["golan", {"crossed": "schuett"}.get(str(analysis.sampling.units), "wilcoxon")]
    cited += [analysis.sampling.correction, "westfall", "cameron", "schuirmann"]
    cited += [] if analysis.sampling.units == "crossed" else ["kerby", "newcombe"]
    if _is_corrected(analysis):
        cited += ["schuett", "satterthwaite", "oneill", "wilson", "clopper"]
        cited += ["by"] if analysis.sampling.correction == "bh" else []
        cited += [] if analysis.sampling.units == "crossed" else ["hodges"]
    else:
        cited.append("efron")
    sureness = (
        "People chose one of two sentences; how sure they were was not asked, so that accuracies "
        "alone are compared (Golan et al. 2023)."
        if analysis.ratings.scale is Scale.CHOICE
        else "The signed-rank cosine also compares how sure model and people are (Golan et al. "
        "2023, Eqs. 7-11)."
    )
    references = sorted(REFERENCES[name] for name in dict.fromkeys(cited))
    catch = (
        "Catch trials count in overall results, as published; since people who fail them are left "
        "out, those who stay agree on them, whatever a model says."
        if analysis.sampling.catch_trials
        else "Catch trials decide who takes part and evaluate no model."
    )
    return (
        "A model prefers the sentence of higher log-probability (nats); a tie counts one half. "
        f"{sureness} The lower noise ceiling predicts each person from the others, the upper from "
        "everybody; both on the trials that evaluate the model. In controversial conditions these "
        "are the trials that target it. " + catch + " A model that is the truth reaches or passes "
        "the lower ceiling, since the others' answers hold noise of their own.",
        " ".join(_tests(analysis)),
        " ".join(_intervals(analysis)),
        "The regressions of choices on log-probability ratios have standard errors clustered by "
        "participants and by trials (Cameron et al. 2011); their p-values are those of single "
        "tests and belong to no family.",
        "References: " + " ".join(references),
    )


def _is_corrected(analysis: Analysis) -> bool:
    return analysis.sampling.intervals == "corrected"


def _tests(analysis: Analysis) -> Iterator[str]:
    sampling, ratings = analysis.sampling, analysis.ratings
    units = sampling.units or "groups"
    groups = counted(len(ratings.groups), "group")
    people = counted(len(ratings.participants), "participant")
    test = _TESTS[units].format(groups=groups, people=people)
    yield f"{people} in {groups} were analysed. Contrasts were tested by {test}."
    # How many contrasts scopes have, such as 6 families of 45: (contrasts, pairs) → families.
    sizes = Counter(
        (len(result.comparisons), sum(row.second != CEILING for row in result.comparisons))
        for result in analysis.results
    )
    stated = "; ".join(
        f"{counted(size, 'contrast')} ({counted(pairs, 'pair')} of models, "
        f"{counted(size - pairs, 'model')} against the lower noise ceiling) in "
        f"{'one family' if number == 1 else f'each of {number} families'}"
        for (size, pairs), number in sizes.items()
    )
    kind, _, author = CORRECTIONS[sampling.correction].rstrip(")").partition(" (")
    year = {"bh": 1995, "holm": 1979}[sampling.correction]
    yield (
        f"All contrasts of a measure on one kind of trials are a family: {stated}. P-values were "
        f"adjusted over each family for a {kind} of {sampling.false_discovery_rate:g} ({author} "
        f"{year})."
    )
    yield (
        "Effect sizes are the differences themselves, with intervals, and the same in standard "
        "deviations of the difference on single answers, to which people, items and all else "
        "contribute (after Westfall et al. 2014)."
    )
    yield (
        f"Differences below {sampling.smallest_effect:g} were taken not to matter: each contrast "
        "was also tested for being smaller than that, by two one-sided t-tests (Schuirmann 1987) "
        "with the variance of two factors (Schütt et al. 2023), adjusted likewise. What is neither "
        "different nor equivalent is undecided, or untestable with so few units."
    )
    if not _is_corrected(analysis):
        yield (
            "A test and an interval may disagree: intervals are percentiles at "
            f"{sampling.level:.0%}, tests are adjusted over their family."
        )
    else:
        level = (
            "of the intervals of significant differences as many miss, on average, as that rate "
            "allows (Benjamini & Yekutieli 2005)"
            if sampling.correction == "bh"
            else "it is that of the last step"
        )
        inverted = (
            "They invert the t-test"
            if units == "crossed"
            else "They invert the signed-rank test (Hodges & Lehmann 1963)"
        )
        yield (
            f"Intervals of differences are at the level at which the family decides: {level}. "
            f"{inverted}, so that a difference is significant if and only if its interval leaves "
            "out zero."
        )
    if units != "crossed":
        yield (
            "Beside signed-rank tests stands their own effect size, the matched-pairs "
            "rank-biserial correlation (Kerby 2014), with a score interval (as Newcombe's, 2006, "
            "for the Mann-Whitney statistic)."
        )


def _intervals(analysis: Analysis) -> Iterator[str]:
    sampling = analysis.sampling
    intervals = [interval for result in analysis.results for interval in result.intervals]
    if not _is_corrected(analysis):
        yield (
            f"Intervals hold {sampling.level:.0%} of {sampling.samples:,} bootstrap resamples of "
            f"both participants and trials of each group (Efron 1979; seed {sampling.seed}). "
            "Resampling both counts the scatter of single answers more than once, so that these "
            "intervals are wide (Schütt et al. 2023)."
        )
        return
    yield (
        f"Intervals hold {sampling.level:.0%} by Student's t with a variance of two factors: new "
        "people and new items, such as these. It is what the corrected two-factor bootstrap "
        "estimates (Schütt et al. 2023), in closed form: the scatter of items, found by leaving "
        "each out (a jackknife), and the scatter of people beyond what single answers explain. "
        "Degrees of freedom are Satterthwaite's (1946), and fewer where a few items decide a "
        "result (O'Neill 2014). Intervals of values are Wilson's (1927), for as many independent "
        "answers as have this variance; where answers hardly vary, one more item is reckoned with, "
        "on which all answers are alike, and differences have the limits of Clopper & Pearson "
        "(1934)."
    )
    freedom = [interval.degrees_of_freedom for interval in intervals]
    finite = [value for value in freedom if math.isfinite(value)]
    if finite:
        yield f"They range from {min(finite):.1f} to {max(finite):.1f} here."
    notes = Counter(interval.note for interval in intervals if interval.note)
    for note, number in notes.items():
        yield f"In {number:,} of {len(intervals):,} intervals: {note}."
    if any(interval.population != BOTH for interval in intervals):
        yield "The column population of the tables says what each interval speaks of."
