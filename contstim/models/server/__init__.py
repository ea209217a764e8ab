"""Causal models on an inference server (vLLM, SGLang and others), scored over HTTP.

    sentence --tokenizer--> token ids --client--> server --> log p of each token --> sum

A server is tested before the first score, and each response is checked.

model     ServerModel, an implementation of LanguageModel, and its loader
address   `http://host:8000/v1#model?tokenizer=…`, and the key of a server
probes    tests before the first score, and the fingerprint of a served model
service   requests with token ids and checked responses, in the formats of several servers
client    HTTP with retries, time limits and persistent connections; errors
"""
