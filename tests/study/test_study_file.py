"""Study files: what a good one means, and for each kind of bad one a message with its line.

The line of each problem is where the replaced text stands, counted by this test.
"""

from __future__ import annotations

from pathlib import Path
from time import process_time

import pytest

from contstim.errors import InputError
from contstim.steps.analysis import AnalyzeResponses
from contstim.steps.platforms import ExportTrials
from contstim.steps.selection import SelectPairs
from contstim.steps.training import TrainNetwork
from contstim.study.study_file import read_study

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
plausible = "0.25"
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

# What is replaced by what, and what the message says of it
BAD = {
    "a section that there is not": ("[design]", "[desing]", "did you mean design?"),
    "a section unlike any": ("[loading]", "[xyzzy]", "there is no such section; there are"),
    "a key that there is not": ("min_count", "min_counts", "did you mean min_count?"),
    "a key of another section": ("simulations = 10", "groups = 10", "there is no such key"),
    "a key of the file": ("seed = 3", "sead = 3", "did you mean seed?"),
    "a number in quotes": ("per_pair = 9", 'per_pair = "9"', "is not a whole number"),
    "a fraction": ("per_pair = 9", "per_pair = 9.5", "is not a whole number"),
    "a number where a text is": ('words = "8"', "words = 8", "is not a text in quotes"),
    "a yes that is a text": ("same_length = true", 'same_length = "yes"', "is not true or false"),
    "a choice that there is not": ('"worst-rank"', '"worst"', "is not one of"),
    "a title that is a number": ('title = "Two n-gram models"', "title = 2", "is not a text"),
    "a seed that is a text": ("seed = 3", 'seed = "3"', "is not a whole number"),
    "a seed below 0": ("seed = 3", "seed = -3", "0 or more"),
    "a section that is a number": ("[power]\nsimulations = 10", "[sentences.x]", "no such key"),
    "a text that is not there": ('"more.txt"', '"mor.txt"', "there is no file 'mor.txt'"),
    "a text that is a folder": ('"more.txt"', '"empty"', "'empty' is a folder; name a file"),
    "a text without end": ('"more.txt"', '"/dev/zero"', "'/dev/zero' is not a file"),
    "a review that is a folder": ('"review.csv"', '"empty"', "'empty' is a folder; name a file"),
    "a null character in a title": ("Two n-gram", r"Two \u0000", "[title]: holds a null character"),
    "a null character in a text": ("more.txt", r"more\u0000.txt", "[texts] natural: holds a null"),
    "a null character in a list": ('"review.csv"', r'"a", "\u0000"', "review: holds a null"),
    "a null character in a key": ("min_count", r'"a\u0000b"', r"[vocabulary] a\u0000b: holds"),
    "a null character in a section": ("[loading]", r'["\u0000"]', r"[\u0000]: holds a null"),
    "a null character in a model": (
        "bigram =",
        r'"bi\u0000" =',
        r"[models] bi\u0000: holds",
    ),
    "a null character in braces": ('same = "lstm"', r'same = "\u0000"', "mean.same: holds a null"),
    "an embedded text without number": ('"english:400"', '"english"', "such as english:2000"),
    "a review that is not there": ('"review.csv"', '"rev.csv"', "there is no file 'rev.csv'"),
    "a judge that is not there": ('"0.25"', '"kenlm:none.arpa:0.25"', "none.arpa"),
    "a model that is not there": ('{ train = "ngram", order = 2 }', '"kenlm:2.arpa"', "2.arpa"),
    "a folder that is no model": ('{ train = "ngram", order = 2 }', '"hf:./empty"', "empty"),
    "a family that there is not": ('{ train = "ngram", order = 2 }', '"nlm:2"', "Families: "),
    "a context of all models": ('device = "cpu"', 'prompt = ". "', "its own context in"),
    "a context of an n-gram model": ("order = 2", 'order = 2, context = ". "', "reads nothing"),
    "a context that is a number": ("order = 2", "order = 2, context = 2", "is not a text"),
    "a rule beside a specification": (
        '{ train = "ngram", order = 2 }',
        '{ model = "hf:gpt2", rule = "chain" }',
        "bigram.rule: there is no such key",
    ),
    "a model with a number": ('{ train = "ngram", order = 2 }', "{ model = 2 }", "must be a text"),
    "a kind that there is not": ('train = "lstm"', 'train = "gru"', "must be one of ngram"),
    "a setting that there is not": ("hidden = 16", "hiden = 16", "did you mean hidden?"),
    "a setting out of range": ("hidden = 16", "hidden = 0", "1 or more"),
    "a setting of another type": ("order = 2", 'order = "2"', "is not a whole number"),
    "an order out of range": ("order = 2", "order = 9", "6 at most"),
    "a rule that there is not": ("epochs = 1", 'rule = "chain"', "no rule 'chain'"),
    "a transform that there is not": ('transform = "mean"', 'transform = "sum"', "transform"),
    "a rule that is a path": ("epochs = 1", 'rule = "/../../../../KEEP.txt"', "no rule '/../"),
    "a rule that is a dot": ("order = 2", 'order = 2, rule = "."', "no rule '.'"),
    "a rule and a transform": ("epochs = 1", 'rule = "log-likelihood+mean"', "no rule"),
    "a transform that is a path": ('"mean"', '"mean/../../../../KEEP.txt"', "transform"),
    "an argument too many": ('"mean"', '"mean:/KEEP.txt"', "transform"),
    "a name that leads upwards": ("bigram =", '".." =', "must be a file in"),
    "the same as nothing": ('same = "lstm"', 'same = "gpt"', "another model of this study"),
    "a model twice": (', transform = "mean"', "", "are the same model"),
    "a model that is a number": ('{ train = "ngram", order = 2 }', "2", "is not a model"),
    "two names for one place": ("bigram =", "LSTM =", "would be trained in one place"),
    "a name like a path": ("bigram =", '"a/b" =', "is not a name for a model"),
    "a name of a column": ("bigram =", "sentence =", "must not be"),
    "a length that is none": ('words = "8"', 'words = "eight"', "must be a number or a range"),
    "a floor that is none": ('"0.25"', '"often"', "plausible"),
    "a floor above 1": ('"0.25"', '"25"', "plausible"),
    "a recipe that there is not": (
        'plausible = "0.25"',
        'recipe = "best"',
        "study.toml has 1 problem:\n  line 22, [triplets]: There is no recipe",
    ),
    "responses that are no table": (
        '"participants"',
        '"participants"\nresponses = "more.txt"',
        "[analyze] responses: ",
    ),
    "a frequency band that is none": ("min_count = 2", 'zipf = "3"', "such as 3.5-7"),
    "more selected than searched": ("per_pair = 9", "per_pair = 3", "cannot be selected from 3"),
    "quantiles that do not divide": ("quantiles = 3", "quantiles = 4", "per_pair = 12"),
    "pairs that groups do not divide": ("groups = 3", "groups = 4", "cannot be dealt out evenly"),
    "too few groups": ("groups = 3", "groups = 2\ntwins = true", "3 groups or more"),
    "no groups": ("groups = 3", "groups = 0", "1 or more"),
    "a scale that there is not": (
        "catch_per_group = 1",
        'catch_per_group = 1\nscale = "stars"',
        "'stars' is not one of 'confidence', 'choice' or 'slider'",
    ),
    "a page of another scale": (
        "catch_per_group = 1\n[power]\n",
        'catch_per_group = 1\nscale = "slider"\n[export.pcibex]\n[power]\n',
        "makes buttons",
    ),
    "a page in a language without texts": (
        "[export.jspsych]\n",
        '[export.jspsych]\nlanguage = "pt-BR"\n',
        "there are no texts in 'pt-BR', but in en, de",
    ),
    "too few sentences": (
        "random_per_group = 2",
        "random_per_group = 2000",
        "none has to serve twice",
    ),
    "triplets below 1": ("per_pair = 9", "per_pair = 0", "1 or more"),
    "a section without what it needs": ("[design]", "[near_pairs]", "no section writes trials"),
    "an artificial human that there is not": (
        '"lstm"\n[an',
        '"gru"\n[an',
        "must be a model of the study",
    ),
    "two kinds of answers": (
        "[simulate]",
        '[import.jspsych]\nfiles = ["more.txt"]\n[simulate]',
        "responses must name one of",
    ),
    "a platform that there is not": ("[export.jspsych]", "[export.jpsych]", "mean jspsych?"),
    "a key that has no default": ("[export.jspsych]", "[reproduce.adc]", "data is missing"),
    "a way to save that is not the platform's": (
        '[export.jspsych]\ntitle = "Which is better?"',
        '[export.jatos]\nsave = "file"',
        "[export.jatos] save: there is no such key",
    ),
    "counts of other models": (
        "quantiles = 3",
        'counts = "other.csv"',
        "counts: other.csv has a number for lstm, bigram, which are not two models",
    ),
    "more counted than searched": (
        "quantiles = 3",
        'quantiles = 0\ncounts = "many.csv"',
        "[select.triplets] counts: 12 triplets of bigram and lstm cannot be selected from 9",
    ),
    "a count that groups do not divide": (
        "quantiles = 3",
        'quantiles = 0\ncounts = "four.csv"',
        "4 triplets of bigram and lstm cannot be dealt out evenly to 3 groups",
    ),
    "a count that is none": (
        "quantiles = 3",
        'counts = "review.csv"',
        "[select.triplets] counts: ",
    ),
    "contrasts that are none": (
        '"participants"',
        '"auto"\ncontrasts = "other.csv"',
        "lacks the columns first, second",
    ),
    "a pair that is none": (
        '"participants"',
        '"auto"\npair = ["lstm", "x"]',
        "must be a model of the study",
    ),
    "a rule for more catch trials": ('"participants"', '"auto"\nmin_catch = 9', "min_catch: "),
    "a deadline and no share that may be missing": (
        'title = "Which is better?"',
        "deadline = 4.0",
        "max_missing: after the deadline of [export.jspsych], 4 s, answers are missing",
    ),
    "a deadline before buttons wake up": (
        'title = "Which is better?"',
        "deadline = 0.2",
        "at least 1 second",
    ),
    "questions that are none": (
        'title = "Which is better?"',
        'questions = "other.csv"',
        "[export.jspsych] questions: other.csv lacks the columns name, when, kind",
    ),
    "a question that is none": (
        "[power]",
        "[[questions]]\nname = 'a'\nwhen = 'after'\nkind = 'text'\nquestion = 'A?'\n\n"
        "[[questions]]\nname = 'b'\nwhen = 'after'\nkind = 'number'\nquestion = 'B?'\n"
        "options = '18'\n[power]",
        "line 47, [questions] 2.options: '18': options of a number must be",
    ),
    "a key of questions that there is not": (
        "[power]",
        "[[questions]]\nname = 'a'\nwhen = 'after'\nkind = 'text'\nquestions = 'A?'\n[power]",
        "[questions] 1.questions: there is no such key; did you mean question?",
    ),
    "questions that are a table": ("[power]", "[questions]\n[power]", "write [[questions]] and"),
    "practice that is none": (
        'title = "Which is better?"',
        'practice = "other.csv"',
        "[export.jspsych] practice: other.csv lacks the columns sentence_1",
    ),
    "attention that is none": (
        "catch_per_group = 1",
        'attention = "other.csv"',
        "[design] attention: other.csv lacks the columns sentence_1",
    ),
    "a pilot without tables": ("simulations = 10", 'pilot = "empty"', "[power]: "),
    "no simulations": ("simulations = 10", "simulations = 0", "must be 1 or more, not 0"),
    "a length that begins with more": ('words = "8"', 'words = "9-7"', "a number or a range"),
    "responses that nothing writes": (
        '"participants"',
        '"participants"\nresponses = "results/answers.csv"',
        "there is no file 'results/answers.csv'",
    ),
    "a key of a platform": ('title = "Which', 'tittle = "Which', "did you mean title?"),
    "a platform that cannot be read": (
        "[simulate]\nmodel",
        "[import.nowhere]\nmodel",
        "no such key",
    ),
    "no sentences": ('natural = "more.txt"\n', "", "[texts] names no natural text"),
    "nothing to train on": ('training = "english:400"\n', "", "set training in [texts]"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "more.txt").write_text("They read books.\n" * 200, encoding="utf-8")
    header = (
        "reviewer,item_id,kind,source_id,condition,group,model_1,model_2,"
        "sentence_1,sentence_2,sentence_3,decision,reason\n"
    )
    row = "Ann,p1,pair,,,0,bigram,lstm,They sleep.,We read.,,keep,\n"
    (tmp_path / "review.csv").write_text(header + row, encoding="utf-8")
    counts = "model_1,model_2,per_pair\n"
    (tmp_path / "other.csv").write_text(f"{counts}lstm,bigram,3\n", encoding="utf-8")
    (tmp_path / "many.csv").write_text(f"{counts}bigram,lstm,12\n", encoding="utf-8")
    (tmp_path / "four.csv").write_text(f"{counts}bigram,lstm,4\n", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    (tmp_path / "study.toml").write_text(GOOD, encoding="utf-8")
    return tmp_path


def test_a_good_file_has_no_problem(folder: Path) -> None:
    study = read_study(folder)
    assert [model.text for model in study.models] == [
        "bigram=kenlm:results/models/bigram.arpa",
        "lstm=lstm:results/models/lstm",
        "mean=lstm:results/models/lstm+mean",
    ]
    assert (study.title, study.seed, study.step(SelectPairs).settings.per_pair) == (  # type: ignore[union-attr]
        "Two n-gram models",
        3,
        6,
    )
    assert isinstance(study.models[1].training, TrainNetwork)
    assert study.models[1].training.training.seed == 3  # that of the study


def test_attention_trials_count_as_catch_trials(folder: Path) -> None:
    (folder / "asked.csv").write_text("sentence_1,sentence_2\nThis one.,The other one.\n")
    text = GOOD.replace("catch_per_group = 1", 'catch_per_group = 1\nattention = "asked.csv"')
    for number, right in ((2, True), (3, False)):
        rule = text.replace('"participants"', f'"participants"\nmin_catch = {number}')
        (folder / "study.toml").write_text(rule, encoding="utf-8")
        if right:
            analysis = read_study(folder).step(AnalyzeResponses)
            assert analysis is not None
            assert analysis.settings.min_catch == number
        else:
            with pytest.raises(InputError, match="min_catch: "):
                read_study(folder)


def test_a_platform_has_settings_of_its_own(folder: Path) -> None:
    """A study for JATOS saves to JATOS, and nobody has to say so."""
    text = GOOD.replace("[export.jspsych]", "[export.jatos]")
    (folder / "study.toml").write_text(text, encoding="utf-8")
    export = read_study(folder).step(ExportTrials)
    assert export is not None
    assert export.settings.save == "jatos"


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_told_with_line_key_and_remedy(folder: Path, name: str) -> None:
    old, new, message = BAD[name]
    assert GOOD.count(old) == 1
    (folder / "study.toml").write_text(GOOD.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError) as refused:
        read_study(folder / "study.toml")
    text = str(refused.value)
    assert message in text
    assert "study.toml has " in text
    assert all(line.startswith("  line ") for line in text.split("\n")[1:])


def test_all_problems_are_told_together_in_the_order_of_lines(folder: Path) -> None:
    bad = GOOD.replace("groups = 3", "groups = 4").replace("min_count", "minimum")
    bad = bad.replace("[power]\nsimulations = 10\n", "")
    bad = bad.replace('"more.txt"', '"none.txt"').replace("order = 2", 'order = "two"')
    (folder / "study.toml").write_text(bad, encoding="utf-8")
    with pytest.raises(InputError) as refused:
        read_study(folder)
    places = [line.split(": ")[0].strip() for line in str(refused.value).split("\n")[1:]]
    assert places == [
        "line 5, [texts] natural",
        "line 7, [models] bigram.order",
        "line 13, [vocabulary] minimum",
        "line 20, [select.natural] per_pair",
        "line 27, [select.triplets] per_pair",
    ]


def test_what_is_not_toml_is_told_with_its_line(folder: Path) -> None:
    (folder / "study.toml").write_text(GOOD.replace("order = 2", "order = two"), encoding="utf-8")
    with pytest.raises(InputError, match=r"TOML.*line 7"):
        read_study(folder)


def test_many_unknown_keys_take_no_longer_each_than_few(folder: Path) -> None:
    unknown = "".join(f"unknown_{number} = 1\n" for number in range(8_000))
    text = GOOD.replace("[select.natural]\n", f"[select.natural]\n{unknown}")
    (folder / "study.toml").write_text(text, encoding="utf-8")
    began = process_time()
    with pytest.raises(InputError) as refused:
        read_study(folder)
    assert process_time() - began < 3  # the square of their number takes more than twice that
    lines = str(refused.value).split("\n")
    assert "study.toml has 8,000 problems:" in lines[0]
    assert lines[-1].startswith("  line 8019, [select.natural] unknown_7999: there is no such key")


@pytest.mark.parametrize("place", ["/dev/zero", "nowhere"])
def test_what_is_no_file_is_no_study(place: str) -> None:
    with pytest.raises(InputError, match=f"There is no study file {place}"):
        read_study(place)


def test_a_missing_file_says_how_to_begin(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="contstim new NAME"):
        read_study(tmp_path)


@pytest.mark.parametrize("name", ["no groups", "triplets below 1"])
def test_nothing_is_told_of_numbers_that_were_refused(folder: Path, name: str) -> None:
    old, new, _ = BAD[name]
    (folder / "study.toml").write_text(GOOD.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError, match="has 1 problem"):
        read_study(folder)
