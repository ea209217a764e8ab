"""Recurrent networks over words: RNN, LSTM and BiLSTM.

adapter        load_recurrent; RNN and LSTM predict each word, and the end of the sentence, from
               the words before it; BiLSTM predicts each word from the words before and after it
network        the torch modules: recurrent layers and output layers; their files on disk
"""
