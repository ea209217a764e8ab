"""Words and sentences: data types, vocabularies, word lists and filters of natural sentences.

`sentence` defines sentences. `corpus` reads texts, and reports tokenised and changed lines.
`vocabulary`, `word_rules`, `frequencies` and `tags` describe words. `filters` and `clauses` select
natural sentences.
"""
