"""Commands that need log-probabilities refuse other scores before any work."""

from pathlib import Path

import pytest

from contstim.errors import InputError, ModelError
from contstim.files.tables import write_table
from contstim.items.stimuli import Condition, Kind, Trial, trial_columns
from contstim.models.catalog import load_model, load_scorer
from contstim.optimization.search.synthesize import synthesize, synthesize_pair, synthesize_triplet
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary
from tests.cli.running import invoke

RANDOM = Condition.RANDOM_NATURAL


@pytest.mark.parametrize("transform", ["+mean", "+slor:1.arpa"])
def test_searches_refuse_transformed_models(folder: Path, transform: str) -> None:
    plain, transformed = load_model("kenlm:2.arpa"), load_scorer(f"kenlm:3.arpa{transform}")
    vocabulary = Vocabulary.load(folder / "vocab.txt")
    natural = Sentence.parse((folder / "natural.txt").read_text().splitlines()[0])
    message = r"scores of kenlm:3.arpa.* are not log-probabilities of sentences: .* is nats per"
    for first, second in ((plain, transformed), (transformed, plain)):
        for search in (synthesize, synthesize_pair, synthesize_triplet):
            with pytest.raises(ModelError, match=message):
                search(first, second, natural, vocabulary)


def test_simulation_reads_the_unit_of_scores_from_their_record(folder: Path) -> None:
    lines = (folder / "natural.txt").read_text().splitlines()
    sentences = list(map(Sentence.parse, lines))
    trials = [
        Trial(str(n), 1, RANDOM, "", "", first, second, Kind.NATURAL, Kind.NATURAL, "")
        for n, (first, second) in enumerate(zip(sentences[::2], sentences[1::2], strict=True))
    ]
    write_table(folder / "trials.csv", trial_columns(trials))
    models = "--model kenlm:2.arpa --model kenlm:3.arpa+mean"
    invoke(f"score {models} --sentences natural.txt --out s.csv -q")
    simulate = "simulate --trials trials.csv --scores s.csv --out r.csv --model"
    with pytest.raises(ModelError, match="their unit is nats per token"):
        invoke(simulate, "kenlm:3.arpa+mean")
    invoke(simulate, "kenlm:2.arpa", "--noise", "1")
    record = folder / "s.csv.meta.json"
    original = record.read_text()
    for damage in ('{"models": 3}', '{"models": {"kenlm:2.arpa": 3}}', "[]", "{", ""):
        record.write_text(damage)
        with pytest.raises(InputError):
            invoke(simulate, "kenlm:2.arpa")
    record.write_text(original)
    counts = "--groups 1 --random-per-group 1 --catch-per-group 1"
    invoke(f"design --sentences natural.txt {counts} --out d.csv")
    with pytest.raises(ModelError, match="nats per token"):
        invoke("power --trials d.csv --scores s.csv --out r.csv")
    assert not (folder / "r.csv.power.csv").exists()
