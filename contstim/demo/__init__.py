"""The whole story on embedded text, with models trained on the spot.

models   which models the demo trains, and how small
run      what it does with them, and what it leaves in its folder
"""
