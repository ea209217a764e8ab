"""What searches of the tests begin with: words, a sentence, models with any kind of knowledge."""

from __future__ import annotations

from contstim.models.base import LanguageModel
from contstim.optimization.search.candidates import Candidates
from contstim.optimization.search.constraints import Constraint, NoRepeats
from contstim.optimization.search.objective import AcceptReject
from contstim.optimization.search.search import Search
from contstim.sentence import Sentence
from contstim.testing import TableModel as TableModel
from contstim.vocabulary import Vocabulary

WORDS = Vocabulary(
    tuple("A B C D E F".split()),
    tuple("a b c d e f g h i j k l m n o p q r s t u v w x y z".split()),
    frozenset({"a"}),
)
NATURAL = Sentence(("A", "b", "c", "d"))


def search_for(
    accept: LanguageModel,
    reject: LanguageModel,
    natural: Sentence = NATURAL,
    vocabulary: Vocabulary = WORDS,
    constraints: tuple[Constraint, ...] = (),
) -> Search:
    """A search for the published objective."""
    objective = AcceptReject((accept, reject), float(accept.log_probs([natural])[0]))
    rules = (NoRepeats(vocabulary.repeatable), *constraints)
    return Search((accept, reject), Candidates(vocabulary, natural, rules)).aim(objective)
