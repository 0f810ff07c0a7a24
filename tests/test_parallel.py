"""Tests of attention and training over several processes, `utils.parallel`."""

import copy
import re

import nbformat
import pytest
import torch
from torch.distributed.tensor import DTensor
from torch.nn.functional import scaled_dot_product_attention

from tests.repository import ROOT
from tests.small_layers import random
from utils import parallel
from utils.launch import in_processes
from utils.model import GPT, next_token_loss
from utils.parallel import combine_partial_attention, partial_attention

pytestmark = pytest.mark.usefixtures("on_cpu")


def test_a_part_without_allowed_keys_changes_nothing():
    query, key, value = random(3, 4), random(5, 4, seed=1), random(5, 7, seed=2)
    visible = partial_attention(query, key, value)
    no_keys = torch.zeros(3, 5, dtype=torch.bool)
    hidden = partial_attention(query, key, value, no_keys)
    merged = combine_partial_attention(*map(torch.stack, zip(visible, hidden)))
    torch.testing.assert_close(merged, visible)
    nothing = combine_partial_attention(*map(torch.stack, zip(hidden, hidden)))
    torch.testing.assert_close(nothing, hidden)


def fenced_code():
    """Return the lines of code in the text of *A million tokens*."""
    path = ROOT / "notebooks/deeper/a_million_tokens.ipynb"
    cells = nbformat.read(path, as_version=4).cells
    texts = [cell.source for cell in cells if cell.cell_type == "markdown"]
    texts = [text for text in texts if "<summary>Solution" not in text]
    return re.findall(r"^```python\n(.*?)^```$", "\n".join(texts), re.M | re.S)


def run_fenced_code(rank, count, code, model, sentences):
    """Run lines from the text of that notebook; return the gradients."""
    local = sentences.chunk(count)[rank]
    batch, loss = (local[:, :-1], local[:, 1:]), next_token_loss
    names = {"model": copy.deepcopy(model), "own_batch": batch, "next_token_loss": loss}
    exec(code, names)
    if "loss" not in names:
        loss(names["model"], batch).backward()
    return gradients(names["model"])


def gradients(module):
    """Return the gradients of a module's weights; shares are put together."""
    shares = [weight.grad for weight in module.parameters()]
    return [g.full_tensor() if isinstance(g, DTensor) else g.clone() for g in shares]


def run_some_tokens(rank, count, inputs):
    """Return outputs and gradients of ring attention: open, causal, and striped."""
    results = []
    for striped, causal in ((False, False), (False, True), (True, True)):
        positions = parallel.local_positions(inputs.shape[-2], striped)
        rank_inputs = inputs[..., positions, :].requires_grad_()
        output = parallel.ring_attention(*rank_inputs, positions if causal else None)
        output.square().sum().backward()
        results.append((positions, causal, output.detach(), rank_inputs.grad))
    return results


def run_all(rank, count, inputs, model, sentences, codes):
    """Return what these functions return, in one start of the processes."""
    compute = parallel.split_batch_over_processes(model, next_token_loss)
    with pytest.raises(ValueError, match="the model that is shared, got Linear"):
        compute(torch.nn.Linear(1, 1), sentences)
    del compute
    of_models = [run_fenced_code(rank, count, c, model, sentences) for c in codes]
    return run_some_tokens(rank, count, inputs), *of_models


def attention_alone(inputs, causal):
    """Return the output of one process, and the gradients of its inputs."""
    inputs = inputs.clone().requires_grad_()
    output = scaled_dot_product_attention(*inputs, is_causal=causal)
    output.square().sum().backward()
    return output.detach(), inputs.grad


def test_four_processes_compute_together_what_one_computes():
    """Each has a quarter of the tokens, the weights or a batch."""
    torch.manual_seed(0)
    model = GPT(11, 7, d_model=8, num_heads=2, num_layers=1).double()
    inputs, sentences = random(3, 2, 3, 24, 7), torch.randint(11, (12, 8))
    codes = fenced_code()
    results = in_processes(4, run_all, inputs, model, sentences, codes)
    next_token_loss(model, (sentences[:, :-1], sentences[:, 1:])).backward()
    of_model = [weight.grad for weight in model.parameters()]
    whole = {causal: attention_alone(inputs, causal) for causal in (False, True)}
    for tokens, *of_models in results:
        for positions, causal, *of_tokens in tokens:
            expected = [tensor[..., positions, :] for tensor in whole[causal]]
            torch.testing.assert_close(of_tokens, expected)
        for received in of_models:
            torch.testing.assert_close(received, of_model)
