"""Participants' responses: one table for all platforms.

table        reading and writing responses.csv; escaping formulas; counts of people and of
             artificial participants
questionnaire questions that a page asks in addition to the trials, and their answers
alignment    platforms' recorded ratings in the canonical order of their trials
checks       responses compared with trials: every problem by name
admission    exclusion rules; participants who are included in an analysis or excluded, with reasons
"""
