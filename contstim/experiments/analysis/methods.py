"""The statistics of an analysis as a methods section says them, with the numbers of this one."""

from __future__ import annotations

import math
import re
from collections import Counter
from importlib import resources
from typing import TYPE_CHECKING

from contstim.experiments.analysis.crossed import BOTH
from contstim.experiments.analysis.families import CEILING
from contstim.reporting.report import passages
from contstim.scale import Scale
from contstim.wording import counted

if TYPE_CHECKING:
    from contstim.experiments.analysis.run import Analysis


def methods_text(analysis: Analysis) -> tuple[str, ...]:
    """Paragraphs for a methods section; the last lists the references.

    What was measured, which tests of which family with which correction, and what intervals speak
    of, for this analysis: its numbers of people, groups and contrasts, and what was asked for.

    Args:
        analysis: what `analyze` returned.
    """
    sampling, ratings = analysis.sampling, analysis.ratings
    intervals = [interval for result in analysis.results for interval in result.intervals]
    freedom = [x.degrees_of_freedom for x in intervals if math.isfinite(x.degrees_of_freedom)]
    notes = Counter(interval.note for interval in intervals if interval.note)
    told = passages(
        *(__package__, "methods.md.jinja"),
        sampling=sampling,
        choices=ratings.scale is Scale.CHOICE,
        people=counted(len(ratings.participants), "participant"),
        groups=counted(len(ratings.groups), "group"),
        families=_families(analysis),
        holm=sampling.correction == "holm",
        rate=f"{sampling.false_discovery_rate:g}",
        smallest=f"{sampling.smallest_effect:g}",
        corrected=sampling.intervals == "corrected",
        level=f"{sampling.level:.0%}",
        samples=f"{sampling.samples:,}",
        freedom=f"{min(freedom):.1f} to {max(freedom):.1f}" if freedom else "",
        notes={note: f"{number:,} of {len(intervals):,}" for note, number in notes.items()},
        narrower=any(interval.population != BOTH for interval in intervals),
    )
    return (*told.values(), f"References: {' '.join(_cited(' '.join(told.values())))}")


def _families(analysis: Analysis) -> str:
    """Numbers of contrasts, such as 45 contrasts (36 pairs …) in each of 6 families."""
    sizes = Counter(
        (len(result.comparisons), sum(row.second != CEILING for row in result.comparisons))
        for result in analysis.results
    )
    return "; ".join(
        f"{counted(size, 'contrast')} ({counted(pairs, 'pair')} of models, "
        f"{counted(size - pairs, 'model')} against the lower noise ceiling) in "
        f"{'one family' if number == 1 else f'each of {number} families'}"
        for (size, pairs), number in sizes.items()
    )


def _cited(text: str) -> list[str]:
    """The works of the bibliography that a text names by their first author and year."""
    works = (resources.files(__package__) / "references.txt").read_text(encoding="utf-8")
    return [
        work
        for work in works.splitlines()
        for author, year in re.findall(r"^([^,]+),.*?\((\d{4})\)", work)
        if re.search(rf"{author}('s| and \w+| & \w+| et al\.)?,? \(?{year}", text)
    ]
