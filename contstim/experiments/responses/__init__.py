"""Participants' responses: one table for all platforms.

table        reading and writing responses.csv; escaping formulas; counts of people and of
             artificial participants
questionnaire questions that a page asks in addition to the trials, and their answers
alignment    the trial of each rating that a platform recorded, and its rating from sentence_1 to 2
checks       problems of responses, found by comparing them with the trials
admission    exclusion rules; participants whom an analysis includes or excludes, with reasons
"""
