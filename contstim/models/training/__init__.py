"""From a text to a trained network in a folder.

The parts, from what a user calls to what they rest on:

    recurrent     train_recurrent: RNN, LSTM, BiLSTM
    transformers  train_transformer: small GPT-2 and BERT, with a tokenizer of their own
    acceptability train_acceptability: classifiers of sentences, with restarts
    cola          sentences that experts accept or not
    run           one training run: data, loop, and what is left in the folder
    loop          the loop itself
    task          what the loop trains, whatever the network
    checkpoint    the state of a run on disk, and who may go on with it
    record        the curve as numbers and as a picture
    batches       sentences in batches of similar length
    settings      what can be chosen
"""
