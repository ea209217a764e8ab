"""Recurrent networks over words: RNN, LSTM and BiLSTM.

The parts, from what the rest of the package uses to what it rests on:

    loading        from a folder to the model that it holds
    left_to_right  RNN and LSTM: words given those before them, and the end
    both_sides     BiLSTM: words given those before and after them
    adapter        RecurrentModel, what these two share
    folder         weights, configuration and words on disk
    words          the words that a network tells apart, with their counts
    network        the torch modules
    output         their output layers
"""
