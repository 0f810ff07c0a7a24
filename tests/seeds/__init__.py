"""What the notebooks claim about training and chance, tested with other seeds.

    python -m tests.seeds [embeddings causal_masks ...]

In each module here `main(seed)` returns numbers by name. README.md's table gives the
range that each sentence allows.
"""
