"""Texts that a publication needs, each a template beside this file that facts fill in.

datasheet.md.jinja         the materials: how items were made, chosen, left out and shared out
methods.md.jinja           a methods section to paste
preregistration.md.jinja   a draft with the fields of OSF's standard template
readme.md.jinja            what an archive says of itself

Every number is counted in tables, or that of records and certificates. The current folder is the
study's.
"""

from __future__ import annotations

import platform
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from contstim.reporting.report import Bullets, Heading, Report
from contstim.reporting.templates import filled
from contstim.study.handing_on.facts import for_each
from contstim.study.places import NATURAL, PAIRS, SCORES, SELECTED, TRIALS, TRIPLETS
from contstim.version import __version__
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.study.handing_on.facts import StudyFacts
    from contstim.study.handing_on.manifest import ArchivedFile, HubModel

TO_FILL_IN = "To fill in: "
"""Beginning of every question that only the authors can answer."""

_OWN_PAGES = {"jspsych", "jatos"}  # on which our own page shows the trials
_SEARCH = ("capitals", "plausible", "judge", "fluency", "max_changes", "same_length", "word_cap")


REFERENCES = {
    "Benjamini & Hochberg, 1995": "Benjamini, Y., & Hochberg, Y. (1995). Controlling the false "
    "discovery rate: A practical and powerful approach to multiple testing. Journal of the Royal "
    "Statistical Society: Series B, 57(1), 289-300.",
    "Chen & Goodman, 1999": "Chen, S. F., & Goodman, J. (1999). An empirical study of smoothing "
    "techniques for language modeling. Computer Speech & Language, 13(4), 359-394. "
    "https://doi.org/10.1006/csla.1999.0128",
    "Efron, 1979": "Efron, B. (1979). Bootstrap methods: Another look at the jackknife. The Annals "
    "of Statistics, 7(1), 1-26.",
    "Golan et al., 2023": "Golan, T., Siegelman, M., Kriegeskorte, N., & Baldassano, C. (2023). "
    "Testing the limits of natural language models for predicting human language judgements. "
    "Nature Machine Intelligence, 5, 952-964. https://doi.org/10.1038/s42256-023-00718-1",
    "Heafield et al., 2013": "Heafield, K., Pouzyrevsky, I., Clark, J. H., & Koehn, P. (2013). "
    "Scalable modified Kneser-Ney language model estimation. Proceedings of the 51st Annual "
    "Meeting of the Association for Computational Linguistics, 690-696.",
    "Kauf & Ivanova, 2023": "Kauf, C., & Ivanova, A. (2023). A better way to do masked language "
    "model scoring. Proceedings of the 61st Annual Meeting of the Association for Computational "
    "Linguistics (Volume 2: Short Papers), 925-935.",
    "Pauls & Klein, 2012": "Pauls, A., & Klein, D. (2012). Large-scale syntactic language modeling "
    "with treelets. Proceedings of the 50th Annual Meeting of the Association for Computational "
    "Linguistics, 959-968.",
    "Perron & Furnon": "Perron, L., & Furnon, V. OR-Tools{or-tools}. Google. "
    "https://developers.google.com/optimization/",
    "Holm, 1979": "Holm, S. (1979). A simple sequentially rejective multiple test procedure. "
    "Scandinavian Journal of Statistics, 6(2), 65-70.",
    "Huangfu & Hall, 2018": "Huangfu, Q., & Hall, J. A. J. (2018). Parallelizing the dual revised "
    "simplex method. Mathematical Programming Computation, 10(1), 119-142.",
    "Salazar et al., 2020": "Salazar, J., Liang, D., Nguyen, T. Q., & Kirchhoff, K. (2020). Masked "
    "language model scoring. Proceedings of the 58th Annual Meeting of the Association for "
    "Computational Linguistics, 2699-2712.",
    "Schuirmann, 1987": "Schuirmann, D. J. (1987). A comparison of the two one-sided tests "
    "procedure and the power approach for assessing the equivalence of average bioavailability. "
    "Journal of Pharmacokinetics and Biopharmaceutics, 15(6), 657-680.",
    "Schütt et al., 2023": "Schütt, H. H., Kipnis, A. D., Diedrichsen, J., & Kriegeskorte, N. "
    "(2023). Statistical inference on representational geometries. eLife, 12, e82566.",
    "van Heuven et al., 2014": "van Heuven, W. J. B., Mandera, P., Keuleers, E., & Brysbaert, M. "
    "(2014). SUBTLEX-UK: A new and improved word frequency database for British English. "
    "Quarterly Journal of Experimental Psychology, 67(6), 1176-1190.",
    "Wilcoxon, 1945": "Wilcoxon, F. (1945). Individual comparisons by ranking methods. Biometrics "
    "Bulletin, 1(6), 80-83.",
}
"""Each work by the words that cite it; `{or-tools}` is the version that was used."""


def datasheet(facts: StudyFacts, doubts: Sequence[str] = ()) -> Report:
    """The datasheet of the materials.

    Args:
        facts: of the study.
        doubts: what does not hold of its results, one sentence each.
    """
    seen = facts.record(SCORES).get("training_text", {})
    report = _filled(
        "datasheet",
        facts,
        doubts=doubts,
        seen={name: numbers for name, numbers in seen.items() if isinstance(numbers, dict)},
        kept=facts.record(NATURAL).get("kept"),
        rivals={each["name"]: each["between"] for each in facts.conditions if each["rivals"]},
    )
    warning = ""
    if facts.simulated:
        people = counted(len(facts.participants), "participant")
        warning = f"{facts.simulated:,} of {people} are artificial."
    return replace(report, warning=warning)


def methods(facts: StudyFacts) -> Report:
    """A methods section to paste."""
    return _filled(
        "methods",
        facts,
        left_out=facts.record(NATURAL).get("left_out", {}),
        own_page=bool(_OWN_PAGES & facts.study.exports.keys()),
        excluded=Counter(facts.analysis.get("left_out", {}).values()),
    )


def preregistration(facts: StudyFacts) -> Report:
    """A draft of a preregistration."""
    return _filled("preregistration", facts)


def readme_text(
    facts: StudyFacts,
    to_supply: Sequence[ArchivedFile],
    hub: Sequence[HubModel],
    doubts: Sequence[str],
    *,
    has_page: bool,
) -> str:
    """The README of an archive, in Markdown.

    Args:
        facts: of the study.
        to_supply: inputs that the receiver is to supply.
        hub: models of the hub.
        doubts: what does not hold of the results, one sentence each.
        has_page: whether the archive has the page of the study.
    """
    given = {"to_supply": to_supply, "hub": hub, "doubts": doubts, "has_page": has_page}
    python = platform.python_version()
    return _filled("readme", facts, study=facts.study.path.name, python=python, **given).markdown()


def _filled(name: str, facts: StudyFacts, **more: Any) -> Report:
    """A text with the works that it cites."""
    words = dict.fromkeys((*_SEARCH, "fix", "allow", "exclude"))
    search = facts.record(TRIPLETS)
    report = filled(
        "contstim.study.handing_on",
        f"{name}.md.jinja",
        facts=facts,
        version=__version__,
        for_each=for_each,
        search=search and {**words, **search},
        pairs_proof=facts.certificate(PAIRS),
        selection_proof=facts.certificate(SELECTED),
        agreed=len(facts.record(PAIRS).get("not_controversial", [])),
        **more,
    )
    proofs = [facts.certificate(path) for path in (PAIRS, SELECTED, TRIALS)]
    solvers = [proof for proof in proofs if proof.get("solver", "").startswith("OR-tools")]
    works = works_in(report.markdown(), solvers[0]["version"] if solvers else "")
    # What an analysis says of its statistics lists its works itself
    heading = [] if name == "preregistration" else [Heading("References")]
    return replace(report, parts=(*report.parts, *heading, Bullets(works))) if works else report


def works_in(text: str, or_tools: str = "") -> list[str]:
    """The works that a text cites, as `Golan et al., 2023` or `Golan et al. (2023)`.

    Args:
        text: in Markdown.
        or_tools: the version of that program; empty where it is not known.
    """
    plain, works = text.replace("\\", ""), []
    for work, reference in REFERENCES.items():
        authors, _, year = work.rpartition(", ")
        if work in plain or f"{authors} ({year})" in plain:
            version = f" (version {or_tools})" if or_tools else ""
            works.append(reference.replace("{or-tools}", version))
    return sorted(works, key=str.casefold)
