"""What the 2023 study measured of its participants, and new designs are reckoned with."""

PUBLISHED_CEILING = 0.748889  # lower noise ceiling on random natural pairs, ten raters each
SECONDS_PER_TRIAL = 8.5  # the median participant took 23.3 minutes for 165 trials
