"""Malformed answers: each is read or raises an error, for any content."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contstim.models.server.client import FORMAT_ERRORS
from contstim.models.server.service import DIALECTS

LEAVES: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, -0.5, "x", -(10**400), "9" * 5_000, "token_id:3", [], {}]
)
NAMES = st.sampled_from(["5", "x", "token_id:3", "token_id:" + "9" * 5_000])
MAPS = st.dictionaries(NAMES, LEAVES, max_size=2)
ANY = LEAVES | MAPS | st.lists(LEAVES | MAPS, max_size=3)


def member(**members: Any) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(members) | ANY


LOGPROBS = member(
    token_logprobs=ANY, tokens=ANY, top_logprobs=st.lists(MAPS, min_size=1, max_size=1)
)
CHOICE = member(
    logprobs=LOGPROBS,
    index=st.just(0) | ANY,
    text=ANY,
    prompt_logprobs=st.lists(
        st.dictionaries(NAMES, member(logprob=ANY, decoded_token=ANY), max_size=2), max_size=3
    ),
)
COMPLETIONS = member(choices=st.lists(CHOICE, min_size=1, max_size=1), usage=ANY, model=ANY)
TRIPLES = st.lists(st.lists(LEAVES, min_size=3, max_size=3), max_size=3) | ANY
META = member(
    input_token_logprobs=TRIPLES,
    output_top_logprobs=st.lists(TRIPLES, max_size=1),
    prompt_tokens=ANY,
)
ANSWERS = {
    "completions": COMPLETIONS,
    "vllm": COMPLETIONS,
    "sglang": st.lists(member(meta_info=META), min_size=1, max_size=1) | ANY,
}


@pytest.mark.parametrize("name", ANSWERS)
def test_any_answer_is_read_or_refused(name: str) -> None:
    dialect = DIALECTS[name]

    @given(ANSWERS[name])
    def check_answer(answer: Any) -> None:
        for attempt in (
            lambda: dialect.reads_echo(answer, [(5, 7)])[0][0][0],
            lambda: dialect.reads_alternatives(answer).values(),
        ):
            with suppress(*FORMAT_ERRORS):
                assert all(v is None or isinstance(v, float) for v in attempt())

    check_answer()
