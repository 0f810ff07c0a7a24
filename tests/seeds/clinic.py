"""What notebook 12 states of losses: which broken layers they give away."""

from utils.clinic import lowest_loss, patient, suspects, train_on_words, twin

LEAKS = {"mask-not-used", "one-step-leaked", "mask-after-softmax", "split-by-view"}
LEAKS |= {"merge-without-transpose"}
HIGHER = {"scale-missing", "softmax-twice"}


def main(seed):
    layer = patient(200)
    healthy = last(twin(layer), seed)
    found = {"healthy minus the lowest honest loss": healthy - lowest_loss()}
    for slug in suspects(layer):
        loss = last(twin(layer, slug), seed)
        if slug in LEAKS:
            found[f"{slug}: below the lowest"] = lowest_loss() - loss
        elif slug in HIGHER:
            found[f"{slug}: above healthy"] = loss - healthy
        else:
            found[f"{slug}: minus healthy"] = loss - healthy
    found["two at once, patient 509: loss"] = last(patient(509), seed)
    longer = last(twin(layer, "softmax-twice"), seed, steps=1000)
    found["softmax-twice, 1,000 steps: below the lowest"] = lowest_loss() - longer
    return found


def last(layer, seed, steps=200):
    """Return the mean loss of the last 20 steps."""
    losses = train_on_words(layer, steps=steps, seed=seed)
    return sum(losses[-20:]) / 20
