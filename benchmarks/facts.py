"""Record the behaviour of the package as JSON, and compare two records.

    python benchmarks/facts.py --out FACTS.json [--root CHECKOUT] [--quick]
    python benchmarks/facts.py --compare OLD.json NEW.json

A refactoring must not change these facts about the checkout at ROOT: options of commands, keys of
study files and their valid values, reported lines of malformed files, stages that an edit makes
stale, files that studies and further commands write, searches, and signatures. `facts.toml` defines
the cases. Dates, seconds, sizes, versions, checksums within files, and the folder of the run are
masked. With --compare, the exit status is 1 if a fact differs; numbers may differ by 1e-6.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import shlex
import signal
import sys
import tempfile
import tomllib
import warnings
from contextlib import chdir, redirect_stderr, redirect_stdout
from functools import partial
from itertools import permutations
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any
from unittest import mock

from observations import differences, files_of, masked_json, masked_lines, options, signatures

if TYPE_CHECKING:
    from collections.abc import Callable

CASES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
PROBES: tuple[Any, ...] = (-1, 0, 0.5, 7, 10_000_000, True, "x", "0.5", ["x"], [])
"""Values to try for each key of a study file."""

KINDS = ("ngram", "rnn", "lstm", "bilstm", "gpt2", "bert")
GROUPS = ("train", "select", "evaluate", "generate", "reproduce", "export", "import")
UNKNOWN = "zzqqxj"  # similar to no key
ENDLESS = ["is read without end"]


def main() -> None:
    """Write facts, or compare them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--quick", action="store_true", help="a few of each: a smoke run")
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("OLD", "NEW"))
    given = parser.parse_args()
    if given.compare:
        old, new = (json.loads(path.read_text(encoding="utf-8")) for path in given.compare)
        found = list(differences(old, new))
        print("\n".join(found) or "No difference.")
        sys.exit(bool(found))
    root = given.root.resolve()
    sys.path.insert(0, str(root))
    import contstim

    if Path(contstim.__file__).parents[1] != root:
        raise SystemExit(f"contstim comes from {contstim.__file__}, not from {root}")
    os.environ |= {"SOURCE_DATE_EPOCH": "1700000000", "COLUMNS": "300"}
    out = given.out and given.out.resolve()
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        facts = all_facts(Path(folder).resolve(), quick=given.quick)
    text = json.dumps(facts, indent=1, ensure_ascii=False, default=str)
    if out:
        out.write_text(text + "\n", encoding="utf-8")
    print(f"{len(text):,} characters of facts in {process_time():.0f} s of processor time")


def all_facts(folder: Path, *, quick: bool) -> dict[str, Any]:
    """Return all facts; `folder` must be empty and the current folder."""
    few = 3 if quick else None
    studies = ["people"] if quick else [*CASES["studies"]]
    people = folder / "people"
    parts: dict[str, Callable[[], Any]] = {
        "signatures": signatures,
        "options": options,
        "keys": lambda: study_keys(few),
        "malformed": lambda: malformed(folder / "malformed", few),
        "searches": lambda: searches(folder / "searches", few),
        **{f"study {name}": partial(whole_study, folder / name) for name in studies},
        "stale": lambda: stale_stages(people, few),
        "commands": lambda: further_commands(people, few),
    }
    facts: dict[str, Any] = {}
    for name, part in parts.items():
        began = process_time()
        facts[name] = part()
        print(f"{name}: {process_time() - began:.0f} s", file=sys.stderr)
    return facts


def run(*arguments: str) -> tuple[int | str, str, str]:
    """Run a command in this process; return exit status, standard output and standard error."""
    from contstim.cli import main as program

    printed, said = io.StringIO(), io.StringIO()
    status: int | str = 0
    before = signal.getsignal(signal.SIGINT)
    with (
        mock.patch.object(sys, "argv", ["contstim", *arguments]),
        warnings.catch_warnings(),
        redirect_stdout(printed),
        redirect_stderr(said),
    ):
        try:
            program()
        except SystemExit as ended:
            status = ended.code or 0
        except Exception as error:  # recorded as a fact
            status = repr(error)
        finally:
            signal.signal(signal.SIGINT, before)
    return status, printed.getvalue(), said.getvalue()


def problems_of(folder: Path, text: str) -> list[str]:
    """Return the problems of a study file; empty if it is valid."""
    import contstim

    folder.mkdir(exist_ok=True)
    (folder / "study.toml").write_text(text, encoding="utf-8")
    signal.signal(signal.SIGVTALRM, too_long)
    signal.setitimer(signal.ITIMER_VIRTUAL, 2)
    try:
        contstim.read_study(folder)
    except contstim.InputError as error:
        return str(error).replace(f"{folder}/", "").split("\n")
    except TimeoutError:
        return ENDLESS
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return []


def too_long(*_signal: object) -> None:
    raise TimeoutError


def study_keys(at_most: int | None) -> dict[str, Any]:
    """Return the keys of each section, and the valid `PROBES` of each key.

    The error message about an unknown key lists the keys of its section.
    """
    folder = Path("keys")
    sections = said_keys(problems_of(folder, f"[{UNKNOWN}]\n"), f"[{UNKNOWN}]")
    places = {f"[{name}]": f"[{name}]\nKEY" for name in sections if name not in GROUPS}
    for group in GROUPS:
        names = said_keys(problems_of(folder, f"[{group}.{UNKNOWN}]\n"), f"[{group}.{UNKNOWN}]")
        places |= {f"[{group}.{name}]": f"[{group}.{name}]\nKEY" for name in names}
    for kind in KINDS:
        places[f"[models] {kind}"] = f'[models]\n{kind} = {{ train = "{kind}", KEY }}'
    found: dict[str, Any] = {"sections": sections}
    for place, text in [*places.items()][:at_most]:
        told = problems_of(folder, text.replace("KEY", f"{UNKNOWN} = 1"))
        usual = problems_of(folder, text.replace(", KEY", "").replace("KEY", ""))
        found[place] = {key: [] for key in said_keys(told, UNKNOWN) if key != "train"}
        for key, taken in found[place].items():
            for value in PROBES:
                told = problems_of(folder, text.replace("KEY", f"{key} = {json.dumps(value)}"))
                if not any(place in line for line in {*told} - {*usual}):
                    taken.append(value)
        if usual == ENDLESS:
            found[place] = ENDLESS
    return found


def said_keys(problems: list[str], place: str) -> list[str]:
    """Return the names that the message about an unknown name lists."""
    lines = [line for line in problems if place in line and "there are " in line]
    return sorted(re.findall(r"[\w-]+", lines[0].rpartition("there are ")[2])) if lines else []


def malformed(folder: Path, at_most: int | None) -> dict[str, Any]:
    """Return the lines and keys that are reported for each malformed study file."""
    (folder / "empty").mkdir(parents=True)
    (folder / "more.txt").write_text("They read books.\n" * 200, encoding="utf-8")
    header = "reviewer item_id kind source_id condition group model_1 model_2 sentence_1 sentence_2"
    header = ",".join([*header.split(), "sentence_3", "decision", "reason"])
    row = "Ann,p1,pair,,,0,bigram,lstm,They sleep.,We read.,,keep,"
    (folder / "review.csv").write_text(f"{header}\n{row}\n", encoding="utf-8")
    good = CASES["malformed"]["good"]
    found = {"good": problems_of(folder, good)}
    for name, (old, new) in [*CASES["malformed"]["replaced"].items()][:at_most]:
        if good.count(old) != 1:
            raise AssertionError(name)
        told = problems_of(folder, good.replace(old, new))
        where = re.compile(r"line \d+(?:, \[[^\]]*\](?: [^:\n]*)?(?=:))?")
        found[name] = where.findall("\n".join(told)) or told
    return found


def searches(folder: Path, at_most: int | None) -> dict[str, Any]:
    """Run searches of each recipe between n-grams, and between tiny networks and an n-gram."""
    import contstim
    from tests.models import tiny

    folder.mkdir()
    with chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = contstim.generate(1500, seed=7)
        for order in (1, 2, 3):
            contstim.train_ngram(text, order, Path(f"{order}.arpa"))
        for name in ("gpt2", "bert"):
            tiny.build(name, Path())
        words = contstim.Vocabulary.from_sentences(text, min_count=12)
        words.save(Path("words.txt"))
        known = [s for s in contstim.generate(2000, seed=11, words=7) if not words.missing_words(s)]
        natural = [s.text for s in known if s.words[0] != "There"]
        grams = ("kenlm:2.arpa", "kenlm:3.arpa")
        cases = [
            (*pair, name, more)
            for pair in permutations(grams)
            for name, more in CASES["searches"].items()
        ]
        cases += [
            (*pair, "tiny", "--restarts 1 --max-changes 2")
            for network in ("hf:gpt2", "hf:bert@pll-word-l2r", "hf:bert@chain")
            for pair in permutations((network, grams[0]))
        ]
        found: dict[str, Any] = {}
        for recipe in contstim.RECIPES:
            found[recipe] = {}
            for sentence, case in zip(natural, cases[:at_most], strict=False):
                accept, reject, name, more = case
                models = ("--accept", accept, "--reject", reject, "--recipe", recipe)
                where = ("--sentence", sentence, "--vocabulary", "words.txt", "--json", "--quiet")
                how = ("--frame", "none", *shlex.split(more))
                status, printed, said = run("synthesize", *models, *where, *how)
                result = json.loads(printed) if printed.startswith("{") else said
                found[recipe][f"{accept} {reject} {name}"] = [status, masked_json(result, folder)]
    return found


def whole_study(folder: Path) -> dict[str, Any]:
    """Run a study; return its status, its output and its files."""
    from tests.models import tiny

    folder.mkdir()
    (folder / "study.toml").write_text(CASES["studies"][folder.name], encoding="utf-8")
    with chdir(folder):
        for name in ("gpt2", "bert") if folder.name == "checkpoints" else ():
            tiny.build(name, Path())
        status, printed, said = run("run")
    return {"status": status, "told": masked_lines(printed + said, folder), **files_of(folder)}


def stale_stages(folder: Path, at_most: int | None) -> dict[str, Any]:
    """Return the stages that are no longer done after a key of a study has been changed."""
    path, found = folder / "study.toml", {}
    text = CASES["studies"][folder.name]
    for name, (old, new) in [*CASES["edits"].items()][:at_most]:
        if text.count(old) != 1:
            raise AssertionError(name)
        path.write_text(text.replace(old, new), encoding="utf-8")
        status, printed, said = run("status", str(path))
        cells = [re.split(r"\s*│\s*", line)[1:3] for line in printed.splitlines() if "│" in line]
        states = {cell[0]: cell[1] for cell in cells if cell[0] and cell[1] != "done"}
        found[name] = states if status == 0 else masked_lines(said, folder)
    path.write_text(text, encoding="utf-8")
    return found


def further_commands(folder: Path, at_most: int | None) -> dict[str, Any]:
    """Run commands on the results of a study; return status, output, and files."""
    found: dict[str, Any] = {}
    (folder / "extra").mkdir()
    with chdir(folder):
        for name, command in [*CASES["commands"].items()][:at_most]:
            status, printed, said = run(*shlex.split(command))
            found[name] = {"status": status, "told": masked_lines(printed + said, folder)}
    return {**found, "files": files_of(folder / "extra")}


if __name__ == "__main__":
    main()
