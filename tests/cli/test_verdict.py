"""`contstim verdict`: status, table and figure."""

from pathlib import Path

from contstim.testing.platform import read_csv_rows
from tests.cli.running import invoke


def test_status_shows_whether_there_is_a_verdict(tmp_path: Path) -> None:
    answers, out = tmp_path / "answers.csv", tmp_path / "verdict.csv"
    lines = ["participant,model_a,model_b,preferred"]
    for n_participants, status, text in ((3, 3, "Undecided"), (30, 0, "x beats every other model")):
        rows = [f"p{n},x,{rival},x" for n in range(n_participants) for rival in ("y", "z")]
        answers.write_text("\n".join([*lines, *rows]))
        result = invoke("verdict", answers, "--out", out)
        assert result.exit_code == status
        assert text in result.stdout
    first_row, *_ = read_csv_rows(out)
    columns = ("model_a", "model_b", "participants")
    assert [first_row[name] for name in columns] == ["x", "y", "30"]
    assert float(first_row["e_a_beats_b"]) > 60
    assert float(first_row["difference_low"]) > 0
    assert (tmp_path / "verdict.csv.png").read_bytes()[:4] == b"\x89PNG"
