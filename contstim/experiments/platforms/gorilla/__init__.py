"""Gorilla: spreadsheets for its task builders, and what it exports.

export      a spreadsheet for each list, in the columns of the user's own task
reading     ratings from its exports; columns: which column holds what
"""

from contstim.experiments.platforms.gorilla.export import GorillaSettings, export_gorilla
from contstim.experiments.platforms.gorilla.reading import GorillaReading, read_gorilla
from contstim.experiments.platforms.platform import Exporter, Platform, Reader

PLATFORM = Platform(
    "gorilla",
    Exporter(export_gorilla, GorillaSettings),
    Reader(read_gorilla, GorillaReading, files="CSV exports of one experiment."),
)
