"""From a stimulus set to people and back.

report   a page of stimuli to look at, changed words highlighted
"""
