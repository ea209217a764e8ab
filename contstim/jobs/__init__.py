"""Triplets for every pair of models of a study: dealt out, found by workers, kept as they come."""
