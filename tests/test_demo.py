from __future__ import annotations

import json
from pathlib import Path

from contstim.demo import run_demo
from contstim.models.ngram.adapter import KenlmModel
from contstim.optimization.certificate import Certificate, NaturalSelection
from contstim.optimization.verification import verify_natural
from contstim.scores import ScoreTable
from contstim.sentence import Sentence
from contstim.stimuli import read_pairs, read_triplets


def test_the_demo_writes_what_it_shows(tmp_path: Path) -> None:
    """Witness: the files read back, scored by KenLM and checked by the independent verifier."""
    said: list[str] = []
    found = run_demo(tmp_path, seed=0, say=said.append)
    assert len(said) == 4
    assert read_triplets(tmp_path / "triplets.csv") == found.triplets
    models = [KenlmModel(tmp_path / f"{n}-gram.arpa", name=f"{n}-gram") for n in (2, 3)]
    for t in found.triplets:
        texts = [Sentence.parse(text) for text in (t.natural, t.synthetic_1, t.synthetic_2)]
        (n1, s11, s21), (n2, s12, s22) = (model.log_probs(texts) for model in models)
        assert s11 < n1
        assert s12 >= n2
        assert s22 < n2
        assert s21 >= n1
    selection = NaturalSelection(
        read_pairs(tmp_path / "pairs.csv"),
        Certificate.load(tmp_path / "pairs.csv.certificate.json"),
    )
    verify_natural(ScoreTable.read(tmp_path / "scores.csv"), selection, per_pair=5)
    record = json.loads((tmp_path / "scores.csv.meta.json").read_text())
    assert record["models"]["2-gram"]["unit"] == "nats"
    assert "<mark>" in (tmp_path / "report.html").read_text(encoding="utf-8")
