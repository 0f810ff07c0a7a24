"""Each test pins one sentence about `utils.llama`."""

import pytest
import torch
from checkpoint_copies import adding, copied, without
from safetensors.torch import load_file

from utils.files import DATA
from utils.llama import Llama, load_llama
from utils.model import generate, next_token_loss

TINY = DATA / "tiny_llama"
REFERENCE = load_file(TINY / "reference.safetensors")
TABLE = "model.embed_tokens.weight"


@torch.no_grad()
def difference(model):
    """Return how far the logits are from those of the reference implementation."""
    return (model(REFERENCE["token_ids"]) - REFERENCE["logits"]).abs().max().item()


def tied(tensors):
    return tensors | {"lm_head.weight": tensors[TABLE].clone()}


@torch.no_grad()
def test_the_stream_is_that_of_the_reference_implementation_after_each_block():
    model = load_llama(TINY)
    x = model.embedding(REFERENCE["token_ids"])
    assert x.equal(REFERENCE["stream"][0])
    for block, expected in zip(model.blocks, REFERENCE["stream"][1:], strict=True):
        x = block(x)
        torch.testing.assert_close(x, expected, atol=1e-5, rtol=0)
    assert difference(model) < 1e-5


def test_published_files_may_say_it_in_the_words_of_earlier_years(tmp_path):
    old = {"rope_parameters": "left out", "rope_theta": 500, "head_dim": "left out"}
    old |= {"rope_scaling": None, "mlp_bias": "left out", "rope_interleaved": False}
    speeds = {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(3)}
    folder = copied(TINY, tmp_path, adding(**speeds), **old)
    assert difference(load_llama(folder)) < 1e-5


def test_what_is_left_out_is_what_the_reference_takes(tmp_path):
    said = {"rms_norm_eps": 1e-6, "rope_parameters": {"rope_theta": 10000.0}}
    expected = difference(load_llama(copied(TINY, tmp_path, **said)))
    silent = copied(TINY, tmp_path, **dict.fromkeys(said, "left out"))
    assert difference(load_llama(silent)) == expected


def test_the_output_of_a_tied_model_is_its_table_in_the_file_or_not(tmp_path):
    expected = difference(load_llama(copied(TINY, tmp_path, tied)))
    for change in (without("lm_head.weight"), tied):
        model = load_llama(copied(TINY, tmp_path, change, tie_word_embeddings=True))
        assert model.output.weight is model.embedding.token_embedding.weight
        assert difference(model) == pytest.approx(expected)


def test_the_same_tokens_are_written_with_the_cache_and_without():
    model, written = load_llama(TINY), []
    for kept in (True, False):
        torch.manual_seed(0)  # 17 and 90 are more than the context of 96
        written += [generate(model, REFERENCE["token_ids"], 90, use_cache=kept)]
    assert written[0].equal(written[1])


def test_a_llama_from_scratch_knows_nothing_and_learns():
    torch.manual_seed(0)
    model = Llama(11, 7, 8, 4, 2, d_inner=12, num_kv_heads=2, tied=False)
    assert all(p.eq(1).all() for p in model.parameters() if p.dim() == 1)
    batch = torch.randint(11, (2, 3, 7)).unbind()
    assert abs(next_token_loss(model, batch) - torch.tensor(11.0).log()) < 0.1
    next_token_loss(model, batch).backward()
    assert all(p.grad.abs().max() > 0 for p in model.parameters())


@pytest.mark.parametrize(
    "change, settings, said",
    [
        (without("model.norm.weight"), {}, r"norm.weight of shape \(24,\), got none"),
        (adding(model__layers__0__q__bias=torch.ones(3)), {}, "expected no tensor mod"),
        (dict, {"tie_word_embeddings": True}, "lm_head.weight to be model.embed_tok"),
        (dict, {"model_type": "gpt2"}, "model_type of 'llama', got 'gpt2'"),
        (dict, {"num_key_value_heads": 4}, r"k_proj.weight of shape \(24, 24\), got o"),
        (dict, {"num_attention_heads": 8}, "expected head_dim of 3, got 6"),
        (dict, {"num_key_value_heads": None}, r"\(24, 24\), got one of shape \(12"),
        (dict, {"rope_scaling": {"rope_type": "llama3"}}, "rope_scaling of None, got"),
        (dict, {"rope_parameters": {"rope_type": "yarn"}}, "'default', got 'yarn'"),
        (dict, {"rope_theta": 0}, "rope_theta above 0, got 0"),
        (dict, {"attention_bias": True}, "attention_bias of False, got True"),
        (dict, {"intermediate_size": "left out"}, "size of 1 or more, got None"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path, change, settings, said):
    with pytest.raises(ValueError, match=said):
        load_llama(copied(TINY, tmp_path, change, **settings))
