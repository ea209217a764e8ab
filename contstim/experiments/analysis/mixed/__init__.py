"""Mixed models of ratings, with people and items as random factors.

laplace       likelihood of ratings with crossed random effects
fitting       maximum-likelihood thresholds, slopes and variances, and their standard errors
models        regressions of ratings on the ratios of one or several language models
comparison    differences in fit, and contributions of models in addition to others
"""
