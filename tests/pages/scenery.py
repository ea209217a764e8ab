"""Files and models that readers of the pages have: those of the page of single commands."""

import csv
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from contstim.english import generate
from contstim.items.reviews import Decision, undecided_items, write_review
from contstim.items.stimuli import Condition, Trial, read_pairs, read_trials, read_triplets
from contstim.testing.platform import PlantedAnswers, PlatformContract
from tests.cli.running import succeed
from tests.evaluation.small_data import ITEMS
from tests.experiments.platforms import (
    test_gorilla,
    test_jspsych_reading,
    test_pcibex,
    test_psychopy,
    test_qualtrics,
)
from tests.models.tiny import TEXTS
from tests.pages.blocks import ROOT, read_blocks, read_commands
from tests.pages.reader import Reader

TRAINED: dict[str, tuple[str, ...]] = {
    "bert": ("bert-base-cased", "bert-large-cased", "models/bert-large-cased", "runs/bert"),
    "gpt2": ("gpt2", "gpt2-xl", "models/gpt2-xl", "runs/gpt2", "Qwen/Qwen2.5-7B"),
}
TINY = ("meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-70B")
"""Networks in folders that are named like models of the hub, which they replace. TRAINED is trained
within seconds on the text, with words as tokens; TINY are tiny untrained Llama models."""

FEWER = {
    "--per-pair 40": "--per-pair 10",
    "--groups 10": "--groups 5",
    "--out responses.csv": "--participants 15 --out responses.csv",
}
"""Texts on the page of single commands, and replacements with smaller numbers."""

UNUSED_RESULTS = ("contstim synthesize", "contstim review", "contstim analyze")
"""Commands whose results no other page needs; `tests.test_readme` runs all commands."""


def furnish(folder: Path, tiny_checkpoint: Callable[[str], Path]) -> None:
    """Create the files that a reader has after typing the page of single commands."""
    for name, size, seed in (("corpus.txt", 4_000, 0), ("more.txt", 3_000, 1)):
        text = "".join(f"{sentence.text}\n" for sentence in generate(size, seed=seed))
        (folder / name).write_text(text, encoding="utf-8")
    for name in TINY:
        shutil.copytree(tiny_checkpoint("llama"), folder / name)
    lines = (folder / "corpus.txt").read_text().splitlines(keepends=True)
    for name, size in (("beginning.txt", 600), ("few.txt", 20)):
        (folder / name).write_text("".join(lines[:size]))
    # roberta-large is replaced by a BERT, because its tokens are too many for the chain rule
    networks = [*TRAINED.items(), ("bert --seed 2", ("roberta-large",))]
    for network, names in networks:
        line = f"train {network} --text beginning.txt --out {names[0]} --width 16 --layers 1"
        succeed(folder, line, *"--heads 2 --epochs 1 --device cpu".split())
        for name in names[1:]:
            shutil.copytree(folder / names[0], folder / name)
    reader = Reader(folder, FEWER)
    for block in read_blocks(ROOT / "docs" / "commands.md"):
        for command in read_commands(block):
            if not command.text.startswith(UNUSED_RESULTS):
                reader.type(command)
    _write_other_files(folder)
    _write_answers(folder)


def _write_other_files(folder: Path) -> None:
    """Write files of later pages: reviews, an exported page, further texts and benchmarks."""
    for line in (
        "train ngram --text corpus.txt --order 1 --out unigram.arpa",
        "export jspsych --trials trials.csv --out experiment",
        "generate minimal-pairs --per-paradigm 2 --out blimp",
        "generate minimal-pairs --per-paradigm 2 --only island_effects --out some",
    ):
        succeed(folder, line)
    # results of the first study that other pages name
    (folder / "results" / "models").mkdir(parents=True)
    for path in folder.glob("*gram.arpa*"):
        shutil.copy(path, folder / "results" / "models")
    (folder / "unwanted.txt").write_text("garden\nriver\n")
    (folder / "reading-times.csv").write_text("sentence,position,time\nThe dog ran.,0,310\n")
    rows = "".join(f"p{n},a,b,a\n" for n in range(30))
    (folder / "answers.csv").write_text(f"participant,model_a,model_b,preferred\n{rows}")
    shutil.copy(folder / "scores.csv", folder / "published.csv")
    write_reviews(folder, folder / "triplets.csv")
    # one file with both kinds of stimuli
    items = [
        *undecided_items(read_pairs(folder / "pairs.csv")),
        *undecided_items(read_triplets(folder / "triplets.csv")),
    ]
    keep = [replace(item, decision=Decision.KEEP) for item in items]
    write_review(folder / "review.csv", [replace(keep[0], decision=Decision.REJECT), *keep[1:]])
    _write_judgements(folder)
    # Columns as named on the page, with both sentences of each pair
    pairs = [
        json.loads(line)
        for path in sorted((folder / "some").glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    with (folder / "mine.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["ok", "not ok"])
        writer.writerows([pair["sentence_good"], pair["sentence_bad"]] for pair in pairs)

    with (folder / "trial-scores.csv").open(encoding="utf-8", newline="") as file:
        sentences = [row["sentence"] for row in csv.DictReader(file)]
    models = ("kenlm:bigram.arpa", "kenlm:trigram.arpa")
    for name, columns in (("tokens", models), ("features", ("letters",))):
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["sentence", *columns])
            moduli = range(7, 7 + len(columns))
            writer.writerows([text, *(len(text) % n for n in moduli)] for text in sentences)


def write_reviews(folder: Path, table: Path) -> None:
    """Write files of two reviewers, who each reject one triplet and keep all others."""
    triplets = read_triplets(table)
    for reviewer, rejected in (("Ann", 0), ("Bea", 1)):
        reviewed = [
            replace(item, decision=Decision.KEEP) for item in undecided_items(triplets, reviewer)
        ]
        reviewed[rejected] = replace(reviewed[rejected], decision=Decision.REJECT, reason="debris")
        write_review(folder / f"review-{reviewer}.csv", reviewed)


def _write_judgements(folder: Path) -> None:
    """Write judged sentences in the layouts of LI-Adger, which has no licence, and CoLA."""
    published = folder / "li-adger"
    for name in ("data", "output"):
        (published / name).mkdir(parents=True)
    rows = list(csv.DictReader(ITEMS.splitlines()))
    accepted = [row for row in rows if row["label"] in ("1", "ok")]
    pairs = [(row["id"], f"{row['item']}{2 * n + 2}") for n, row in enumerate(accepted[:2])]
    tables = {
        "data/human_ME_results_li-adger_sentences.csv": [
            ("id", "sentence", "judgement"),
            *((row["id"], row["sentence"] + ".", row["judgement"]) for row in rows),
        ],
        "data/li-adger_min_pairs.csv": [("discard", "gramm_id", "ungramm_id")]
        + [("", *pair) for pair in pairs],
        "output/bert_mlm_results_li-adger_sentences.csv": [
            ("id", "sentence", "bert-large-cased_mlm"),
            *((row["id"], row["sentence"] + ".", -20.0 - n) for n, row in enumerate(rows)),
        ],
    }
    for name, table in tables.items():
        with (published / name).open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(table)
    cola = "".join(
        f"x\t{label}\t\t{' '.join(text[:-1].split()[::step])}{text[-1]}\n"
        for text in TEXTS
        for label, step in ((1, 1), (0, -1))
    )
    for name in ("in_domain_train", "in_domain_dev", "out_of_domain_dev"):
        (folder / f"{name}.tsv").write_text(cola, encoding="utf-8")


class _AttentivePeople(PlantedAnswers):
    """All participants pass catch trials."""

    def __init__(self, trials: Sequence[Trial]) -> None:
        super().__init__(trials)
        self._catch = {trial.trial_id for trial in trials if trial.condition is Condition.CATCH}

    def rate(self, trial_id: str) -> int:
        rating = super().rate(trial_id)
        return 1 if trial_id in self._catch else rating


def _write_answers(folder: Path) -> None:
    """Write the files of platforms for two participants of each list of an experiment."""
    trials = read_trials(folder / "trials.csv")
    contracts: dict[str, tuple[PlatformContract, str]] = {
        "gorilla": (test_gorilla.TestContract(), "data_exp_1-v2_task-ab12.csv"),
        "jspsych": (test_jspsych_reading.TestContract(), "data/1.json"),
        "pcibex": (test_pcibex.TestContract(), "results.csv"),
        "psychopy": (test_psychopy.TestContract(), "data/"),
        "qualtrics": (test_qualtrics.TestContract(), "data.csv"),
    }
    (folder / "data").mkdir()
    for name, (contract, path) in contracts.items():
        out = folder / "answers" / name
        succeed(folder, "export", name, "--trials", "trials.csv", "--out", f"answers/{name}/out")
        lists = contract.lists(out / "out")
        people = {f"{list_name}-{person}": list_name for list_name in lists for person in "ab"}
        files = contract.data(out / "out", out, _AttentivePeople(trials), people)
        for file in files:
            target = folder / path
            shutil.copy(file, target / file.name if target.is_dir() else target)
    shutil.rmtree(folder / "answers")
