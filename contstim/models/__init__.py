"""Language-model adapters and how they score a sentence.

    base      the contract: LanguageModel, Replacements, Convention
    catalog   specifications such as `kenlm:trigram.arpa`, families, the 2023 study's models
    scoring   many sentences under several models, cached and resumable
    vocabularies   the words that several models share
    ngram/    n-gram models
"""
