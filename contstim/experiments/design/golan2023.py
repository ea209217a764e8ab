"""What the 2023 study measured of its participants, and new designs are reckoned with."""

PUBLISHED_CEILING = 0.748889  # lower noise ceiling on random natural pairs, ten raters each
PUBLISHED_RATERS = 10
# Experiment 1, on the trials that evaluate GPT-2, the model that people followed most: the lower
# noise ceilings of accuracy, ten raters a trial, and its accuracies. `analyze` computes both from
# the published ratings.
PUBLISHED_CEILINGS = {
    "random-natural": PUBLISHED_CEILING,
    "natural-controversial": 0.795,
    "synthetic-synthetic": 0.82125,
    "natural-synthetic-accept": 0.73625,
    "natural-synthetic-reject": 0.91375,
}
PUBLISHED_ACCURACIES = {
    "random-natural": 0.75,
    "natural-controversial": 0.7275,
    "synthetic-synthetic": 0.7725,
    "natural-synthetic-accept": 0.26875,
    "natural-synthetic-reject": 0.91,
}
# How people differ in how far they follow GPT-2, as a share of the mean, by the mixed model of all
# its ratings (`fit_mixed`, ranks for ratios). Items vary by .69 beyond what GPT-2 says. Leanings
# towards a side cannot be told: which sentence was shown left is not in the published data.
PUBLISHED_FOLLOWING = 0.297
SECONDS_PER_TRIAL = 8.5  # the median participant took 23.3 minutes for 165 trials
