"""Guarantees of every platform, as tests to inherit.

A platform, such as jsPsych, shows trials to participants. An exporter writes the trials in the
format of the platform. A reader reads the answers that the platform has stored.

    class TestMine(PlatformContract):
        platform = PLATFORM

        def data(self, folder, out, answers, people):
            ...  # write the answers in the platform's format and return the files

Tests of a platform without a reader inherit `ExportContract`. Tests of a platform without an
exporter inherit `ReadContract`. `ExportContract` assumes that the exported tables have the columns
`list_name`, `trial_id`, `left`, `left_sentence` and `right_sentence`. For other columns, set its
attributes. A list, named in `list_name`, contains the trials of one group.
"""

from __future__ import annotations

import csv
import random
from html.parser import HTMLParser
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from contstim.errors import ContstimError, InputError
from contstim.experiments.responses.checks import Problem
from contstim.experiments.responses.table import NO_BREAK_SPACE, Response
from contstim.items.scale import Scale
from contstim.items.stimuli import CONTROVERSIAL, KINDS, Condition, Trial
from contstim.wording import grouped
from contstim.words.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from contstim.experiments.platforms.platform import Exported, Platform
    from contstim.experiments.responses.alignment import Imported

HOSTILE = (
    "She said \"no\", then: 'yes', twice.",
    "A line\nbroken in\r\nthe middle.",
    "<script>alert('x')</script> runs & <b>shouts</b>.",
    '=HYPERLINK("http://x.example","click here") now.',
    "+1 and -1 make @SUM(A1:A9) of it!",
    "-2 is less than 1; or is it?",
    "@home, everyone sleeps.",
    "${q://QID1/ChoiceTextEntryValue} costs $5 & more.",
    "Ich möchte 中文, ελληνικά, עברית und 🦊 lesen.",
    "&amp; and &#60; are *not* _markup_ # here | `there`~",
    "'; DROP TABLE responses; --",
    "100% of rows, %2C included, came\tback.",
    "(all of it)",
    "NA.",
    "[[Choices]] [1, 2, 3]",
    "[[PageBreak]]",
    "A \\n in a text.",
    "1984.",
    " ".join(["word"] * 1_999) + " ended.",
)
"""Sentences that a wrong export would lose or execute; the last one has 2,000 words."""

NAMES = ("ann", "=HYPERLINK(1, 2)", '<b>"bob"</b>', "ben, jr.")
"""Names of participants with a formula, an HTML tag, quotation marks and a comma."""

DAMAGES: dict[str, bytes | None] = {
    "is empty": b"",
    "is not text": bytes(range(256)) * 8,
    # From an older spreadsheet program
    "is not UTF-8": "trial_id,left,participant\nt1,1,Zoë\n".encode("latin-1"),
    # Downloaded from a platform after the session has ended
    "is of another kind": b"<!doctype html><title>Log in</title>\n<p>Your session has ended.</p>\n",
    "is absent": None,
}
"""Damage of a file → new content; None removes the file."""


def make_trial(number: int, group: int, condition: Condition, first: str = "") -> Trial:
    """Make a trial with two sentences that occur in no other trial."""
    models = ("a", "b") if condition in CONTROVERSIAL else ("", "")
    first = first or f"The teacher of class {number} in house {group} reads."
    second = f"Reads in house {group} of class {number} the teacher."
    sentences = (Sentence.parse(first), Sentence.parse(second))
    name = f"trial-{group}-{number}"
    return Trial(name, group, condition, *models, *sentences, *KINDS[condition][0], "")


TRIALS = tuple(
    make_trial(2 * number + again, group, condition)
    for group in (1, 2)
    for number, condition in enumerate(Condition)
    for again in (0, 1)
)
"""Trials of two groups. Each group has two trials of every condition."""


class PlantedAnswers:
    """Random ratings of participants, which a reader must return unchanged.

    Attributes:
        responses: responses in the order of calls of `press`. Ratings go from 1 (certainly
            sentence_1) to 6 (certainly sentence_2).
    """

    def __init__(self, trials: Sequence[Trial], seed: int = 5) -> None:
        self._rng = random.Random(seed)
        self._trials = {trial.trial_id: trial for trial in trials}
        self.responses: list[Response] = []

    def shuffled(self, rows: Sequence[dict[str, str]]) -> list[dict[str, str]]:
        """Return the rows in random order."""
        return self._rng.sample(rows, len(rows))

    def press(
        self, participant: str, trial_id: str, left_sentence: str, position: int
    ) -> tuple[int, int]:
        """Draw a rating; return the button to press (1 is on the left) and the time in ms."""
        rating, rt_ms = self.rate(trial_id), self._rng.randint(500, 9_000)
        trial = participant, self._trials[trial_id].group, trial_id
        self.responses.append(Response(*trial, rating, int(left_sentence), position, float(rt_ms)))
        # Buttons count from the left, ratings from sentence_1
        return (rating if left_sentence == "1" else Scale.CONFIDENCE.mirrored(rating)), rt_ms

    def rate(self, trial_id: str) -> int:
        """Draw the rating of a trial, from 1 (sentence_1) to 6 (sentence_2)."""
        del trial_id
        return self._rng.randint(1, 6)


def read_html(markup: str) -> tuple[str, list[str]]:
    """Return the visible text and the start tags of HTML, parsed by the standard library."""
    text: list[str] = []
    tags: list[str] = []
    parser: Any = HTMLParser(convert_charrefs=True)
    parser.handle_data, parser.handle_starttag = text.append, lambda tag, _: tags.append(tag)
    parser.feed(markup)
    parser.close()
    return "".join(text), tags


def read_csv_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file, parsed by the standard library."""
    csv.field_size_limit(10_000_000)
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def contents(folder: Path) -> dict[str, bytes]:
    """Return the content of every file below a folder; folders have empty content."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else b""
        for path in folder.rglob("*")
    }


# Participants see the sentences of the table of trials unchanged, even with special characters. An
# export overwrites neither files of other programs nor the files of an export to another platform
class ExportContract:
    """Guarantees of every export. Inherit it, and define the platform.

    Attributes:
        platform: platform with an exporter.
        settings: settings of the export, in addition to `Exporter.fixed`.
        list_columns: columns whose cells together identify the list of a row.
        left_column: column with the number of the sentence on the left, 1 or 2.
        sentence_columns: columns of the left and the right sentence.
        is_html: whether the sentence columns contain HTML.
    """

    platform: ClassVar[Platform]
    settings: ClassVar[Mapping[str, Any]] = {}
    list_columns: ClassVar[tuple[str, ...]] = ("list_name",)
    left_column: ClassVar[str] = "left"
    sentence_columns: ClassVar[tuple[str, str]] = ("left_sentence", "right_sentence")
    is_html: ClassVar[bool] = False

    def export(self, trials: Sequence[Trial], out: Path) -> Exported:
        exporter = self.platform.exporter
        assert exporter is not None
        return exporter.run(trials, out, exporter.options(**exporter.fixed, **self.settings))

    def lists(self, folder: Path) -> dict[str, list[dict[str, str]]]:
        """Return list → rows, from all exported tables that have the column `trial_id`."""
        tables = map(read_csv_rows, sorted(folder.rglob("*.csv")))
        rows = [row for row in chain.from_iterable(tables) if row.get("trial_id")]
        return grouped(("/".join(row[name] for name in self.list_columns), row) for row in rows)

    def displayed_texts(self, row: Mapping[str, str]) -> tuple[str, str]:
        """Return the texts on the left and on the right, as a participant reads them."""
        texts = tuple(row[column] for column in self.sentence_columns)
        if self.is_html:
            texts, tags = zip(*map(read_html, texts), strict=True)
            # Tags in a sentence must be shown as text
            assert not any(tags)
        # Exports put this prefix before a cell that a spreadsheet would run as a formula
        left_text, right_text = (text.removeprefix(NO_BREAK_SPACE) for text in texts)
        return left_text, right_text

    def check_shown(self, trials: Sequence[Trial], folder: Path) -> None:
        """Check that each list has all trials of one group.

        Also check that each row has the sentences of its trial, on the correct sides.
        """
        by_id = {trial.trial_id: trial for trial in trials}
        lists = self.lists(folder).values()
        ids_by_group = grouped((trial.group, trial.trial_id) for trial in trials)
        shown_ids = {tuple(sorted(row["trial_id"] for row in rows)) for rows in lists}
        assert shown_ids == {tuple(sorted(ids)) for ids in ids_by_group.values()}
        for row in chain.from_iterable(lists):
            texts = by_id[row["trial_id"]].displayed_texts
            left_and_right = texts if row[self.left_column] == "1" else texts[::-1]
            assert self.displayed_texts(row) == left_and_right

    def test_what_is_shown_is_what_was_asked(self, tmp_path: Path) -> None:
        self.export(TRIALS, tmp_path / "out")
        self.check_shown(TRIALS, tmp_path / "out")

    @pytest.mark.parametrize("sentence", HOSTILE, ids=lambda text: text[:20])
    def test_a_hostile_sentence_survives_or_is_refused_by_name(
        self, tmp_path: Path, sentence: str
    ) -> None:
        trials = [make_trial(0, 1, Condition.CATCH, sentence), make_trial(1, 1, Condition.CATCH)]
        refusal = ""
        try:
            self.export(trials, tmp_path / "out")
        except InputError as error:
            refusal = str(error)
        if refusal:
            # The message must name the trial of the refused sentence, and no file may be written
            assert trials[0].trial_id in refusal
            assert trials[1].trial_id not in refusal
            assert list(tmp_path.iterdir()) == []
            return
        self.check_shown(trials, tmp_path / "out")
        for path in (tmp_path / "out").rglob("*.csv"):
            for row in read_csv_rows(path):
                # No cell of any table may run as a formula in a spreadsheet
                assert not any(cell.startswith(("=", "+", "-", "@")) for cell in row.values())

    def test_the_readme_says_what_to_do(self, tmp_path: Path) -> None:
        self.export(TRIALS, tmp_path / "out")
        (readme,) = (tmp_path / "out").rglob("README.md")
        text = readme.read_text(encoding="utf-8")
        assert text.startswith("# ")
        assert len(text.split()) > 20
        if self.platform.reader is not None:
            assert "contstim " in text

    @pytest.mark.parametrize(
        ("files", "message"),
        [
            ({"index.html": "mine", "README.md": "mine"}, "contains other files"),
            # An export to another platform. Its file `key.csv` is needed to read the answers
            (
                {
                    "key.csv": "tag,trial_id",
                    "export.meta.json": '{"platform": "elsewhere", "files": ["key.csv"]}',
                },
                r"contains (other files|an export to elsewhere)",
            ),
        ],
    )
    def test_files_of_others_are_never_touched(
        self, tmp_path: Path, files: dict[str, str], message: str
    ) -> None:
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        contents_before = contents(tmp_path)
        with pytest.raises(InputError, match=message):
            self.export(TRIALS, tmp_path)
        assert contents(tmp_path) == contents_before

    def test_an_export_again_gives_the_same_and_what_was_added_stays(self, tmp_path: Path) -> None:
        self.export(TRIALS, tmp_path / "out")
        contents_before = contents(tmp_path)
        (tmp_path / "out" / "notes.txt").write_text("added")
        self.export(TRIALS, tmp_path / "out")
        assert contents(tmp_path) == {**contents_before, "out/notes.txt": b"added"}


# A reader returns each answer with the sides of the sentences, the position of the trial, the
# participant and the group
class ReadContract:
    """Guarantees of every reader. Inherit it, and define the platform and `data`.

    Attributes:
        platform: platform with a reader.
    """

    platform: ClassVar[Platform]

    def prepare(self, out: Path) -> None:
        """Prepare the folder `out` before participants answer."""

    def lists(self, folder: Path) -> dict[str, list[dict[str, str]]]:
        """Return list name → rows. A row has the columns `trial_id` and `left` (1 or 2)."""
        del folder
        return grouped(
            (str(trial.group), {"trial_id": trial.trial_id, "left": str(1 + number % 2)})
            for number, trial in enumerate(TRIALS)
        )

    def data(
        self, folder: Path, out: Path, answers: PlantedAnswers, people: Mapping[str, str]
    ) -> list[Path]:
        """Write answers in the format of the platform.

        Args:
            folder: folder of the export.
            out: folder into which the answers are written.
            answers: source of answers; call `press` for every trial in the order of presentation.
            people: name of a participant → name of the participant's list.

        Returns:
            Paths of the files.
        """
        raise NotImplementedError

    def reading(self, folder: Path) -> Mapping[str, Any]:
        """Return options of the reader, which may name files of the export."""
        del folder
        return {}

    def collect(self, out: Path) -> tuple[list[Path], PlantedAnswers]:
        """Write answers of one participant for each list; return the files and the answers."""
        self.prepare(out / "out")
        lists = self.lists(out / "out")
        answers = PlantedAnswers(TRIALS)
        # Names with special characters are first, so that they occur even if there are few lists
        names = [*NAMES, *(f"p{n}" for n in range(len(lists)))]
        people = dict(zip(names, lists, strict=False))
        return self.data(out / "out", out, answers, people), answers

    def read_export(self, files: Sequence[Path], trials: Sequence[Trial], folder: Path) -> Imported:
        reader = self.platform.reader
        assert reader is not None
        return reader.read(files, trials, **self.reading(folder))

    def test_what_people_answered_comes_back_in_canonical_order(self, tmp_path: Path) -> None:
        files, answers = self.collect(tmp_path)
        imported = self.read_export(files, TRIALS, tmp_path / "out")
        assert list(imported.responses) == answers.responses
        assert imported.report.findings == ()
        assert {response.left for response in imported.responses} == {1, 2}

    def test_answers_to_a_trial_that_is_not_in_the_table_are_named(self, tmp_path: Path) -> None:
        files, answers = self.collect(tmp_path)
        absent = answers.responses[0].trial_id
        trials = [trial for trial in TRIALS if trial.trial_id != absent]
        imported = self.read_export(files, trials, tmp_path / "out")
        remaining = [r for r in answers.responses if r.trial_id != absent]
        assert [r for r in imported.responses if r.trial_id != absent] == remaining
        unknown = imported.report.of(Problem.UNKNOWN_TRIAL)
        assert {finding.about for finding in unknown} == {(absent,)}

    @pytest.mark.parametrize("damage", DAMAGES)
    def test_a_damaged_file_is_refused_by_name(self, tmp_path: Path, damage: str) -> None:
        files, _ = self.collect(tmp_path)
        content = DAMAGES[damage]
        if content is None:
            files[0].unlink()
        else:
            files[0].write_bytes(content)
        with pytest.raises(ContstimError, match=files[0].name):
            self.read_export(files, TRIALS, tmp_path / "out")


class PlatformContract(ExportContract, ReadContract):
    """Guarantees of a platform that exports trials and reads answers."""

    def prepare(self, out: Path) -> None:
        self.export(TRIALS, out)
