"""Trials as an experiment that people take part in, or as a public data set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from contstim.experiments.platforms.platform import Exporter, platform_named
from contstim.options import Reads, Writes
from contstim.steps.step import Outcome, Step, page_of, variant
from contstim.stimuli import read_trials

if TYPE_CHECKING:
    from contstim.experiments.platforms.platform import Exported, Platform
    from contstim.reporter import Reporter


class ExportTrials(Step["Exported"], name="export"):
    """Write trials as a platform takes them, with a README that says what to do."""

    exporter: ClassVar[Exporter[Any]]

    trials: Annotated[Path, Reads("What to show: trials.csv.")]
    out: Annotated[Path, Writes("The folder to write, or the file that the platform takes.")]
    settings: Any

    def further_reads(self) -> list[Path]:
        """Texts in the folder that the user may have edited."""
        texts = (self.out / name for name in self.exporter.to_edit)
        return [text for text in texts if text.is_file()]

    def work(self, reporter: Reporter) -> Outcome[Exported]:
        """Write the folder, or the file."""
        exported = self.exporter.export(read_trials(self.trials), self.out, self.settings)
        facts = {"to_edit": list(self.exporter.to_edit), **(exported.facts or {})}
        reporter.warn(exported.warning)
        reporter.say(exported.message)
        return Outcome(exported, facts, private=exported.private)


def export_step(platform: Platform | str) -> type[ExportTrials] | None:
    """The step that exports trials to a platform; None where nothing is exported to it."""
    place = platform_named(platform) if isinstance(platform, str) else platform
    if place is None or place.exporter is None:
        return None
    exporter = place.exporter
    step = variant(
        ExportTrials,
        f"export {place.name}",
        page_of(exporter.export),
        leave_out=frozenset(exporter.fixed),
        settings=exporter.settings(**exporter.fixed) if exporter.fixed else exporter.settings,
    )
    step.exporter = exporter
    return step
