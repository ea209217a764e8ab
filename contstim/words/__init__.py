"""Words and sentences: data types, vocabularies, word lists and filters of natural sentences.

`sentence` defines the unit of all other modules; `corpus` reads texts and reports tokenised or
changed ones. `vocabulary`, `word_rules`, `frequencies` and `tags` describe words; `filters` and
`clauses` choose natural sentences.
"""
