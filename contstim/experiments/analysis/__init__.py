"""From ratings and scores to results: which model predicts people best, with what certainty.

ratings      ratings of trials, log-probabilities of models, and the trials that evaluate each model
measures     how well log-probability ratios predict ratings; noise ceilings, which measure how
             well participants predict one another
reliability  certainty of people's preference on each trial
agreement    agreement of models with models, people with people, and people with rivals (the two
             models that a trial targets); the trials on which each model fails worst
crossed      variance of a mean for new people and new items, in closed form, for one experiment or
             many simulated experiments
intervals    confidence intervals of models' values, of differences between models, and of distances
             to the noise ceiling; t-tests of these estimates. Variances come from `crossed`
signed_ranks Wilcoxon's test with its effect size, for one test or many
families     families of contrasts (comparisons that are corrected together), and the effects that
             tests of a family can detect
effects      comparisons of models and ceilings, with tests, effect sizes and intervals
regression   regressions of choices on log-probability ratios, with standard errors clustered by
             people and items
trivial_rivals simple rules that predict choices, and tests of models against these rules
mixed/       ordinal mixed models of ratings, with random effects of people and items
controls     alternative explanations of preferences: number of tokens, word frequency, or any other
             feature of sentences
run          computation of all results
tables       the results as tables
figures      the results as figures
page         the folder of an analysis: tables, figures, a page, and a methods text
"""

SMALLEST_EFFECT = 0.03  # smaller differences between two accuracies or two cosines are negligible
