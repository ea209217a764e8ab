"""Qualtrics.

export    a survey in the advanced TXT format, with the key to its questions
reading   its data
"""
