"""What analyses take unless a study says otherwise; light, since commands show it in their help."""

SMALLEST_EFFECT = 0.03  # differences of accuracies or cosines below it do not matter
