"""Words and sentences: what a sentence is, which words it may have, and which texts are natural.

`sentence` is the unit of everything else; `corpus` reads texts, and `text_notes` reports how a
text is written. `vocabulary`, `word_rules`, `frequencies` and `tags` describe words; `filters` and
`clauses` choose natural sentences.
"""
