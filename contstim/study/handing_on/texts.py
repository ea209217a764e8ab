"""Texts for a publication: templates in this folder, filled with facts of the study.

datasheet.md.jinja         the materials: how items were made, selected, excluded and assigned
methods.md.jinja           a methods section to paste into a paper
items.md.jinja             sentences on settings of the items, for datasheet and methods
models.md.jinja            sentences on scoring and training, for datasheet and methods
analysis.md.jinja          sentences on the planned analysis, for methods and preregistration
preregistration.md.jinja   a draft with the fields of OSF's standard template
readme.md.jinja            README of an archive

All numbers come from tables, records, certificates and the study file. A record is a JSON file next
to an output, about the command that wrote the output. A certificate is a JSON file with proof that
a selection is optimal. The current folder must be the study's folder.
"""

from __future__ import annotations

import platform
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from contstim.experiments.platforms.jspsych.study import PageSettings
from contstim.items.matching import ENOUGH
from contstim.optimization.jobs.question import SearchQuestion
from contstim.reporting.report import Bullets, Heading, Report
from contstim.reporting.templates import fill_template, works_in
from contstim.steps.design import MakeDesign
from contstim.steps.evaluation import EvaluateMinimalPairs
from contstim.steps.platforms import ExportTrials
from contstim.steps.selection import SelectMinimalPairs, SelectPairs, SelectTriplets
from contstim.steps.sentences import FindSentences
from contstim.steps.triplets import SearchTriplets
from contstim.version import __version__
from contstim.wording import quantity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.study.handing_on.facts import StudyFacts
    from contstim.study.handing_on.manifest import ArchivedFile

TO_FILL_IN = "To fill in: "
"""Beginning of each question that only the authors can answer."""

_OR_TOOLS = "https://developers.google.com/optimization/"
# Settings of searches; the record of the searches contains a setting only if it is set
_SEARCH = (*(field.name for field in fields(SearchQuestion)), "capitals", "plausible", "enough_sds")


def datasheet(facts: StudyFacts, doubts: Sequence[str] = ()) -> Report:
    """Return the datasheet of the materials.

    `doubts` are sentences about stages that are not up to date and files that were changed by hand.
    """
    report = _fill(
        "datasheet",
        facts,
        doubts=doubts,
        kept=facts.record(FindSentences).get("kept"),
        rivals={
            condition["name"]: condition["between"]
            for condition in facts.conditions
            if condition["rivals"]
        },
    )
    warning = ""
    if facts.simulated:
        people = quantity(len(facts.participants), "participant")
        warning = f"{facts.simulated:,} of {people} are artificial."
    return replace(report, warning=warning)


def methods(facts: StudyFacts) -> Report:
    """Return a methods section to paste into a paper."""
    exports = [step.settings for step in facts.study.steps(ExportTrials)]
    return _fill(
        "methods",
        facts,
        left_out=facts.record(FindSentences).get("left_out", {}),
        own_page=next((s for s in exports if isinstance(s, PageSettings)), None),
    )


def preregistration(facts: StudyFacts) -> Report:
    """Return a draft of a preregistration."""
    return _fill("preregistration", facts)


def readme_text(
    facts: StudyFacts,
    to_supply: Sequence[ArchivedFile],
    hub: Sequence[dict[str, str]],
    doubts: Sequence[str],
    *,
    has_page: bool,
) -> str:
    """Return the README of an archive, in Markdown.

    `to_supply`, `hub` and `doubts` are the fields `to_supply`, `hub_models` and `as_it_is` of the
    `Manifest`.
    """
    values = {"to_supply": to_supply, "hub": hub, "doubts": doubts, "has_page": has_page}
    python = platform.python_version()
    return _fill("readme", facts, study=facts.study.path.name, python=python, **values).markdown()


def _fill(name: str, facts: StudyFacts, **values: Any) -> Report:
    """Return a filled template, followed by the references that it cites."""
    search, minimal = facts.record(SearchTriplets), facts.study.step(EvaluateMinimalPairs)
    settings = {**dict.fromkeys(_SEARCH), **search}
    settings["allow_unknown"] = search.get("options", {}).get("allow_unknown", False)
    report = fill_template(
        "contstim.study.handing_on",
        f"{name}.md.jinja",
        facts=facts,
        version=__version__,
        search=search and settings,
        pairs_proof=facts.certificate(SelectPairs),
        minimal_proof=facts.certificate(SelectMinimalPairs),
        n_minimal_pairs=facts.record(SelectMinimalPairs).get("minimal_pairs", 0),
        minimal_data=minimal.data.name if minimal else "",
        selection_proof=facts.certificate(SelectTriplets),
        usual_enough=ENOUGH,
        agreed=len(facts.record(SelectPairs).get("not_controversial", [])),
        **values,
    )
    proofs = [facts.certificate(s) for s in (SelectPairs, SelectTriplets, MakeDesign)]
    versions = [p["version"] for p in proofs if p.get("solver", "").startswith("OR-tools")]
    text = report.markdown()
    works = works_in(text)
    if versions and "Perron & Furnon" in text:
        works.append(
            f"Perron, L., & Furnon, V. OR-Tools (version {versions[0]}). Google. {_OR_TOOLS}"
        )
    heading = [] if name == "preregistration" else [Heading("References")]
    return replace(report, parts=(*report.parts, *heading, Bullets(works))) if works else report
