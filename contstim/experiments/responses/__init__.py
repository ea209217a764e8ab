"""Answers of people: one table, whatever platform asked.

table        responses.csv, read and written, texts that must not run as formulas, and how many
             participants are people
questionnaire questions that a page asks beside its trials, and what people answered
alignment    what a platform recorded of a rating, in the canonical order of its trial
checks       responses against trials: every problem by name
exclusions   rules of who is left out, and who breaks them
admission    who takes part in an analysis, who does not, and why
"""
