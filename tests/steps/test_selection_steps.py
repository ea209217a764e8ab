"""Steps that choose stimuli and make trials of them, called from Python.

Witness of records: the files of the folder. Inputs are those that stood there before, outputs those
that came after, without the record itself.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from contstim.errors import InputError
from contstim.scores import ScoreTable
from contstim.sentence import Sentence
from contstim.steps.design import DesignSettings, PowerSettings, make_design, simulate_power
from contstim.steps.pairs import PairSettings, select_pairs
from contstim.steps.selection import SelectionSettings, choose_triplets
from contstim.stimuli import (
    read_pairs,
    read_trials,
    read_triplets,
    write_pairs,
    write_triplets,
)
from tests.experiments.stimuli import MODELS, some_pairs, some_triplets
from tests.optimization.selection.tables import random_table

NO_FILLERS = DesignSettings(groups=2, random_per_group=0, catch_per_group=0)
FEW = PowerSettings(participants=2, simulations=3)


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def record(path: Path) -> dict[str, dict[str, str]]:
    written: dict[str, dict[str, str]] = json.loads(Path(f"{path}.meta.json").read_text())
    return written


def require_record_of_all(out: Path, before: set[str]) -> None:
    written = record(out)
    assert set(written["inputs"]) == before
    assert set(written["outputs"]) == files(out.parent) - before - {f"{out.name}.meta.json"}


def scores_of_trials(path: Path) -> None:
    """Scores of all sentences of the pairs below."""
    sides = [s for pair in some_pairs(4) for s in (pair.sentence_1, pair.sentence_2)]
    sentences = tuple(s if isinstance(s, Sentence) else Sentence.parse(str(s)) for s in sides)
    values = np.random.default_rng(0).normal(-40, 5, (len(sentences), len(MODELS)))
    ScoreTable(sentences, MODELS, values).write(path)


def test_pairs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scores, exclude, out = (tmp_path / name for name in ("s.csv", "old.txt", "pairs.csv"))
    table = random_table()
    table.write(scores)
    assert table.sentences is not None
    exclude.write_text(f"{table.sentences[0].text}\n")
    before = files(tmp_path)
    selection = select_pairs(scores, out, settings=PairSettings(per_pair=2, exclude=(exclude,)))
    assert [pair.trial_id for pair in read_pairs(out)] == [p.trial_id for p in selection.pairs]
    assert len(selection.pairs) == 3 * 2
    require_record_of_all(out, before)
    assert capsys.readouterr() == ("", "")


def test_triplets_are_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    candidates, out = tmp_path / "t.csv", tmp_path / "chosen.csv"
    write_triplets(candidates, some_triplets(4))
    before = files(tmp_path)
    settings = SelectionSettings(per_pair=2, quantiles=1)
    selection = choose_triplets(candidates, out, settings=settings)
    assert len(read_triplets(out)) == len(selection.triplets) > 0
    require_record_of_all(out, before)
    assert capsys.readouterr() == ("", "")
    cap = SelectionSettings(uncapped=candidates)
    with pytest.raises(InputError, match="--uncapped names the exceptions of --word-cap"):
        choose_triplets(candidates, out, settings=cap)


def test_a_design_and_its_power(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pairs, scores, out = (tmp_path / name for name in ("pairs.csv", "s.csv", "trials.csv"))
    write_pairs(pairs, some_pairs(4))
    scores_of_trials(scores)
    before = files(tmp_path)
    design = make_design(out, pairs=pairs, settings=NO_FILLERS, scores=scores, power=FEW, seed=3)
    assert [trial.trial_id for trial in read_trials(out)] == [t.trial_id for t in design.trials]
    require_record_of_all(out, before)
    # The same simulation as a step of its own, of the trials as they were written
    (tmp_path / "alone").mkdir()
    simulate_power(out, scores, tmp_path / "alone" / "study", settings=FEW, seed=3)
    alone = tmp_path / "alone" / "study.power.csv"
    assert alone.read_text() == Path(f"{out}.power.csv").read_text()
    text = alone.with_suffix(".md").read_text()
    assert (
        text.replace("(study.power.png)", "(trials.csv.power.png)")
        == Path(f"{out}.power.md").read_text()
    )
    written = record(alone)
    assert set(written["inputs"]) == {"../trials.csv", "../s.csv"}
    endings = ("power.csv", "power-sizes.csv", "power.md", "power.png")
    assert set(written["outputs"]) == {f"study.{ending}" for ending in endings}
    assert capsys.readouterr() == ("", "")


def test_a_design_that_cannot_be_simulated_is_not_written(tmp_path: Path) -> None:
    pairs, scores, out = (tmp_path / name for name in ("pairs.csv", "s.csv", "trials.csv"))
    write_pairs(pairs, some_pairs(4))
    random_table().write(scores)  # of other sentences
    before = files(tmp_path)
    with pytest.raises(InputError):
        make_design(out, pairs=pairs, settings=NO_FILLERS, scores=scores, power=FEW)
    assert files(tmp_path) == before
    with pytest.raises(InputError, match="give --sentences"):
        make_design(out, pairs=pairs, settings=DesignSettings())
