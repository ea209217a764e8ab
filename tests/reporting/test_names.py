"""Short names, against ones written by hand."""

from hypothesis import given
from hypothesis import strategies as st

from contstim.reporting.report import short_names, shortened


def test_names_lose_what_does_not_tell_them_apart() -> None:
    assert short_names(["hf:runs/a/bert@chain", "hf:runs/gpt2"]) == ["bert@chain", "gpt2"]
    assert short_names(["hf:a/x/bert@chain", "hf:a/y/bert@chain", "hf:gpt2"]) == [
        *("x/bert@chain", "y/bert@chain", "hf:gpt2")
    ]
    assert short_names(["hf:gpt2+slor:dir/uni.arpa"]) == ["hf:gpt2+slor:dir/uni.arpa"]
    assert short_names(["kenlm:m.arpa", "m.arpa"]) == ["kenlm:m.arpa", "m.arpa"]


def test_long_names_keep_their_ends_and_a_number_where_these_coincide() -> None:
    seeds = [f"hf:runs/seed{n}/bert-base-uncased-finetuned@pll-original" for n in (1, 2)]
    assert short_names([*seeds, "hf:runs/gpt2"]) == [
        "(1) …-finetuned@pll-original",
        "(2) …-finetuned@pll-original",
        "gpt2",
    ]
    assert short_names(["hf:runs/" + "x" * 30 + "@chain"]) == ["…" + "x" * 21 + "@chain"]


@given(st.lists(st.text("(12) …/x", min_size=24, max_size=34), max_size=8))
def test_names_coincide_only_where_they_are_the_same(names: list[str]) -> None:
    found = shortened(names)
    assert all(len(name) <= 28 for name in found)
    assert len(set(found)) == len(set(names)) == len(set(zip(names, found, strict=True)))
