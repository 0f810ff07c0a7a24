"""Each test pins one sentence about `utils.gpt2` and `utils.model.load_gpt2`."""

import pytest
import torch
from checkpoint_copies import adding, copied, without
from safetensors.torch import load_file

from utils.files import DATA
from utils.model import load_gpt2

TINY = DATA / "tiny_gpt2"
REFERENCE = load_file(TINY / "reference.safetensors")


def short(tensors):
    return {name.removeprefix("transformer."): t for name, t in tensors.items()}


def as_first_published(tensors):
    """Use the names of the first published files, which keep the mask in each block."""
    masks = {}
    for i in range(2):
        masks[f"h.{i}.attn.bias"] = torch.ones(1, 1, 96, 96).tril()
        masks[f"h.{i}.attn.masked_bias"] = torch.tensor(-1e4)
    return short(tensors) | masks


def with_output(tensors):
    return tensors | {"lm_head.weight": tensors["transformer.wte.weight"].clone()}


@pytest.mark.parametrize("change", [dict, short, as_first_published, with_output])
def test_the_logits_are_those_of_the_reference_however_tensors_are_named(
    tmp_path, change
):
    model = load_gpt2(copied(TINY, tmp_path, change))
    with torch.no_grad():
        logits = model(REFERENCE["token_ids"])
    torch.testing.assert_close(logits, REFERENCE["logits"], atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    "change, settings, said",
    [
        (without("transformer.wpe.weight"), {}, r"shape \(96, 16\), got none"),
        (adding(transformer__h__2__ln_1__bias=torch.ones(16)), {}, "no tensor h.2.ln"),
        (adding(lm_head__weight=torch.ones(128, 16)), {}, "got other numbers"),
        (adding(wte__weight=torch.ones(128, 16)), {}, "two names for some"),
        (dict, {"model_type": "llama"}, "model_type of 'gpt2', got 'llama'"),
        (dict, {"n_embd": 32}, r"wte.weight of shape \(128, 32\), got one of shape"),
        (dict, {"n_head": 3}, "got width 16 and 3 heads"),
        (dict, {"vocab_size": "left out"}, "vocab_size of 1 or more, got None"),
        (dict, {"activation_function": "gelu"}, "function of 'gelu_new', got 'gelu'"),
        (dict, {"scale_attn_weights": False}, "scale_attn_weights of True, got False"),
        (dict, {"layer_norm_epsilon": 0}, "epsilon above 0, got 0"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path, change, settings, said):
    with pytest.raises(ValueError, match=said):
        load_gpt2(copied(TINY, tmp_path, change, **settings))
