"""PCIbex: the exported table and script, and importing results."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote, unquote

import pytest

from contstim.errors import InputError
from contstim.experiments.platforms.pcibex import PLATFORM, export_pcibex, import_pcibex
from contstim.experiments.responses.checks import Problem
from contstim.testing.platform import PlantedAnswers, PlatformContract, read_csv_rows
from tests.experiments.platforms.hostile import People, hostile_trials

TRIALS = hostile_trials()
NODE = shutil.which("node")

COLUMNS = """\
# 1. Results reception time.
# 2. MD5 hash of participant's IP address.
# 3. Controller name.
# 4. Order number of item.
# 5. Inner element number.
# 6. Label.
# 7. Latin Square Group.
# 8. PennElementType.
# 9. PennElementName.
# 10. Parameter.
# 11. Value.
# 12. EventTime.
"""


IBEX_COMMENTS = {  # witness: PennController's tutorial of 2020, and Ibex's server.py
    "Results reception time.": "Time results were received.",
    "MD5 hash of participant's IP address.": (
        "MD5 hash that hopefully uniquely identifies participant."
    ),
    "Order number of item.": "Item number.",
    "Inner element number.": "Element number.",
    "Label.": "Type.",
    "Latin Square Group.": "Group.",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_pcibex(TRIALS, tmp_path_factory.mktemp("pcibex"), seed=4).path


STUB = """
const fs = require('fs'), commands = [], elements = {};
const plain = rest => rest.filter(x => typeof x === 'string' || typeof x === 'number');
const element = name => elements[name] = elements[name] || new Proxy({}, {
  get: (_, command) => (...rest) => {
    commands.push([name, command, ...plain(rest)]);
    return elements[name];
  },
});
for (const kind of ['Text', 'Button', 'Canvas', 'Selector']) {
  global['new' + kind] = (name, ...rest) => {
    commands.push([kind, name, ...plain(rest)]);
    return element(kind + ' ' + name);
  };
  global['get' + kind] = name => element(kind + ' ' + name);
}
global.newTrial = label => { commands.push(['trial', label]); return element('trial ' + label); };
global.Template = (name, make) => {
  commands.push(['template', name]);
  make(JSON.parse(fs.readFileSync(process.argv[3])));
};
global.Sequence = (...rest) => commands.push(['sequence', ...rest]);
global.randomize = label => 'random ' + label;
global.SendResults = label => commands.push(['send', label]);
global.GetURLParameter = name => name === 'PROLIFIC_PID' ? 'p7' : undefined;
global.DebugOff = () => {};
global.PennController = {ResetPrefix: () => {}};
eval(fs.readFileSync(process.argv[2], 'utf8'));
console.log(JSON.stringify(commands));
"""


@pytest.mark.skipif(NODE is None, reason="needs Node.js to run the script")
def test_script_shows_and_logs_all_imported_fields(folder: Path, tmp_path: Path) -> None:
    """Node runs the script with a stub that records every command."""
    assert NODE is not None
    row = read_csv_rows(folder / "trials.csv")[2]
    (tmp_path / "stub.js").write_text(STUB)
    (tmp_path / "row.json").write_text(json.dumps(row))
    process = subprocess.run(
        [NODE, str(tmp_path / "stub.js"), str(folder / "main.js"), str(tmp_path / "row.json")],
        capture_output=True,
        text=True,
        check=True,
    )
    commands = json.loads(process.stdout)
    assert ["sequence", "instructions", "random trial", "send", "end"] in commands
    assert ["template", "trials.csv"] in commands
    texts = {command[1]: command[2] for command in commands if command[0] == "Text"}
    for side in ("left", "right"):
        markup = f"{row[f'{side}_html']}</div>"
        assert texts[side].partition(">")[2] == markup
    logged = {"participant": "p7", "trial_id": row["trial_id"], "left": row["left"]}
    for name, value in logged.items():
        assert ["trial trial", "log", name, value] in commands
    assert [
        command[1] for command in commands if command[0] == "Button" and len(command[1]) == 1
    ] == list("123456")
    assert ["Selector rating", "keys", *"123456"] in commands
    assert ["send", "send"] in commands


def results(folder: Path, people: People, planted: PlantedAnswers) -> str:
    """Return results as PCIbex writes them: an instruction trial, then shuffled trials.

    The format is that of doc.pcibex.net, *Logging data*: comments rename columns wherever the
    logged ones change, and commas are encoded.
    """
    rows = read_csv_rows(folder / "trials.csv")
    text = "# Results on Saturday November 21 2026 13:00:00 UTC\n# USER AGENT: Mozilla/5.0\n"
    text += "# Design number was non-random = 2\n#\n# Columns below this comment are as follows:\n"
    for n, (participant, group) in enumerate(people.items()):
        head = f"17637300{n:02},313362cc8a2fca017214b0da440b803{n},PennController"
        text += f"{COLUMNS}# 13. participant.\n# 14. Comments.\n"
        text += f"{head},0,0,instructions,NULL,PennController,0,_Trial_,Start,1763730000000,"
        text += f"{participant},NULL\n"
        text += "# 13. participant.\n# 14. trial_id.\n# 15. left.\n# 16. list.\n# 17. Comments.\n"
        shuffled_rows = planted.shuffled([row for row in rows if row["group"] == group])
        for position, row in enumerate(shuffled_rows, start=1):
            start = 1763730000000 + 20_000 * position
            button, rt_ms = planted.press(participant, row["trial_id"], row["left"], position)
            name = quote(participant, safe=" -_@=\"'")
            logged = f"{name},{row['trial_id']},{row['left']},{group}"
            item = f"{head},{2 + position},0,trial,NULL"
            text += f"{item},PennController,{position},_Trial_,Start,{start},{logged},NULL\n"
            text += f"{item},Selector,rating,Selection,{button},{start + rt_ms},{logged},1;2;3\n"
            text += f"{item},PennController,{position},_Trial_,End,{start + 9_100},{logged},NULL\n"
    return text


class TestContract(PlatformContract):
    platform = PLATFORM
    list_columns = ("group",)
    sentence_columns = ("left_html", "right_html")
    is_html = True

    def data(self, folder: Path, out: Path, answers: PlantedAnswers, people: People) -> list[Path]:
        path = out / "results.csv"
        path.write_text(results(folder, people, answers), encoding="utf-8")
        return [path]


def write_simple_comments(text: str) -> str:
    """Return the lines as simple_intersperse_comments of Ibex's server.py writes them."""
    lines: list[str] = []
    names: dict[int, str] = {}
    for line in text.splitlines():
        if comment := re.match(r"# (\d+)\. (.+)\.$", line):
            names = {n: name for n, name in names.items() if n < int(comment[1])}
            names[int(comment[1])] = comment[2]
        elif not line.startswith("#"):
            later_columns = " -- ".join(f"[{n}] {name}" for n, name in names.items() if n > 7)
            lines += [f"# ...First 7... {later_columns}", line]
    return "\n".join(lines)


@pytest.mark.parametrize("simple", [False, True])
def test_results_of_an_ibex_server_are_imported(folder: Path, tmp_path: Path, simple: bool) -> None:
    planted = PlantedAnswers(TRIALS)
    text = results(folder, {"ann": "L01", "": "L02"}, planted)
    for farm_comment, ibex_comment in IBEX_COMMENTS.items():
        assert farm_comment in text
        text = text.replace(farm_comment, ibex_comment)
    # Ibex numbers items in order of definition, not of presentation
    item_numbers = {trial.trial_id: str(number) for number, trial in enumerate(TRIALS, start=100)}
    lines = [line.split(",") for line in text.splitlines()]
    for cells in lines:
        for name in {*map(unquote, cells)} & item_numbers.keys():
            cells[3] = item_numbers[name]
    text = "".join(f"{','.join(cells)}\n" for cells in lines)
    text = write_simple_comments(text) if simple else text
    path = tmp_path / "results"
    path.write_text(text, encoding="utf-8")
    result = import_pcibex([path], TRIALS)
    # Participants without names are identified by address and time
    names = {"": "313362cc8a2f-1763730001"}
    assert list(result.responses) == [
        replace(response, participant=names.get(response.participant, response.participant))
        for response in planted.responses
    ]
    assert result.report.findings == ()


def test_unknown_duplicate_and_missing_trials_are_reported(folder: Path, tmp_path: Path) -> None:
    planted = PlantedAnswers(TRIALS)
    lines = results(folder, {"ann": "L01"}, planted).splitlines()
    selected = [n for n, line in enumerate(lines) if ",Selection," in line]
    lines[selected[0]] = lines[selected[0]].replace(",Selection,", ",Selection,NA,Never,", 1)
    cells = lines[selected[0]].split(",")
    del cells[12:14]
    lines[selected[0]] = ",".join(cells)
    duplicate = lines[selected[1]]
    practice = [line.replace(planted.responses[2].trial_id + ",", "practice-1,") for line in lines]
    lines = [
        line if f",{planted.responses[2].trial_id}," not in line else practice[n]
        for n, line in enumerate(lines)
    ]
    path = tmp_path / "results"
    path.write_text("\n".join([*lines, duplicate]), encoding="utf-8")
    report = import_pcibex([path], TRIALS).report
    first, second, third, *_ = (r.trial_id for r in planted.responses)
    assert [f.about for f in report.of(Problem.NO_RATING)] == [(first,)]
    assert [f.about for f in report.of(Problem.DUPLICATE)] == [(second,)]
    assert [f.about for f in report.of(Problem.UNKNOWN_TRIAL)] == [("practice-1",)]
    assert [f.about for f in report.of(Problem.UNFINISHED)] == [
        tuple(t.trial_id for t in TRIALS if t.trial_id in (first, third))
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2,3\n", "names no columns"),
        ("# The lines below this comment are in groups of 2.\n1,2\n", "SIMPLE_RESULTS_FILE"),
        (f"{COLUMNS}1,2,PennController,0,0,x,NULL,PennController,0,_,Start,5\n", "no line with a"),
        ("# 1. trial_id.\n# 2. left.\ntrial-1-0,1\n", "lacks the columns Order number of item"),
    ],
)
def test_other_files_raise_errors(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "results.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        import_pcibex([path], TRIALS)
