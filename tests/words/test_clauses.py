"""Questions and parts of sentences are recognised by their tags.

Witness: by hand, on sentences of textbooks and on variants of them.
"""

import pytest

from contstim.english.words import english_tags
from contstim.words.filters import finite_verb, whole_statement
from contstim.words.sentence import Sentence

REJECTED = (
    "How might you decide who should be admitted",
    "But what happens if this experiment is reversed",
    "What happens to behaviors that are not reinforced",
    "So what is the optimal level of arousal",
    "What type of chin will their offspring have",
    "How many social media sites do you visit",
    "Have you ever seen a Ghanaian video film",
    "Do children learn to handle this anxiety",
    "Did he leave",
    "Is the dog old",
    "Will incumbents win their next bid for reelection",
    "Which means you have to learn some words",
    "But is a major shift in our future",
    "By his control extended across the region",
    "By the war had turned into a stalemate",
    "She moves there at the age of years",
    "The Neanderthal went extinct around to years ago",
    "Only percent said they would vote",
    "Problems and prospects for the social support-reactivity hypothesis",
)
ACCEPTED = (
    "What he said was true",
    "What struck me is how different this looks",
    "What a day it was",
    "When he left they struck",
    "When demand exceeds supply prices tend to fall",
    "As income disparities grew resentments did as well",
    "How countries put communitarianism into practice varies widely",
    "When children know how to swim they enjoy the water",
    "However the results were different",
    "That was what he meant",
    "Nor is this surprising",
    "But they are not the only such sites",
    "Do your best to win this game",
    "Do not buy a home without an inspection",
    "In short the planet is filling up",
    "In the corner sat a man",
    "By that time most households had a television",
    "This happened two years ago",
    "In addition depression often co-occurs with burnout",
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [*((text, True) for text in REJECTED), *((text, False) for text in ACCEPTED)],
)
def test_questions_and_parts_of_sentences_are_rejected(text: str, expected: bool) -> None:
    rules = (finite_verb(english_tags()), whole_statement(english_tags()))
    assert any(rule.rejects(Sentence.parse(text)) for rule in rules) is expected


def test_questions_with_a_question_mark_are_accepted() -> None:
    rule = whole_statement(english_tags())
    assert not any(rule.rejects(Sentence.parse(f"{text}?")) for text in REJECTED[:10])
