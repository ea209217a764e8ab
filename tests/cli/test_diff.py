"""`contstim diff`: the page, the table, and the study that its last line makes."""

import csv
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from contstim.errors import InputError
from contstim.models.catalog import load_models
from contstim.study.study_file import read_study
from contstim.words.sentence import Sentence
from tests.cli.running import invoke

pytestmark = pytest.mark.usefixtures("unsaved")


def test_page_table_and_study(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outside witness: the models score every sentence of the table again."""
    monkeypatch.chdir(tmp_path)
    models = {name: f"{name}=kenlm:{trained / name}gram.arpa" for name in "243"}
    command = [*list(models.values())[:2], "--per-pair", "4", "--enough", "2", "--quiet"]
    shown = invoke("diff", *command, "--baseline", models["3"]).stdout
    page = (tmp_path / "diff.html").read_text(encoding="utf-8")
    assert "http" not in re.sub(r"data:image/png;base64,[^\"]+", "", page)
    with Path("diff.csv").open(encoding="utf-8") as file:
        rows = [*csv.DictReader(file)]
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
        changed = zip(natural.words, sentence.words, strict=True)
        expected = "; ".join(f"{old} → {new}" for old, new in changed if old != new)
        assert row["changed_words"] == expected
    (line,) = [line for line in shown.splitlines() if line.startswith("  contstim new ")]
    invoke(*shlex.split(line)[1:], "--quiet")
    study = read_study(Path("study"))
    assert [model.name for model in study.models] == ["2", "4"]
    # Stored scores and triplets give the same page
    (tmp_path / "diff.html").unlink()
    invoke("diff", *command, "--baseline", models["3"])
    assert (tmp_path / "diff.html").read_text(encoding="utf-8") == page


def test_unsuitable_input(trained: Path, tmp_path: Path) -> None:
    model, text = f"kenlm:{trained / '2gram.arpa'}", tmp_path / "text.txt"
    text.write_text("Xylophones quack loudly\n" * 30)
    out = ["--out", str(tmp_path / "diff")]
    with pytest.raises(InputError, match=r"at least 2 models, got 1"):
        invoke("diff", model, *out)
    with pytest.raises(InputError, match=r"--text must have at least 20 .* got 0 of 30"):
        invoke("diff", model, f"kenlm:{trained / '3gram.arpa'}", "--text", text, *out)
