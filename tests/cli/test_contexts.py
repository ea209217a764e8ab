"""`--context NAME=TEXT`, and `contstim models MODEL`."""

import csv
import json
from contextlib import chdir
from pathlib import Path

import pytest

from contstim.models.catalog import load_model
from contstim.store.times import times_beside
from contstim.study.planning import plan_study
from contstim.study.probe import probe
from contstim.study.study import STORE
from contstim.study.study_file import read_study
from contstim.words.sentence import Sentence
from tests.cli.running import run

QUESTIONS = ("Do you know the hungry teacher?", "She sleeps in the garden.")


@pytest.fixture(scope="module")
def folder(tiny_folder: Path) -> Path:
    (tiny_folder / "natural.txt").write_text("\n".join(QUESTIONS) + "\n", encoding="utf-8")
    return tiny_folder


def _score(folder: Path, out: str, *options: str) -> tuple[int, str]:
    command = ("score", "--sentences", "natural.txt", "--device", "cpu", "--out", out, *options)
    result = run(folder, *command)
    return result.returncode, result.stderr


PROCESSES = pytest.param(("--executor", "processes", "--workers", "2"), marks=pytest.mark.slow)


@pytest.mark.parametrize("executor_options", [(), PROCESSES])
def test_each_model_reads_its_own_context(folder: Path, executor_options: tuple[str, ...]) -> None:
    """Two models that differ only in the context, in this process and in workers."""
    out = f"scores{len(executor_options)}.csv"
    store = ("--store", f"store{len(executor_options)}.sqlite")
    models = ("--model", "a=hf:gpt2", "--model", "b=hf:gpt2", "--model", "n=kenlm:bigram.arpa")
    code, messages = _score(
        folder, out, *models, "--context", "b=A day. ", *store, *executor_options
    )
    assert code == 0, messages
    rows = list(csv.DictReader((folder / out).read_text(encoding="utf-8").splitlines()))
    sentences = [Sentence.parse(text) for text in QUESTIONS]
    for name, context in (("a", None), ("b", "A day. ")):
        model = load_model(f"hf:{folder}/gpt2", context=context, device="cpu")
        expected = model.log_probs(sentences)
        assert [float(row[name]) for row in rows] == pytest.approx(expected.tolist(), abs=1e-4)
        tokens = model.convention.context_tokens
        record = json.loads((folder / f"{out}.meta.json").read_text(encoding="utf-8"))
        assert record["models"][name]["context_tokens"] == [*tokens]
        assert messages.count(f"{name} reads {' '.join(tokens)} ") == 1
    assert "n reads" not in messages


@pytest.mark.parametrize(
    ("options", "constraint"),
    [
        (("--context", "c=. "), "Models: a, m, n"),
        (("--context", ". "), "Models: a, m, n"),
        (("--context", "a=. ", "--context", "a=A day."), "at most once for each model"),
        (("--context", "a=<|im_start|>"), "unknown special tokens"),
        (("--context", "a= "), "must be a text"),
        (("--context", "n=. "), "A kenlm model reads nothing"),
        (("--context", "m=. "), "m reads no context"),
    ],
)
def test_unreadable_contexts_are_refused(
    folder: Path, options: tuple[str, ...], constraint: str
) -> None:
    models = ("--model", "a=hf:gpt2", "--model", "n=kenlm:bigram.arpa", "--model", "m=hf:bert")
    code, messages = _score(folder, "no.csv", *models, *options)
    assert code == 2
    assert constraint in " ".join(messages.split())
    assert not (folder / "no.csv").exists()


@pytest.mark.parametrize(
    ("models", "facts"),
    [
        (["hf:gpt2"], ["causal transformer", "<|endoftext|>", "log-likelihood", "read"]),
        (["b=hf:gpt2+mean", "--context", "b=A day."], ["nats per token", "A Ġ", "log-likelihood"]),
        (["hf:bert@pll-original"], ["masked transformer", "pll-original"]),
        (["kenlm:bigram.arpa", "hf:gpt2@chain"], ["n-gram", "causal", "of 50 sentences", "chain"]),
    ],
)
def test_models_prints_a_table_of_facts(folder: Path, models: list[str], facts: list[str]) -> None:
    result = run(folder, "models", *models, status=0)
    for fact in facts:
        assert fact in result.stdout


@pytest.mark.parametrize(
    "arguments", [["hf:nowhere/"], ["--context", "a=. "], ["a=hf:gpt2", "--context", "b=. "]]
)
def test_models_refuses_unreadable_models(folder: Path, arguments: list[str]) -> None:
    assert run(folder, "models", *arguments).returncode == 2


def test_plan_warns_of_a_much_worse_context(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    path = folder / "study.toml"
    path.write_text(
        '[models]\na = "hf:gpt2"\nb = { model = "hf:gpt2", context = ". " }\n'
        '[score]\nsentences = "natural.txt"\n',
        encoding="utf-8",
    )
    study = read_study(path)
    with chdir(folder):
        probe(study, tmp_path, 10.0)
    measurements = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    facts = {line["context"]: line["facts"] for line in measurements if "context" in line}
    # One of the two contexts is better than the other
    assert sorted(gain["nats"] > 0 for gain in facts.values()) == [False, True]
    (folder / "results").mkdir(exist_ok=True)
    times = times_beside(folder / STORE)
    for specification, gain in facts.items():
        times.add_context(specification, gain)
    times.save()
    monkeypatch.setattr("contstim.evaluation.overview.WORSE_CONTEXT", 1e-6)
    cautions = plan_study(study, measure=False).cautions
    assert len([text for text in cautions if "nats more likely" in text]) == 1
