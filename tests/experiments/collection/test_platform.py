"""The database of a study is read like the data of any platform."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from contstim.experiments.collection.database import Recorder
from contstim.experiments.collection.tables import PLATFORM
from contstim.testing.platform import PlantedAnswers, ReadContract


class TestContract(ReadContract):
    platform = PLATFORM

    def data(
        self, folder: Path, out: Path, answers: PlantedAnswers, people: Mapping[str, str]
    ) -> list[Path]:
        path = out / "study.sqlite"
        Recorder(path, "fingerprint").close()
        lists = self.lists(folder)
        with closing(sqlite3.connect(path)) as connection:
            for number, (name, group) in enumerate(people.items(), start=1):
                connection.execute(
                    "INSERT INTO participant (number, participant, study_group, seed, joined, seen)"
                    " VALUES (?, ?, ?, 3, 0, 0)",
                    (number, name, group),
                )
                for position, row in enumerate(answers.shuffled(lists[group]), start=1):
                    left = int(row["left"])
                    button, rt_ms = answers.press(name, row["trial_id"], row["left"], position)
                    rating = button if left == 1 else 7 - button
                    answer = (number, row["trial_id"], rating, left, position, rt_ms, 0)
                    marks = ", ".join("?" * len(answer))
                    connection.execute(f"INSERT INTO response VALUES ({marks})", answer)
            connection.commit()
        return [path]
