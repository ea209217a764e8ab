"""Words and sentences: data types, vocabularies, word lists and filters of natural sentences.

`sentence` defines the unit of all other modules; `corpus` reads texts, and `text_notes` reports
tokenised or changed texts. `vocabulary`, `word_rules`, `frequencies` and `tags` describe words;
`filters` and `clauses` choose natural sentences.
"""
