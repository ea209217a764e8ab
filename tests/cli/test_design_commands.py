"""`select triplets`, the options of `select natural`, and `design` as a user runs them."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from contstim.files.tables import columns_of, write_table
from contstim.items.reviews import Decision, Stimulus, undecided_items, write_review
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import Pair, Triplet, read_pairs, read_trials, read_triplets
from contstim.words.sentence import Sentence
from tests.cli.running import run, succeed
from tests.experiments.stimuli import MODELS, natural, some_pairs, some_triplets
from tests.optimization.selection.tables import choose, random_table

DESIGN = (
    "design --pairs pairs.csv --triplets triplets.csv --sentences natural.txt --groups 4 --twins"
)
SMALL = "--random-per-group 2 --catch-per-group 1"
POWER = "power --trials designed.csv"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("design")
    write_table(folder / "pairs.csv", columns_of(Pair, some_pairs(4)))
    write_table(folder / "triplets.csv", columns_of(Triplet, some_triplets(4)))
    (folder / "natural.txt").write_text("".join(f"{s.text}\n" for s in natural(40)))
    random_table().write(folder / "scores.csv")
    texts = [s.text for s in natural(40)]
    for pair in some_pairs(4):
        texts += [str(pair.sentence_1), str(pair.sentence_2)]
    for triplet in some_triplets(4):
        texts += map(str, (triplet.natural, triplet.synthetic_1, triplet.synthetic_2))
    values = np.random.default_rng(0).normal(-40, 5, (len(texts), len(MODELS)))
    ScoreTable(tuple(map(Sentence.parse, texts)), MODELS, values).write(folder / "all.csv")
    tokens = "sentence,model,position,word,tokens,log_prob\n" + "".join(
        f'"{text}",{model},{position},x,1,-1\n'
        for text in texts
        for model in MODELS
        for position in range(len(text) // 4)
    )
    (folder / "tokens.csv").write_text(tokens)
    (folder / "counts.csv").write_text("model_1,model_2,per_pair\nngram,rnn,0\nbert,gpt,4\n")
    succeed(folder, f"{DESIGN} {SMALL} --out designed.csv")
    return folder


def test_select_triplets_writes_a_certificate(folder: Path) -> None:
    options = "--per-pair 2 --quantiles 1 --natural-once --counts counts.csv --word-cap 36"
    options += " --objective controversiality"
    balance = "--token-balance 2 --tokens tokens.csv"
    command = f"select triplets --triplets triplets.csv {options} {balance} --out s.csv"
    warning = "--objective controversiality identifies the better of two models less often"
    assert warning in run(folder, command).stderr
    selected = read_triplets(folder / "s.csv")
    expected = dict.fromkeys([(t.model_1, t.model_2) for t in some_triplets(1)], 2)
    expected |= {("bert", "gpt"): 4, ("ngram", "rnn"): 0}
    assert Counter((t.model_1, t.model_2) for t in selected) == Counter(expected)
    certificate = json.loads((folder / "s.csv.certificate.json").read_text())
    assert certificate["objective"] == 40 * len(selected)
    assert certificate["status"] == "optimal"
    record = json.loads((folder / "s.csv.meta.json").read_text())
    assert record["command"][1:3] == ["select", "triplets"]


def test_triplets_with_identical_sentences_are_excluded(folder: Path) -> None:
    original, *other_triplets = some_triplets(4)
    unchanged = replace(
        original,
        synthetic_1=original.natural,
        controversiality=0.0,
        log_prob_synthetic_1_model_1=original.log_prob_natural_model_1,
        log_prob_synthetic_2_model_2=original.log_prob_natural_model_2,
    )
    write_table(folder / "some.csv", columns_of(Triplet, [unchanged, *other_triplets]))
    options = "--triplets some.csv --per-pair 3 --quantiles 0 --out d.csv"
    result = run(folder, "select", "triplets", *options.split(), status=0)
    assert f"Excluded: 1 of {len(other_triplets) + 1} triplets" in result.stderr
    assert original.triplet_id not in {t.triplet_id for t in read_triplets(folder / "d.csv")}


def test_triplets_with_too_few_nats_are_excluded(folder: Path) -> None:
    """Witness: one triplet with too few nats; a table that lacks most words of the text."""
    original, *other_triplets = some_triplets(4)
    log_prob = original.log_prob_natural_model_1 - 4.9
    weak_triplet = replace(
        original, log_prob_synthetic_1_model_1=log_prob, controversiality=20 + 4.9
    )
    write_table(folder / "poor.csv", columns_of(Triplet, [weak_triplet, *other_triplets]))
    (folder / "tags.csv").write_text("word,tag,count\nnature,noun,1\n")
    options = "--triplets poor.csv --per-pair 3 --quantiles 0 --tags tags.csv --out r.csv"
    result = run(folder, "select", "triplets", *options.split(), status=0)
    excluded = f"Excluded: 1 of {len(other_triplets) + 1} triplets, with a drop of less than 5 nats"
    assert excluded in result.stderr
    assert weak_triplet.triplet_id not in {t.triplet_id for t in read_triplets(folder / "r.csv")}
    assert "tags.csv has less than half of the words" in result.stderr
    assert "tags.csv" in json.loads((folder / "r.csv.meta.json").read_text())["inputs"]
    certificate = json.loads((folder / "r.csv.certificate.json").read_text())
    assert (certificate["question"]["enough"], certificate["question"]["tags"]) == (5, "tags.csv")


def test_sentences_of_an_earlier_study_are_excluded(folder: Path) -> None:
    """Witness: the same call in this process."""
    command = "select natural --scores scores.csv --per-pair 2 --out first.csv"
    succeed(folder, command)
    succeed(folder, command.replace("first", "second"), "--exclude", "first.csv")
    used_sentences, new_sentences = (
        {s for pair in read_pairs(folder / name) for s in (pair.sentence_1, pair.sentence_2)}
        for name in ("first.csv", "second.csv")
    )
    assert not used_sentences & new_sentences
    (folder / "n.csv").write_text("model_1,model_2,per_pair\nmodel-0,model-1,4\n")
    succeed(folder, command.replace("first", "third"), "--counts", "n.csv")
    expected = choose(random_table(), per_pair=2, counts=(("model-0", "model-1", 4),))
    assert read_pairs(folder / "third.csv") == expected.pairs


@pytest.mark.slow
def test_design_writes_a_summary_and_a_certificate(folder: Path) -> None:
    result = run(folder, f"{DESIGN} {SMALL} --seed 3 --out trials.csv", status=0)
    assert "warning" not in result.stderr
    summary = (folder / "trials.csv.summary.md").read_text()
    assert "With 4 groups no signed-rank test" in summary
    assert "1 catch trial correct. This excludes 1.0% of the participants" in result.stderr
    trials = read_trials(folder / "trials.csv")
    assert Counter(t.group for t in trials) == dict.fromkeys(range(1, 5), 6 * 4 + 3)
    certificate = json.loads((folder / "trials.csv.certificate.json").read_text())
    assert certificate["status"] == "verified"
    assert certificate["trials"] == len(trials)
    assert "expected minutes" in summary
    assert json.loads((folder / "trials.csv.meta.json").read_text())["seed"] == 3


def write_rejections(
    folder: Path, table: str, stimuli: Sequence[Stimulus], *rejected_indices: int
) -> None:
    """Write a review that rejects the stimuli at some indices."""
    decisions = [
        replace(item, decision=Decision.REJECT if index in rejected_indices else Decision.KEEP)
        for index, item in enumerate(undecided_items(stimuli, "Ann"))
    ]
    write_review(folder / table, decisions)


@pytest.mark.usefixtures("empty_design_figures")
def test_reviews_replace_only_rejected_items(folder: Path) -> None:
    """From selections to a design, each command keeps the accepted items and reports the others."""
    select = "select natural --scores scores.csv --per-pair 2 --out"
    succeed(folder, select, "p1.csv")
    first_pairs = read_pairs(folder / "p1.csv")
    write_rejections(folder, "rp.csv", first_pairs, 1)
    succeed(folder, select, "p2.csv", "--review", "rp.csv")
    assert len(set(first_pairs) & set(read_pairs(folder / "p2.csv"))) == 5

    select = "select triplets --triplets triplets.csv --per-pair 3 --quantiles 0 --out"
    succeed(folder, select, "t1.csv")
    triplets_before = read_triplets(folder / "t1.csv")
    write_rejections(folder, "rt.csv", triplets_before, 4, 8)
    succeed(folder, select, "t2.csv", "--review", "rt.csv")
    assert len(set(triplets_before) & set(read_triplets(folder / "t2.csv"))) == 16
    result = run(folder, select.replace("--per-pair 3", "--per-pair 2"), "t3.csv",
               "--review", "rt.csv")  # fmt: skip
    rejected_ids = {triplets_before[n].triplet_id for n in (4, 8)}
    kept_ids = {t.triplet_id for t in triplets_before} - rejected_ids
    lost_ids = kept_ids - {t.triplet_id for t in read_triplets(folder / "t3.csv")}
    assert lost_ids
    assert all(name in result.stderr for name in lost_ids)
    assert "--per-pair" in result.stderr

    design = "design --triplets t1.csv --sentences natural.txt --groups 3 --twins"
    succeed(folder, design, *SMALL.split(), "--out", "d1.csv")
    trials_before = read_trials(folder / "d1.csv")
    catch_index = next(i for i, trial in enumerate(trials_before) if trial.condition == "catch")
    write_rejections(folder, "rd.csv", trials_before, catch_index)
    command = f"{design} {SMALL} --review rd.csv --review rt.csv --out d2.csv"
    refusal = run(folder, command, status=2)
    assert "Run 'contstim select triplets --review FILE' first" in refusal.stderr
    succeed(folder, command.replace("t1", "t2"), "--seed", "9")
    trials_after = read_trials(folder / "d2.csv")
    assert len(trials_after) == len(trials_before)
    assert len(set(trials_before) & set(trials_after)) == len(trials_before) - 1 - 2 * 3


SELECT = "select triplets --triplets triplets.csv --out x.csv"
BAD = {
    "empty.csv": "",
    "many.csv": "model_1,model_2,per_pair\nngram,rnn,many\n",
    "none.csv": "model_1,model_2,per_pair\nngram,elmo,3\n",
    "few-tokens.csv": "sentence,model,position,word,tokens,log_prob\nHi,gpt,0,Hi,1,-1\n",
}


@pytest.mark.parametrize(
    ("command", "pattern"),
    [
        ("select triplets --triplets empty.csv --out x.csv", "empty.csv"),
        (f"{SELECT} --per-pair 3", "10"),
        (f"{SELECT} --per-pair 10", r"p\(n\|ngram\).*ngram-rnn \(1\)"),
        (f"{SELECT} --per-pair 0 --quantiles 0", "per.pair"),
        (f"{SELECT} --per-pair 5 --quantiles 0", r"ngram-rnn \(1\)"),
        (f"{SELECT} --per-pair 4 --quantiles 0 --word-cap 1", "'make'"),
        (f"{SELECT} --per-pair 4 --quantiles 0 --token-balance 1", "--tokens"),
        (f"{SELECT} --uncapped natural.txt", "--word-cap"),
        (f"{SELECT} --counts many.csv", "'many'.*per_pair"),
        (f"{SELECT} --quantiles -2", "quantiles.*-2"),
        (f"{SELECT} --per-pair 2 --quantiles 0 --token-balance 1 --tokens few-tokens.csv", "token"),
        ("select natural --scores scores.csv --counts none.csv --out x.csv", "ngram, elmo"),
        ("select natural --scores scores.csv --review gone.csv --out x.csv", "gone"),
        ("select natural --scores scores.csv --exclude gone.txt --out x.csv", "gone"),
        (f"{DESIGN} --out x.csv", "40"),
        (f"{DESIGN} {SMALL} --groups 3 --out x.csv", "3 groups"),
        (f"{DESIGN} {SMALL} --seconds-per-trial 0 --out x.csv", "seconds.per.trial.* 0"),
        (f"{DESIGN} {SMALL} --out x.txt", "x.txt"),
        (f"{POWER} --scores all.csv --pilot . --out x.csv", "tables"),
        (f"{POWER} --scores scores.csv --out x.csv", "136"),
        (f"{POWER} --scores all.csv --ceiling 2 --out x.csv", "ceiling"),
        ("design --pairs triplets.csv --out x.csv", "--sentences"),
        ("design --pairs triplets.csv --sentences natural.txt --out x.csv", "triplets.csv"),
        ("design --random-per-group 0 --catch-per-group 0 --out x.csv", "pairs, triplets"),
    ],
)
def test_bad_input_ends_with_one_message_and_status_2(
    folder: Path, command: str, pattern: str
) -> None:
    for name, content in BAD.items():
        (folder / name).write_text(content)
    files_before = set(folder.iterdir())
    result = run(folder, command)
    assert (result.returncode, result.stdout) == (2, "")
    error = result.stderr.strip().splitlines()[-1]
    assert error.startswith("error: ")
    assert re.search(pattern, error), error
    assert set(folder.iterdir()) == files_before
