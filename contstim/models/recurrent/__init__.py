"""Recurrent networks over words: RNN, LSTM and BiLSTM.

The modules, from the interface to its foundations:

    adapter        load_recurrent; RNN and LSTM: words given the words before, and the end; BiLSTM:
                   words given the words before and after
    network        the torch modules: recurrent layers and output layers; their files on disk
"""
