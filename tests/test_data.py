"""Each test pins one sentence about `utils.data`."""

from utils.data import create_dataloader, load_text
from utils.tokenizer import load_tokenizer


def test_batches_hold_the_tokens_of_the_text_in_order():
    loader = create_dataloader(load_text(), 8, 4, 4, shuffle=False)
    inputs, targets = next(iter(loader))
    ids = load_tokenizer().encode(load_text())
    assert inputs.shape == targets.shape == (8, 4)
    assert inputs.flatten().tolist() == ids[:32]
    assert targets.flatten().tolist() == ids[1:33]
