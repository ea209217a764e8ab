"""Triplets for every pair of models of a study: shared out, found by workers, kept as they come.

triplets     the whole job; study: what it is made with; statistics: what it found
foreman      the loop that hands out tasks; agenda: which task is next
tasks        what workers do; bench: the models that a worker has loaded
dealing      natural sentences for each pair of models; words: those that both models know
executors    workers in this process, in several processes, or on a Ray cluster
"""
