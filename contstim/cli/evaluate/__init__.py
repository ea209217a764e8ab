"""Commands that evaluate models without people."""
