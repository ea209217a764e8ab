"""Experiments that people can take part in.

jspsych      a page for any browser, in a folder: sentences, texts to edit, and where answers go
jatos        the same page as a study archive for JATOS
"""
