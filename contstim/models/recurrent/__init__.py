"""Recurrent networks over words: RNN, LSTM and BiLSTM.

The parts, from what the rest of the package uses to what it rests on:

    folder         load_recurrent; configuration, weights and words on disk
    adapter        RNN and LSTM: words given those before them, and the end; BiLSTM: words given
                   those before and after them
    network        the torch modules: layers and output layers
"""
