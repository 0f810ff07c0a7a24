"""What notebook 12 states of losses: which broken layers they give away."""

from utils.clinic import lowest_loss, patient, suspects, train_on_words, twin

LEAKS = {"mask-not-used", "one-step-leaked", "mask-after-softmax", "split-by-view"}
LEAKS |= {"merge-without-transpose"}
HIGHER = {"scale-missing", "softmax-twice"}


def main(seed):
    """Return statement -> (measured, lowest allowed, highest allowed)."""
    layer = patient(206)
    healthy = last(twin(layer), seed)
    found = {"healthy minus the lowest honest loss": (healthy - lowest_loss(), 0, 0.15)}
    for slug in suspects(layer):
        loss = last(twin(layer, slug), seed)
        if slug in LEAKS:
            found[f"{slug}: below the lowest"] = lowest_loss() - loss, 0, 0.719
        elif slug in HIGHER:
            found[f"{slug}: above healthy"] = loss - healthy, 0.01, 0.12
        else:
            found[f"{slug}: minus healthy"] = loss - healthy, -0.03, 0.03
    return found


def last(layer, seed):
    """Return the mean loss of the last 20 of 200 steps."""
    losses = train_on_words(layer, seed=seed)
    return sum(losses[-20:]) / 20
