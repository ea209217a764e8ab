"""Order in which a pair of models uses the natural sentences, and where it stops.

    natural sentences      a random order for each pair of models: a hash of seed, pair and text
          |
    [natural_walk]     s17    s4     s31    s8     s22  …      sentences that both models know
          |
       searches        found  none   found  none   found       one for each, at any time
          |
    [counted_results]  s17           s31           s22         the first `per_pair` triplets count

No assignment is stored: sentences, seed and models determine the order, and the order determines
which results count.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from contstim.store.triplets import Result
    from contstim.words.sentence import Sentence
    from contstim.words.vocabulary import Vocabulary

MAX_UNSUCCESSFUL_SEARCHES = 3
"""Maximum number of searches without a triplet, for each triplet that a pair of models needs.

Such searches take longest. Many of them mean that the words allow hardly any change.
"""


def natural_walk(
    seed: int, models: tuple[str, str], sentences: Iterable[Sentence], words: Vocabulary
) -> Iterator[Sentence]:
    """Yield the natural sentences that a pair of models can use, in the pair's own random order.

    A hash of the seed, the two models and the sentence decides the order. So the order of two
    sentences depends neither on the other sentences, nor on other models, nor on which is given
    first. Sentences of one word, or with a word that `words` lacks, are left out.

    Args:
        seed: seed of the study.
        models: fingerprints of the two models, in any order.
        sentences: natural sentences; repetitions do not count.
        words: words that the searches of the pair may use.
    """

    def random_key(sentence: Sentence) -> bytes:
        # The separator is in no text, so different parts give different joined texts.
        parts = (str(seed), *sorted(models), sentence.text)
        return hashlib.sha256("\x1f".join(parts).encode()).digest()

    for sentence in sorted(dict.fromkeys(sentences), key=random_key):
        if len(sentence) > 1 and not words.missing_words(sentence):
            yield sentence


def counted_results(results: Iterable[Result], per_pair: int) -> list[Result]:
    """Return the results up to the sentence at which the walk of a pair of models ends.

    It ends at `per_pair` triplets, or at `MAX_UNSUCCESSFUL_SEARCHES` times as many unsuccessful
    searches. A failed search counts like a triplet, because it may find one when it is repeated.

    Args:
        results: results in the order of the walk. There may be more than count, because several
            searches run at the same time.
        per_pair: number of triplets that the pair needs.
    """
    counted: list[Result] = []
    n_triplets = n_unsuccessful = 0
    for result in results:
        if n_triplets == per_pair or n_unsuccessful == MAX_UNSUCCESSFUL_SEARCHES * per_pair:
            break
        counted.append(result)
        n_triplets += not result.is_skipped
        n_unsuccessful += result.is_unsuccessful
    return counted
