"""Defaults of analyses; light, since commands show them in their help."""

SMALLEST_EFFECT = 0.03  # differences of accuracies or cosines below it do not matter
