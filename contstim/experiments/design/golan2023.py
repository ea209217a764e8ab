"""What the 2023 study measured of its participants, and new designs are reckoned with."""

PUBLISHED_CEILING = 0.748889  # lower noise ceiling on random natural pairs, ten raters each
# Lower noise ceilings of accuracy in experiment 1, ten raters a trial, on the trials that evaluate
# GPT-2, the model that people followed most: `analyze` computes them from the published ratings.
PUBLISHED_CEILINGS = {
    "random-natural": PUBLISHED_CEILING,
    "natural-controversial": 0.795,
    "synthetic-synthetic": 0.82125,
    "natural-synthetic-accept": 0.73625,
    "natural-synthetic-reject": 0.91375,
}
SECONDS_PER_TRIAL = 8.5  # the median participant took 23.3 minutes for 165 trials
