"""Training of networks: from a text to a model in a folder.

run            train_network: one run, from sentences to a model in a folder; training task of
               recurrent networks
transformers   training task of small GPT-2 and BERT models, with their tokenizers
acceptability  train_acceptability: acceptability classifiers, with restarts; labelled sentences
record         files of a run: its checkpoint, and the record of a finished run
loop           the training loop, its tasks, and batches of similar length
settings       settings of the networks and of the training
"""
