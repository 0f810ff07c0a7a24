"""What `utils` reads of published models."""

import json
import math

import pytest
import torch
from safetensors.torch import load_file, save_file

from utils.files import DATA
from utils.llama import load_llama
from utils.model import load_gpt2

GPT2, LLAMA = DATA / "tiny_gpt2", DATA / "tiny_llama"
OF_GPT2, OF_LLAMA = (load_file(f / "reference.safetensors") for f in (GPT2, LLAMA))


def copied(stored, folder, change=lambda tensors: tensors, **settings):
    """Write a copy of the checkpoint in `stored` into `folder`, and return `folder`.

    change: a function from the dict of tensors to another one
    settings: replace those of config.json; "left out" removes one
    """
    config = json.loads((stored / "config.json").read_text(encoding="utf-8"))
    config = {k: v for k, v in (config | settings).items() if v != "left out"}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    tensors = change(load_file(stored / "model.safetensors"))
    tensors = {name: t.contiguous() for name, t in tensors.items()}
    save_file(tensors, folder / "model.safetensors")
    return folder


def without(name):
    """Return a change that leaves out a tensor."""
    return lambda tensors: {n: t for n, t in tensors.items() if n != name}


def adding(**more):
    """Return a change that adds tensors; a dot in a name is written `__`."""
    more = {name.replace("__", "."): tensor for name, tensor in more.items()}
    return lambda tensors: tensors | more


def in_parts(folder):
    """Spread the tensors of a folder over three files, as published models do."""
    tensors = load_file(folder / "model.safetensors")
    weight_map = {}
    for i, name in enumerate(tensors):
        weight_map[name] = f"model-{i % 3 + 1:05}-of-00003.safetensors"
    for file in set(weight_map.values()):
        part = {name: t for name, t in tensors.items() if weight_map[name] == file}
        save_file(part, folder / file)
    (folder / "model.safetensors").unlink()
    index = {"metadata": {"total_size": 1}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


@pytest.mark.parametrize("kept", [0, 300])
def test_a_truncated_file_is_named(tmp_path, kept):
    file = copied(LLAMA, tmp_path) / "model.safetensors"
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(ValueError, match="model.safetensors is damaged: "):
        load_llama(tmp_path)


def test_tensors_may_be_in_several_files(tmp_path):
    for load, stored, reference in (
        (load_gpt2, GPT2, OF_GPT2),
        (load_llama, LLAMA, OF_LLAMA),
    ):
        folder = tmp_path / stored.name
        folder.mkdir()
        model = load(in_parts(copied(stored, folder)))
        with torch.no_grad():
            logits = model(reference["token_ids"])
        torch.testing.assert_close(logits, reference["logits"], atol=1e-5, rtol=0)


def short(tensors):
    return {name.removeprefix("transformer."): t for name, t in tensors.items()}


def with_output(tensors):
    return tensors | {"lm_head.weight": tensors["transformer.wte.weight"].clone()}


@pytest.mark.parametrize("change", [dict, short, with_output])
def test_logits_are_those_of_the_reference_however_tensors_are_named(tmp_path, change):
    model = load_gpt2(copied(GPT2, tmp_path, change))
    with torch.no_grad():
        logits = model(OF_GPT2["token_ids"])
    torch.testing.assert_close(logits, OF_GPT2["logits"], atol=1e-4, rtol=0)


@torch.no_grad()
def difference(model):
    """Return how far the logits are from those of the reference implementation."""
    return (model(OF_LLAMA["token_ids"]) - OF_LLAMA["logits"]).abs().max().item()


def tied(tensors):
    return tensors | {"lm_head.weight": tensors["model.embed_tokens.weight"].clone()}


def test_published_files_may_say_it_in_the_words_of_earlier_years(tmp_path):
    old = {"rope_parameters": "left out", "rope_theta": 500, "head_dim": "left out"}
    old |= {"rope_scaling": None, "mlp_bias": "left out", "rope_interleaved": False}
    speeds = {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(3)}
    folder = copied(LLAMA, tmp_path, adding(**speeds), **old)
    assert difference(load_llama(folder)) < 1e-5


LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 0.5,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 48,
}


@pytest.mark.parametrize(
    "settings",
    [
        {"rope_parameters": LLAMA3 | {"rope_theta": 500.0}},
        {"rope_parameters": None, "rope_scaling": LLAMA3, "rope_theta": 500.0},
    ],
)
def test_frequencies_are_slowed_down_as_in_llama_3_1(tmp_path, settings):
    model = load_llama(copied(LLAMA, tmp_path, **settings))
    with torch.no_grad():
        logits = model(OF_LLAMA["token_ids"])
    torch.testing.assert_close(logits, OF_LLAMA["llama3.logits"], atol=1e-5, rtol=0)
    assert difference(model) > 0.1


def test_the_output_of_a_tied_model_is_its_table_in_the_file_or_not(tmp_path):
    expected = difference(load_llama(copied(LLAMA, tmp_path, tied)))
    table = "model.embed_tokens.weight"
    for change in (without("lm_head.weight"), tied, lambda t: without(table)(tied(t))):
        model = load_llama(copied(LLAMA, tmp_path, change, tie_word_embeddings=True))
        assert model.output.weight is model.embedding.token_embedding.weight
        assert difference(model) == pytest.approx(expected)


OF_A_GPT2_ARE_REFUSED = [
    (without("transformer.wpe.weight"), {}, r"shape \(96, 16\), got none"),
    (adding(lm_head__weight=torch.ones(128, 16)), {}, "got other numbers"),
    (dict, {"model_type": "llama"}, "model_type of 'gpt2', got 'llama'"),
    (dict, {"layer_norm_epsilon": math.inf}, "epsilon of type float .*, got inf"),
    (dict, {"n_embd": 10**12}, "d_model to be .* below 2.*31, got 1000000000000"),
]
OF_A_LLAMA_ARE_REFUSED = [
    (adding(model__layers__0__q__bias=torch.ones(3)), {}, "expected no tensor mod"),
    (dict, {"num_attention_heads": 8}, "expected head_dim of 3, got 6"),
    (dict, {"rope_scaling": LLAMA3 | {"low_freq_factor": 4}}, "low_freq_factor below"),
    (dict, {"rope_parameters": {"rope_type": "yarn"}}, "or 'llama3', got 'yarn'"),
    (dict, {"rope_scaling": [8]}, r"expected rope_scaling as a dict, got \[8\]"),
    (dict, {"intermediate_size": "left out"}, "size of type int above 0, got None"),
]


@pytest.mark.parametrize(
    "load, stored, change, settings, message",
    [(load_gpt2, GPT2, *row) for row in OF_A_GPT2_ARE_REFUSED]
    + [(load_llama, LLAMA, *row) for row in OF_A_LLAMA_ARE_REFUSED],
)
def test_what_does_not_fit_is_named(tmp_path, load, stored, change, settings, message):
    with pytest.raises(ValueError, match=message):
        load(copied(stored, tmp_path, change, **settings))
