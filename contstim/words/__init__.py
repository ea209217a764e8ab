"""Words and sentences: data types, vocabularies, word lists and filters of natural sentences.

`corpus` reads texts. `vocabulary`, `word_rules`, `frequencies` and `tags` describe words. `filters`
and `clauses` select natural sentences.
"""
