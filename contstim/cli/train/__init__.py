"""Commands that train models, beside those of steps."""
