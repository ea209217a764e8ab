"""Recurrent networks over words: RNN, LSTM and BiLSTM.

The modules, from the interface to its foundations:

    folder         load_recurrent; configuration, weights and words on disk
    adapter        RNN and LSTM: words given the words before, and the end; BiLSTM: words given the
                   words before and after
    network        the torch modules: recurrent layers and output layers
"""
