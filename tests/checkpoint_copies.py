"""Copies of a stored checkpoint with something changed, to see what is refused."""

import json

from safetensors.torch import load_file, save_file


def copied(stored, folder, change=lambda tensors: tensors, **settings):
    """Write a copy of the checkpoint in `stored` into `folder`, and return `folder`.

    change: a function from the dict of tensors to another one
    settings: others than those of config.json; "left out" leaves one out
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
