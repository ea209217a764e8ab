"""From a text to a trained network in a folder.

The modules, from the interface to its foundations:

    run            train_network: one run, from sentences to a model in a folder; RNNs and LSTMs
    transformers   training task of small GPT-2 and BERT, with their tokenizers
    acceptability  train_acceptability: classifiers, with restarts, and their sentences
    record         files of a run: its checkpoint, and the record of a finished run
    loop           the training loop, its tasks, and batches of similar length
    settings       settings of the networks and of the training
"""
