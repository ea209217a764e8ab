"""From a text to a trained network in a folder.

The parts, from what a user calls to what they rest on:

    run            train_network: one run, from sentences to a model in a folder
    recurrent      its task: RNN, LSTM, BiLSTM
    transformers   its task: small GPT-2 and BERT, with a tokenizer of their own
    acceptability  train_acceptability: classifiers, with restarts, and their sentences
    record         files of a run: its checkpoint, and the record of a finished one
    loop           the training loop, the task that it trains, batches of similar length
    settings       settings of the networks and of the training
"""
