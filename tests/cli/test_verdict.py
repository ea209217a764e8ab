"""`contstim verdict`: status, table and figure."""

import csv
from pathlib import Path

from tests.cli.running import invoke


def test_the_status_says_whether_there_is_a_verdict(tmp_path: Path) -> None:
    answers, out = tmp_path / "answers.csv", tmp_path / "verdict.csv"
    lines = ["participant,model_a,model_b,preferred"]
    for n_people, status, text in ((3, 3, "Undecided"), (30, 0, "x beats every other model")):
        rows = [f"p{n},x,{other},x" for n in range(n_people) for other in ("y", "z")]
        answers.write_text("\n".join([*lines, *rows]))
        done = invoke("verdict", answers, "--out", out)
        assert done.exit_code == status
        assert text in done.stdout
    with out.open() as file:
        first, *_ = csv.DictReader(file)
    assert (first["model_a"], first["model_b"], first["participants"]) == ("x", "y", "30")
    assert float(first["e_a_beats_b"]) > 60
    assert float(first["difference_low"]) > 0
    assert (tmp_path / "verdict.csv.png").read_bytes()[:4] == b"\x89PNG"
