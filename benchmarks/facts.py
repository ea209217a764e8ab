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

from observations import differences, files_of, mask_json, mask_lines, options, signatures

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
    arguments = parser.parse_args()
    if arguments.compare:
        old, new = (json.loads(path.read_text(encoding="utf-8")) for path in arguments.compare)
        lines = list(differences(old, new))
        print("\n".join(lines) or "No difference.")
        sys.exit(bool(lines))
    root = arguments.root.resolve()
    sys.path.insert(0, str(root))
    import contstim

    if Path(contstim.__file__).parents[1] != root:
        raise SystemExit(f"contstim comes from {contstim.__file__}, not from {root}")
    os.environ |= {"SOURCE_DATE_EPOCH": "1700000000", "COLUMNS": "300"}
    out = arguments.out and arguments.out.resolve()
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        facts = all_facts(Path(folder).resolve(), quick=arguments.quick)
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
        "malformed": lambda: malformed_files(folder / "malformed", few),
        "searches": lambda: searches(folder / "searches", few),
        **{f"study {name}": partial(run_study, folder / name) for name in studies},
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

    output, errors = io.StringIO(), io.StringIO()
    status: int | str = 0
    old_handler = signal.getsignal(signal.SIGINT)
    with (
        mock.patch.object(sys, "argv", ["contstim", *arguments]),
        warnings.catch_warnings(),
        redirect_stdout(output),
        redirect_stderr(errors),
    ):
        try:
            program()
        except SystemExit as exit_request:
            status = exit_request.code or 0
        except Exception as error:  # recorded as a fact
            status = repr(error)
        finally:
            signal.signal(signal.SIGINT, old_handler)
    return status, output.getvalue(), errors.getvalue()


def problems_of(folder: Path, text: str) -> list[str]:
    """Return the problems of a study file; empty if it is valid."""
    import contstim

    folder.mkdir(exist_ok=True)
    (folder / "study.toml").write_text(text, encoding="utf-8")
    signal.signal(signal.SIGVTALRM, raise_timeout)
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


def raise_timeout(*_signal: object) -> None:
    raise TimeoutError


def study_keys(at_most: int | None) -> dict[str, Any]:
    """Return the keys of each section, and the valid `PROBES` of each key.

    The error message about an unknown key lists the keys of its section.
    """
    folder = Path("keys")
    sections = listed_names(problems_of(folder, f"[{UNKNOWN}]\n"), f"[{UNKNOWN}]")
    texts = {f"[{name}]": f"[{name}]\nKEY" for name in sections if name not in GROUPS}
    for group in GROUPS:
        names = listed_names(problems_of(folder, f"[{group}.{UNKNOWN}]\n"), f"[{group}.{UNKNOWN}]")
        texts |= {f"[{group}.{name}]": f"[{group}.{name}]\nKEY" for name in names}
    for kind in KINDS:
        texts[f"[models] {kind}"] = f'[models]\n{kind} = {{ train = "{kind}", KEY }}'
    valid: dict[str, Any] = {"sections": sections}
    for section, text in [*texts.items()][:at_most]:
        problems = problems_of(folder, text.replace("KEY", f"{UNKNOWN} = 1"))
        usual = problems_of(folder, text.replace(", KEY", "").replace("KEY", ""))
        valid[section] = {key: [] for key in listed_names(problems, UNKNOWN) if key != "train"}
        for key, values in valid[section].items():
            for value in PROBES:
                problems = problems_of(folder, text.replace("KEY", f"{key} = {json.dumps(value)}"))
                if not any(section in line for line in {*problems} - {*usual}):
                    values.append(value)
        if usual == ENDLESS:
            valid[section] = ENDLESS
    return valid


def listed_names(problems: list[str], unknown_name: str) -> list[str]:
    """Return the names that the message about an unknown name lists."""
    lines = [line for line in problems if unknown_name in line and "there are " in line]
    return sorted(re.findall(r"[\w-]+", lines[0].rpartition("there are ")[2])) if lines else []


def malformed_files(folder: Path, at_most: int | None) -> dict[str, Any]:
    """Return the lines and keys that are reported for each malformed study file."""
    (folder / "empty").mkdir(parents=True)
    (folder / "more.txt").write_text("They read books.\n" * 200, encoding="utf-8")
    header = "reviewer item_id kind source_id condition group model_1 model_2 sentence_1 sentence_2"
    header = ",".join([*header.split(), "sentence_3", "decision", "reason"])
    row = "Ann,p1,pair,,,0,bigram,lstm,They sleep.,We read.,,keep,"
    (folder / "review.csv").write_text(f"{header}\n{row}\n", encoding="utf-8")
    valid_text = CASES["malformed"]["good"]
    reported = {"good": problems_of(folder, valid_text)}
    for name, (old, new) in [*CASES["malformed"]["replaced"].items()][:at_most]:
        if valid_text.count(old) != 1:
            raise AssertionError(name)
        problems = problems_of(folder, valid_text.replace(old, new))
        location = re.compile(r"line \d+(?:, \[[^\]]*\](?: [^:\n]*)?(?=:))?")
        reported[name] = location.findall("\n".join(problems)) or problems
    return reported


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
        candidates = [
            s for s in contstim.generate(2000, seed=11, words=7) if not words.missing_words(s)
        ]
        natural = [s.text for s in candidates if s.words[0] != "There"]
        grams = ("kenlm:2.arpa", "kenlm:3.arpa")
        cases = [
            (*pair, name, extra_options)
            for pair in permutations(grams)
            for name, extra_options in CASES["searches"].items()
        ]
        cases += [
            (*pair, "tiny", "--restarts 1 --max-changes 2")
            for network in ("hf:gpt2", "hf:bert@pll-word-l2r", "hf:bert@chain")
            for pair in permutations((network, grams[0]))
        ]
        records: dict[str, Any] = {}
        for recipe in contstim.RECIPES:
            records[recipe] = {}
            for sentence, case in zip(natural, cases[:at_most], strict=False):
                accept, reject, name, extra_options = case
                models = ("--accept", accept, "--reject", reject, "--recipe", recipe)
                inputs = ("--sentence", sentence, "--vocabulary", "words.txt", "--json", "--quiet")
                settings = ("--frame", "none", *shlex.split(extra_options))
                status, output, errors = run("synthesize", *models, *inputs, *settings)
                result = json.loads(output) if output.startswith("{") else errors
                records[recipe][f"{accept} {reject} {name}"] = [status, mask_json(result, folder)]
    return records


def run_study(folder: Path) -> dict[str, Any]:
    """Run a study; return its status, its output and its files."""
    from tests.models import tiny

    folder.mkdir()
    (folder / "study.toml").write_text(CASES["studies"][folder.name], encoding="utf-8")
    with chdir(folder):
        for name in ("gpt2", "bert") if folder.name == "checkpoints" else ():
            tiny.build(name, Path())
        status, output, errors = run("run")
    return {"status": status, "told": mask_lines(output + errors, folder), **files_of(folder)}


def stale_stages(folder: Path, at_most: int | None) -> dict[str, Any]:
    """Return the stages that are no longer done after a key of a study has been changed."""
    path, stale_by_edit = folder / "study.toml", {}
    text = CASES["studies"][folder.name]
    for name, (old, new) in [*CASES["edits"].items()][:at_most]:
        if text.count(old) != 1:
            raise AssertionError(name)
        path.write_text(text.replace(old, new), encoding="utf-8")
        status, output, errors = run("status", str(path))
        cells = [re.split(r"\s*│\s*", line)[1:3] for line in output.splitlines() if "│" in line]
        states = {cell[0]: cell[1] for cell in cells if cell[0] and cell[1] != "done"}
        stale_by_edit[name] = states if status == 0 else mask_lines(errors, folder)
    path.write_text(text, encoding="utf-8")
    return stale_by_edit


def further_commands(folder: Path, at_most: int | None) -> dict[str, Any]:
    """Run commands on the results of a study; return status, output, and files."""
    results: dict[str, Any] = {}
    (folder / "extra").mkdir()
    with chdir(folder):
        for name, command in [*CASES["commands"].items()][:at_most]:
            status, output, errors = run(*shlex.split(command))
            results[name] = {"status": status, "told": mask_lines(output + errors, folder)}
    return {**results, "files": files_of(folder / "extra")}


if __name__ == "__main__":
    main()
