"""From a text to a trained network in a folder.

The parts, from what a user calls to what they rest on:

    recurrent     train_recurrent: RNN, LSTM, BiLSTM
    transformers  train_transformer: small GPT-2 and BERT, with a tokenizer of their own
    acceptability train_acceptability: classifiers of sentences, with restarts
    cola          sentences that experts accept or reject
    run           train_network: one run, from sentences to a model in a folder
    speed         how long a training would take, from a few seconds of it
    loop          the training loop, and the task that it trains
    checkpoint    the state of a run on disk, and whether a run may be resumed from it
    record        the curve as numbers and as a picture
    tokenizers    byte-level BPE and WordPiece, trained on the text
    batches       sentences in batches of similar length
    settings      settings of the networks and of the training
"""
