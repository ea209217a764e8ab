"""Causal models on an inference server (vLLM, SGLang and others), scored over HTTP.

    sentence --tokenizer--> token ids --client--> server: one value for each token --> sum

What a server says is tried out before the first score, and checked in every answer after it.

model     ServerModel, under the contract of every language model, and how it is loaded
address   `http://host:8000/v1#model?tokenizer=…`, and where a key comes from
probes    what is tried out before the first score, and what tells one model from another
service   token ids in, checked values out, in the dialects of servers
client    HTTP with retries, time limits and connections that are kept; faults by their names
"""
