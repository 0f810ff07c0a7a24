"""Notebook 07: which broken layers their loss gives away."""

from utils.clinic import lowest_loss, patient, suspects, train_on_words, twin


def main(seed):
    layer = patient(201 + seed)  # its twins start from other weights each time
    healthy = last(twin(layer), seed)
    found = {}
    for slug in suspects(layer):
        loss = last(twin(layer, slug), seed)
        found[f"{slug}: below the lowest"] = lowest_loss() - loss
        found[f"{slug}: minus healthy"] = loss - healthy
    longer = last(twin(layer, "softmax-twice"), seed, steps=1000)
    found["softmax-twice, 1,000 steps: below the lowest"] = lowest_loss() - longer
    faster = last(twin(layer, "mask-after-softmax"), seed, lr=3e-2)
    found["mask-after-softmax, 0.03: below the lowest"] = lowest_loss() - faster
    found["two mistakes, 509: loss"] = last(patient(509), seed)
    return found


def last(layer, seed, steps=200, lr=1e-2):
    """Return the mean loss of the last 20 steps."""
    losses = train_on_words(layer, steps=steps, seed=seed, lr=lr)
    return sum(losses[-20:]) / 20
