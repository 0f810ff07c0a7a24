"""Each test pins one sentence about `utils.checkpoints`; see `test_gpt2`, too."""

import pytest
import torch
from checkpoint_copies import copied

from utils.checkpoints import check_config, check_tensors, read_config, read_tensors
from utils.files import DATA

TINY = DATA / "tiny_llama"


@pytest.mark.parametrize("content, said", [("{", "is damaged: exp"), ("[]", "a dict")])
def test_settings_that_are_no_dict_are_named(tmp_path, content, said):
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(ValueError, match=f"config.json.*{said}"):
        read_config(tmp_path)


def test_a_file_that_is_missing_is_named(tmp_path):
    for read, name in ((read_config, "config.json"), (read_tensors, "model.safet")):
        with pytest.raises(FileNotFoundError, match=f"found no .*{name}"):
            read(tmp_path)


@pytest.mark.parametrize("kept", [0, 7, 300, -1])
def test_a_truncated_file_is_named(tmp_path, kept):
    file = copied(TINY, tmp_path) / "model.safetensors"
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(ValueError, match="model.safetensors is damaged: "):
        read_tensors(tmp_path)


def test_one_file_is_read_and_tensors_in_several_are_refused(tmp_path):
    (copied(TINY, tmp_path) / "model.safetensors.index.json").write_text("{}")
    assert len(read_tensors(tmp_path)) == 30
    file = tmp_path / "model.safetensors"
    file.rename(tmp_path / "model-00001-of-00002.safetensors")
    with pytest.raises(ValueError, match="expected all tensors in one file .*, got se"):
        read_tensors(tmp_path)


@pytest.mark.parametrize("size", [0, -1, 1.5, True, "3", None])
def test_a_size_is_an_integer_of_1_or_more(size):
    with pytest.raises(ValueError, match=f"expected n of 1 or more, got {size!r}"):
        check_config({"n": size}, "file", {}, ["n"], [])
    check_config({"n": 1}, "file", {}, ["n"], [])


def test_each_tensor_has_its_shape_and_broken_numbers():
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        check_tensors({"a": torch.ones(2, 3, dtype=dtype)}, {"a": (2, 3)}, "file")
    with pytest.raises(ValueError, match="a of floating-point numbers, got torch.int8"):
        check_tensors({"a": torch.ones(2, dtype=torch.int8)}, {"a": (2,)}, "file")
