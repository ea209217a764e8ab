"""Search for a controversial sentence, and exact selection of a set."""
