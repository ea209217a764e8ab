"""Measurements of the 2023 study's participants that serve as defaults for new designs."""

PUBLISHED_CEILING = 0.748889  # lower noise ceiling on random natural pairs, with ten raters each
PUBLISHED_RATERS = 10
# Experiment 1, on the trials that evaluate GPT-2, the model that people followed most. First the
# lower noise ceiling of accuracy, with ten raters a trial, as computed by `analyze`. Then the
# standard deviation of items beyond GPT-2's prediction, in standard deviations of single answers,
# from a mixed model of the choices in all trials of a condition (`fit_mixed`, probit, with ranks
# for ratios). Then GPT-2's accuracy, and those of the eight other models on their own trials,
# descending.
PUBLISHED_KINDS = {
    "random-natural": (
        *(PUBLISHED_CEILING, 0.701),
        (0.75, 0.714444, 0.712222, 0.707778, 0.707778, 0.701111, 0.672222, 0.672222, 0.65),
    ),
    "natural-controversial": (
        *(0.795, 0.706),
        (0.7275, 0.6925, 0.605, 0.57, 0.425, 0.41375, 0.37375, 0.36375, 0.32875),
    ),
    "synthetic-synthetic": (
        *(0.82125, 0.998),
        (0.7725, 0.77125, 0.745, 0.6375, 0.44, 0.42, 0.315, 0.21875, 0.18),
    ),
    "natural-synthetic-accept": (
        *(0.73625, 0.904),
        (0.26875, 0.2825, 0.265, 0.255, 0.12625, 0.0725, 0.045, 0.0375, 0.0275),
    ),
    "natural-synthetic-reject": (
        *(0.91375, 0.904),
        (0.91, 0.90625, 0.88375, 0.84125, 0.83625, 0.835, 0.82875, 0.805, 0.77375),
    ),
}
# Standard deviation of how far people follow GPT-2, as a share of the mean, from the mixed model of
# all its ratings (`fit_mixed` with ranks for ratios). A side bias cannot be estimated, because
# sides are not in the published data.
PUBLISHED_FOLLOWING = 0.297
# Results of `benchmarks/replay.py` for this experiment
WORTH = (
    "In experiment 1 of Golan et al. (2023), one answer gave .76 nats of evidence (Bayes "
    "factor) for one of two models on two synthetic sentences, .52 on natural controversial "
    "pairs, .18 on a natural and a synthetic sentence, and .04 on random pairs, with a "
    "choice rule fitted to random pairs; with one fitted to all trials of other pairs of "
    "models, it gave .48, .23, .17 and .05. Beyond some five answers an item, more items "
    "give more information than more people."
)
ANSWERS = 5  # answers to an item: default number of participants in a group
SECONDS_PER_TRIAL = 8.5  # the median participant took 23.3 minutes for 165 trials
