"""`contstim diff`: the page, the table, and the study that its last line creates."""

import re
import shlex
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest

from contstim.errors import InputError, ModelError
from contstim.models.catalog import load_models
from contstim.models.specifications import parse_models
from contstim.optimization.jobs.question import SearchRules
from contstim.steps.diff import FindDifferences
from contstim.study.study_file import new_study, read_study
from contstim.testing.platform import read_csv_rows
from contstim.words.sentence import Sentence
from tests.cli.running import invoke
from tests.models.tiny import Folder, specification

pytestmark = pytest.mark.usefixtures("unsaved_figures")


def test_diff_writes_a_page_a_table_and_a_study(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """External witness: the models score every sentence of the table again."""
    monkeypatch.chdir(tmp_path)
    models = {name: f"{name}=kenlm:{trained / name}gram.arpa" for name in "243"}
    command = [*list(models.values())[:2], "--per-pair", "4", "--enough", "2", "--quiet"]
    output = invoke("diff", *command, "--baseline", models["3"]).stdout
    page = (tmp_path / "diff.html").read_text(encoding="utf-8")
    assert "http" not in re.sub(r"data:image/png;base64,[^\"]+", "", page)
    rows = read_csv_rows(Path("diff.csv"))
    assert len(rows) == 8
    scorers = dict(zip("243", load_models([*models.values()]), strict=True))
    for row in rows:
        natural, sentence = Sentence.parse(row["natural"]), Sentence.parse(row["sentence"])
        assert sentence.text in page.replace("<mark>", "").replace("</mark>", "")
        gains = {n: np.diff(m.log_probs([natural, sentence]))[0] for n, m in scorers.items()}
        assert gains[row["model_accept"]] > -1e-4
        assert -gains[row["model_reject"]] == pytest.approx(float(row["drop"]), abs=1e-4)
        assert float(row["drop"]) >= 2 - 1e-4
        for name, model in scorers.items():
            assert float(row[f"log_prob_{name}"]) == pytest.approx(model.log_probs([sentence])[0])
        word_pairs = zip(natural.words, sentence.words, strict=True)
        expected = "; ".join(f"{old} → {new}" for old, new in word_pairs if old != new)
        assert row["changed_words"] == expected
    (line,) = [line for line in output.splitlines() if line.startswith("contstim new ")]
    invoke(*shlex.split(line)[1:], "--quiet")
    study = read_study(Path("study"))
    assert [model.name for model in study.models] == ["2", "4"]
    # Stored scores and triplets give the same page
    (tmp_path / "diff.html").unlink()
    invoke("diff", *command, "--baseline", models["3"])
    assert (tmp_path / "diff.html").read_text(encoding="utf-8") == page


@pytest.mark.slow
def test_three_models_with_two_units_and_unknown_words(
    trained: Path, tiny_checkpoint: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = [f"Name{letter}" for letter in "abcdefghijklmnop"]
    Path("text.txt").write_text("".join(f"{n} saw the dog in {m}\n" for n in names for m in names))
    models = [f"kenlm:{trained}/3gram.arpa+slor:{trained}/1gram.arpa"]
    models += [specification(tiny_checkpoint, name) for name in ("gpt2", "llama")]
    result = invoke("diff", *models[1:], "--text", "text.txt", "--per-pair", "1", "--enough", "0.1")
    assert "text.txt: 200 of 256 sentences are used" in result.stderr
    result = invoke("diff", *models, "--per-pair", "1", "--enough", "0.05", "--out", "three")
    assert result.exit_code == 0
    rows = read_csv_rows(Path("three.csv"))
    assert len(rows) == 6
    units = {(row["model_accept"], row["model_reject"]): row["drop_unit"] for row in rows}
    for pair, unit in units.items():
        assert unit == ("standard deviations" if any("slor" in m for m in pair) else "nats")
    assert f"score_{models[0]}" in rows[0]
    # Models without names get names that a study file allows
    new_study(Path("study"), [models[0], models[1]])
    study = read_study(Path("study"))
    assert all(Path("study", model.specification.partition(":")[2]) for model in study.models)
    with pytest.raises(InputError, match="at least 2 models, got 1"):
        new_study(Path("other"), models[:1])


def test_recommended_study_has_judge_context_and_text(
    trained: Path, tiny_checkpoint: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    gpt2, context = specification(tiny_checkpoint, "gpt2"), "?context=It%20says%3A"
    step = FindDifferences(
        models=(f"slor={gpt2}+slor:{trained}/1gram.arpa", f"kenlm:{trained}/3gram.arpa"),
        text=Path("text.txt"),
        settings=SearchRules(judge=(f"judge={gpt2}",)),
        context=("slor=It says:", "judge=It says:"),
    )
    Path("text.txt").write_text("The dog sleeps\n" * 200)
    invoke(*shlex.split(step._study_command())[1:], "--quiet")
    study = read_study(Path("study"))
    with chdir("study"):
        (model, _), (judge,) = study.models, parse_models(study.judge)
        assert Path(model.specification.split(":")[1].partition("+")[0]).samefile(gpt2[3:])
        assert Path(study.texts.natural or "").samefile(tmp_path / "text.txt")
    assert model.specification.endswith(f"1gram.arpa{context}")
    assert (judge.name, judge.context) == ("judge", "It says:")
    assert study.texts.training is None  # its sentences would be excluded
    assert "train.ngram" not in Path("study/study.toml").read_text()


def test_unsuitable_input_is_refused(trained: Path, tmp_path: Path) -> None:
    model, text = f"kenlm:{trained / '2gram.arpa'}", tmp_path / "text.txt"
    text.write_text("Xylophones quack loudly\n" * 30)
    out = ["--out", str(tmp_path / "diff")]
    with pytest.raises(InputError, match=r"--out must not end in \.html or \.csv"):
        invoke("diff", model, f"x={model}+mean", "--out", tmp_path / "diff.html")
    with pytest.raises(ModelError, match="rank all sentences of equal length in the same order"):
        invoke("diff", model, f"{model}+mean", *out)
    with pytest.raises(InputError, match=r"at least 2 models, got 1"):
        invoke("diff", model, *out)
    with pytest.raises(InputError, match=r"--text must have at least 20 .* got 0 of 30"):
        invoke("diff", model, f"kenlm:{trained / '3gram.arpa'}", "--text", text, *out)
