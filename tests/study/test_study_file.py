"""Study files: the study that a valid file describes, and an error with line for each problem."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from time import process_time

import pytest

from contstim.errors import InputError
from contstim.items.reviews import undecided_items, write_review
from contstim.items.stimuli import Pair
from contstim.steps.analysis import AnalyzeResponses
from contstim.steps.platforms import ExportTrials
from contstim.steps.selection import SelectPairs
from contstim.steps.training import TrainNetwork
from contstim.study.study_file import read_study
from contstim.words.sentence import Sentence

GOOD = """\
title = "Two n-gram models"
seed = 3
[texts]
training = "english:400"
natural = "more.txt"
[models]
bigram = { train = "ngram", order = 2 }
lstm = { train = "lstm", hidden = 16, epochs = 1 }
mean = { same = "lstm", transform = "mean" }
[loading]
device = "cpu"
[vocabulary]
min_count = 2
[sentences]
words = "8"
names = 0
[score]
models_in_memory = 1
[select.natural]
per_pair = 6
same_length = true
[triplets]
per_pair = 9
enough = 0.25
max_changes = 2
[select.triplets]
per_pair = 6
quantiles = 3
objective = "worst-rank"
[review]
[design]
review = ["review.csv"]
groups = 3
random_per_group = 2
catch_per_group = 1
[power]
simulations = 10
[export.jspsych]
title = "Which is better?"
[simulate]
model = "lstm"
[analyze]
units = "participants"
"""

NGRAM = '{ train = "ngram", order = 2 }'
TITLE = 'title = "Which is better?"'
SELECTED = "quantiles = 3"
CATCH = "catch_per_group = 1"
ASKED = "[[questions]]\nname = 'a'\nwhen = 'after'\nkind = 'number'\n"
UNITS = '"participants"'
# Replaced text, its replacement, and part of the message
BAD = [
    ("[design]", "[desing]", "did you mean design?"),
    ("[loading]", "[xyzzy]", "there is no such section; there are"),
    ("min_count", "min_counts", "did you mean min_count?"),
    ("simulations = 10", "groups = 10", "there is no such key"),
    ("seed = 3", "sead = 3", "did you mean seed?"),
    ("per_pair = 9", 'per_pair = "9"', "is not a whole number"),
    ('words = "8"', "words = 8", "is not a text in quotes"),
    ("same_length = true", 'same_length = "yes"', "is not true or false"),
    ('"worst-rank"', '"worst"', "is not one of"),
    ('title = "Two n-gram models"', "title = 2", "is not a text"),
    ("seed = 3", "seed = -3", "0 or more"),
    ("[power]\nsimulations = 10", "[sentences.x]", "no such key"),
    ('"more.txt"', '"mor.txt"', "there is no file 'mor.txt'"),
    ('"more.txt"', '"empty"', "'empty' is a folder; name a file"),
    ('"more.txt"', '"/dev/zero"', "'/dev/zero' is not a file"),
    ('"review.csv"', '"empty"', "'empty' is a folder; name a file"),
    ("Two n-gram", r"Two \u0000", "[title]: contains a null character"),
    ("more.txt", r"more\u0000.txt", "[texts] natural: contains a null"),
    ('"review.csv"', r'"a", "\u0000"', "review: contains a null"),
    ("min_count", r'"a\u0000b"', r"[vocabulary] a\u0000b: contains"),
    ("[loading]", r'["\u0000"]', r"[\u0000]: contains a null"),
    ("bigram =", r'"bi\u0000" =', r"[models] bi\u0000: contains"),
    ('same = "lstm"', r'same = "\u0000"', "mean.same: contains a null"),
    ('"english:400"', '"english"', "such as english:2000"),
    ('"review.csv"', '"rev.csv"', "there is no file 'rev.csv'"),
    ("enough = 0.25", 'judge = "kenlm:none.arpa"', "none.arpa"),
    (NGRAM, '"kenlm:2.arpa"', "2.arpa"),
    (NGRAM, '"hf:./empty"', "empty"),
    (NGRAM, '"nlm:2"', "bilstm: "),
    ('device = "cpu"', 'prompt = ". "', "its own context in"),
    ("order = 2", 'order = 2, context = ". "', "reads nothing"),
    ("order = 2", "order = 2, context = 2", "is not a text"),
    (NGRAM, '{ model = "hf:gpt2", rule = "chain" }', "bigram.rule: there is no such key"),
    (NGRAM, "{ model = 2 }", "model: 2 is not a text"),
    ('train = "lstm"', 'train = "gru"', "must be one of ngram"),
    ("hidden = 16", "hiden = 16", "did you mean hidden?"),
    ("order = 2", 'order = "2"', "is not a whole number"),
    ("epochs = 1", 'rule = "chain"', "no rule 'chain'"),
    ('transform = "mean"', 'transform = "sum"', "transform"),
    ("epochs = 1", 'rule = "/../../../../KEEP.txt"', "no rule '/../"),
    ("order = 2", 'order = 2, rule = "."', "no rule '.'"),
    ("epochs = 1", 'rule = "log-likelihood+mean"', "no rule"),
    ('"mean"', '"mean/../../../../KEEP.txt"', "transform"),
    ('"mean"', '"mean:/KEEP.txt"', "transform"),
    ("bigram =", '".." =', "must be a file in"),
    ('same = "lstm"', 'same = "gpt"', "another model of this study"),
    (', transform = "mean"', "", "are the same model"),
    (NGRAM, "2", "is not a model"),
    ("bigram =", "LSTM =", "would be trained in the same folder"),
    ("bigram =", '"a/b" =', "is not a name for a model"),
    ("bigram =", "sentence =", "must not be"),
    ('words = "8"', 'words = "eight"', "must be a number or a range"),
    ("enough = 0.25", 'plausible = "0.25"', "is now the key judge"),
    ("seed =", "judge = 1\nseed =", "list of models"),
    ("seed =", 'judge = { model = "hf:x", rule = "y" }\nseed =', "list of models"),
    ("seed =", 'judge = { model = "kenlm:x", context = "It" }\nseed =', "context"),
    ("enough = 0.25", 'recipe = "best"', "problem:\n  line 22, [triplets]: There is no recipe"),
    (UNITS, '"participants"\nresponses = "more.txt"', "[analyze] responses: "),
    ("min_count = 2", 'zipf = "3"', "such as 3.5-7"),
    ("per_pair = 9", "per_pair = 3", "cannot be selected from 3"),
    (SELECTED, "quantiles = 4", "per_pair = 12"),
    ("groups = 3", "groups = 4", "cannot be divided evenly"),
    ("groups = 3", "groups = 2\ntwins = true", "must be at least 3 with twins"),
    (CATCH, f'{CATCH}\nscale = "stars"', "not one of 'confidence', 'choice' or 'slider'"),
    (f"{CATCH}\n", f'{CATCH}\nscale = "slider"\n[export.pcibex]\n', "shows buttons"),
    (TITLE, f'{TITLE}\nlanguage = "pt-BR"', "must be one of en, de"),
    ("random_per_group = 2", "random_per_group = 2000", "to use each only once"),
    ("[design]", "[near_pairs]", "no section writes trials"),
    ('"lstm"\n[an', '"gru"\n[an', "must be a model of the study"),
    ("[export.jspsych]", "[export.jpsych]", "mean jspsych?"),
    (f"[export.jspsych]\n{TITLE}", '[export.jatos]\nsave = "file"', "save: there is no such key"),
    (SELECTED, 'counts = "other.csv"', "other.csv has a number for lstm, bigram."),
    (SELECTED, 'quantiles = 0\ncounts = "many.csv"', "12 triplets of bigram and lstm cannot be s"),
    (SELECTED, 'quantiles = 0\ncounts = "four.csv"', "4 triplets of bigram and lstm cannot be d"),
    (SELECTED, 'counts = "review.csv"', "[select.triplets] counts: "),
    (UNITS, '"auto"\ncontrasts = "other.csv"', "lacks the columns first, second"),
    (UNITS, '"auto"\npair = ["lstm", "x"]', "must be a model of the study"),
    (UNITS, '"auto"\nmin_catch = 9', "min_catch: "),
    (TITLE, "deadline = 4.0", "max_missing: must be above 0"),
    (TITLE, "deadline = 0.2", "at least 1 second"),
    (TITLE, 'questions = "other.csv"', "questions: other.csv lacks the columns name, when, kind"),
    (
        "[power]",
        f"{ASKED}question = 'A?'\n\n{ASKED}question = 'B?'\noptions = '18'\n[power]",
        "line 47, [questions] 2.options: '18': options of a number must be",
    ),
    ("[power]", f"{ASKED}questions = 'A?'\n[power]", "1.questions: there is no such key; did you"),
    ("[power]", "[questions]\n[power]", "write [[questions]] and"),
    (TITLE, 'practice = "other.csv"', "practice: other.csv lacks the columns sentence_1"),
    (CATCH, 'attention = "other.csv"', "attention: other.csv lacks the columns sentence_1"),
    ("simulations = 10", 'pilot = "empty"', "[power]: "),
    ('words = "8"', 'words = "9-7"', "a number or a range"),
    (UNITS, '"auto"\nresponses = "results/answers.csv"', "no file 'results/answers.csv'"),
    ('title = "Which', 'tittle = "Which', "did you mean title?"),
    ("[simulate]\nmodel", "[import.nowhere]\nmodel", "no such key"),
    ('natural = "more.txt"\n', "", "[texts] names no natural text"),
    ('training = "english:400"\n', "", "set training in [texts]"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "more.txt").write_text("They read books.\n" * 200, encoding="utf-8")
    sentences = (Sentence.parse("They sleep."), Sentence.parse("We read."))
    pair = Pair("p1", "bigram", "lstm", *sentences, 0, 1, 0.1, 0.9, 0.9, 0.1)
    write_review(tmp_path / "review.csv", undecided_items([pair], "Ann"))
    rows = {"other": "lstm,bigram,3", "many": "bigram,lstm,12", "four": "bigram,lstm,4"}
    for name, row in rows.items():
        (tmp_path / f"{name}.csv").write_text(f"model_1,model_2,per_pair\n{row}\n")
    (tmp_path / "empty").mkdir()
    (tmp_path / "study.toml").write_text(GOOD, encoding="utf-8")
    return tmp_path


def test_valid_file_is_read(folder: Path) -> None:
    study = read_study(folder)
    assert [model.text for model in study.models] == [
        "bigram=kenlm:results/models/bigram.arpa",
        "lstm=lstm:results/models/lstm",
        "mean=lstm:results/models/lstm+mean",
    ]
    select = study.step(SelectPairs)
    assert select is not None
    assert (study.title, study.seed, select.settings.per_pair) == ("Two n-gram models", 3, 6)
    assert isinstance(study.models[1].training, TrainNetwork)
    assert study.models[1].training.training.seed == 3  # the seed of the study


def test_attention_trials_count_as_catch_trials(folder: Path) -> None:
    (folder / "asked.csv").write_text("sentence_1,sentence_2\nThis one.,The other one.\n")
    text = GOOD.replace("catch_per_group = 1", 'catch_per_group = 1\nattention = "asked.csv"')
    for min_catch, is_valid in ((2, True), (3, False)):
        rule = text.replace('"participants"', f'"participants"\nmin_catch = {min_catch}')
        (folder / "study.toml").write_text(rule, encoding="utf-8")
        with nullcontext() if is_valid else pytest.raises(InputError, match="min_catch: "):
            analysis = read_study(folder).step(AnalyzeResponses)
            assert analysis is not None
            assert analysis.exclusions.min_catch == min_catch


def test_jatos_export_saves_to_jatos_by_default(folder: Path) -> None:
    text = GOOD.replace("[export.jspsych]", "[export.jatos]")
    (folder / "study.toml").write_text(text, encoding="utf-8")
    export = read_study(folder).step(ExportTrials)
    assert export is not None
    assert export.settings.save == "jatos"


@pytest.mark.parametrize(("old", "new", "message"), BAD)
def test_error_gives_line_and_message(folder: Path, old: str, new: str, message: str) -> None:
    assert GOOD.count(old) == 1
    (folder / "study.toml").write_text(GOOD.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError) as error:
        read_study(folder / "study.toml")
    text = str(error.value)
    assert message in text
    assert "study.toml has " in text
    assert all(line.startswith("  line ") for line in text.split("\n")[1:])


def test_all_problems_are_reported_in_the_order_of_lines(folder: Path) -> None:
    text = GOOD.replace("groups = 3", "groups = 4").replace("min_count", "minimum")
    text = text.replace("[power]\nsimulations = 10\n", "")
    text = text.replace('"more.txt"', '"none.txt"').replace("order = 2", 'order = "two"')
    (folder / "study.toml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as error:
        read_study(folder)
    positions = [line.split(": ")[0].strip() for line in str(error.value).split("\n")[1:]]
    assert positions == [
        "line 5, [texts] natural",
        "line 7, [models] bigram.order",
        "line 13, [vocabulary] minimum",
        "line 20, [select.natural] per_pair",
        "line 27, [select.triplets] per_pair",
    ]


def test_error_gives_line_of_invalid_toml(folder: Path) -> None:
    (folder / "study.toml").write_text(GOOD.replace("order = 2", "order = two"), encoding="utf-8")
    with pytest.raises(InputError, match=r"TOML.*line 7"):
        read_study(folder)


@pytest.mark.slow
def test_time_is_linear_in_the_number_of_unknown_keys(folder: Path) -> None:
    unknown = "".join(f"unknown_{number} = 1\n" for number in range(8_000))
    text = GOOD.replace("[select.natural]\n", f"[select.natural]\n{unknown}")
    (folder / "study.toml").write_text(text, encoding="utf-8")
    start = process_time()
    with pytest.raises(InputError) as error:
        read_study(folder)
    assert process_time() - start < 3  # quadratic time takes more than twice as long
    lines = str(error.value).split("\n")
    assert "study.toml has 8,000 problems:" in lines[0]
    assert lines[-1].startswith("  line 8019, [select.natural] unknown_7999: there is no such key")


def test_path_without_a_file_is_refused(tmp_path: Path) -> None:
    for path in ("/dev/zero", "nowhere", tmp_path):
        with pytest.raises(InputError, match=rf"There is no study file {path}.*contstim new NAME"):
            read_study(path)


@pytest.mark.parametrize("number", ["groups = 3", "per_pair = 9"])
def test_refused_number_causes_no_further_problems(folder: Path, number: str) -> None:
    old, new = number, f"{number[:-1]}0"
    (folder / "study.toml").write_text(GOOD.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError, match="has 1 problem"):
        read_study(folder)
