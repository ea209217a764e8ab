"""From ratings and scores to results: which model people agree with, and how sure we are.

ratings      who rated which trials, the models' log-probabilities, trials that evaluate a model
measures     how well log-probability ratios predict ratings, and people one another
reliability  how sure people are of each trial
agreement    models with models, people with people, people with rival models; where models fail
crossed      variance where people and items are both drawn anew, in closed form, for one
             experiment or for many at once
intervals    of values, differences and distances to the ceiling, by that variance; estimates with
             a t-test
signed_ranks Wilcoxon's test with its effect size, for one test or many
families     contrasts, their false-discovery or family-wise error rate, what could be found at all
effects      comparisons of models and ceilings, with tests, effect sizes and intervals
regression   choices on log-probability ratios, errors clustered by people and items
mixed/       ordinal mixed models of ratings, with random effects of people and items
controls     what else preferences could follow: tokens, word frequency, any feature
run          all results at once
tables       the results as tables
figures      the results as figures
page         the folder of an analysis: tables, figures, a page, and the statistics in words
"""

SMALLEST_EFFECT = 0.03  # differences of accuracies or cosines below it do not matter
