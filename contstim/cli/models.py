"""`contstim models`."""

from __future__ import annotations

from contstim.cli.options import Quiet
from contstim.cli.output import terminal


def models(quiet: Quiet = False) -> None:
    """List the kinds of models that load, and the nine models of the 2023 study.

    Example: `contstim models`
    """
    del quiet  # it prints nothing but its result
    from rich.table import Table

    from contstim.models.families import families
    from contstim.models.specifications import CATALOGUE

    table = Table("family", "what it is", "scoring rules", title="Families", title_justify="left")
    for family in families():
        table.add_row(f"{family.name}:", family.summary, ", ".join(family.rules))
    entries = Table("name", "stands for", "what it is", title_justify="left")
    entries.title = "Models of Golan et al. (2023)"
    for name, (specification, summary) in CATALOGUE.items():
        entries.add_row(name, specification, summary)
    console = terminal()
    console.print(table)
    console.print(entries)
