"""Participants' responses: one table for all platforms.

table          reading and writing responses.csv; escaping formulas; counts of human and of
               artificial participants
questionnaire  questions that a page asks in addition to the trials, and their answers
alignment      finding the trials of recorded answers; converting positions on the screen to
               ratings from sentence_1 to sentence_2
checks         problems of responses, found by comparing them with the trials
admission      exclusion rules; participants whom an analysis includes or excludes, with reasons
"""
