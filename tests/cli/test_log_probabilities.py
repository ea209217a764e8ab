"""What needs log-probabilities refuses scores that are something else, before any work."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from contstim.cli.program import app
from contstim.errors import InputError, ModelError
from contstim.files.tables import write_table
from contstim.items.stimuli import Condition, Kind, Trial, trial_columns
from contstim.models.catalog import load_model, load_scorer
from contstim.optimization.search.synthesize import synthesize, synthesize_pair, synthesize_triplet
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary

RANDOM = Condition.RANDOM_NATURAL


def refused(*arguments: str) -> str:
    done = CliRunner().invoke(app, [*arguments])
    assert isinstance(done.exception, ModelError), done.output
    return str(done.exception)


@pytest.mark.parametrize("transform", ["+mean", "+slor:1.arpa"])
def test_no_search_takes_a_transformed_model(folder: Path, transform: str) -> None:
    plain, other = load_model("kenlm:2.arpa"), load_scorer(f"kenlm:3.arpa{transform}")
    words = Vocabulary.load(folder / "vocab.txt")
    natural = Sentence.parse((folder / "natural.txt").read_text().splitlines()[0])
    message = r"scores of kenlm:3.arpa.* are not log-probabilities of sentences: .* is nats per"
    for first, second in ((plain, other), (other, plain)):
        for search in (synthesize, synthesize_pair, synthesize_triplet):
            with pytest.raises(ModelError, match=message):
                search(first, second, natural, words)  # type: ignore[arg-type]


def test_a_simulation_reads_what_the_scores_are_from_their_record(folder: Path) -> None:
    lines = (folder / "natural.txt").read_text().splitlines()
    sentences = list(map(Sentence.parse, lines))
    trials = [
        Trial(str(n), 1, RANDOM, "", "", first, second, Kind.NATURAL, Kind.NATURAL, "")
        for n, (first, second) in enumerate(zip(sentences[::2], sentences[1::2], strict=True))
    ]
    write_table(folder / "trials.csv", trial_columns(trials))
    models = ("--model", "kenlm:2.arpa", "--model", "kenlm:3.arpa+mean")
    score = ["score", *models, "--sentences", "natural.txt", "--out", "s.csv", "-q"]
    assert CliRunner().invoke(app, score).exit_code == 0
    inputs = ("--trials", "trials.csv", "--scores", "s.csv", "--out", "r.csv")
    told = refused("simulate", *inputs, "--model", "kenlm:3.arpa+mean")
    assert "their unit is nats per token" in told
    fine = CliRunner().invoke(app, ["simulate", *inputs, "--model", "kenlm:2.arpa", "--noise", "1"])
    assert fine.exit_code == 0, fine.exception
    record = folder / "s.csv.meta.json"
    known = record.read_text()
    for damage in ('{"models": 3}', '{"models": {"kenlm:2.arpa": 3}}', "[]", "{", ""):
        record.write_text(damage)
        done = CliRunner().invoke(app, ["simulate", *inputs, "--model", "kenlm:2.arpa"])
        assert isinstance(done.exception, InputError), damage
    record.write_text(known)
    design = ("--sentences", "natural.txt", "--groups", "1", "--random-per-group", "1")
    rest = ("--catch-per-group", "1", "--out", "d.csv")
    assert CliRunner().invoke(app, ["design", *design, *rest]).exit_code == 0
    assert "nats per token" in refused("power", "--trials", "d.csv", *inputs[2:])
    assert not (folder / "r.csv.power.csv").exists()
