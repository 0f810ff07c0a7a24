"""Notebook 07 and *Two mistakes at once*: which broken layers a loss gives away."""

from utils.clinic import lowest_loss, patient, suspects, train_on_words, twin


def main(seed):
    layer = patient(201 + seed)  # its twins start from other weights each time
    healthy = last(twin(layer), seed)
    stats = {}
    for slug in suspects(layer):
        loss = last(twin(layer, slug), seed)
        stats[f"{slug}: below the lowest"] = lowest_loss() - loss
        stats[f"{slug}: minus healthy"] = loss - healthy
    stats["two mistakes, 509: loss"] = last(patient(509), seed)
    return stats


def last(layer, seed):
    """Return the mean loss of the last 20 steps."""
    losses = train_on_words(layer, seed=seed)
    return sum(losses[-20:]) / 20
