"""The instruments: each measures a patient and its healthy twin, and prints both."""

from functools import wraps

import torch

from utils.attention import merge_heads, split_heads
from utils.clinic.patients import check_layer, twin, uniform
from utils.plots import chart
from utils.validation import raise_unless

BATCH, TOKENS = 3, 8  # what goes through a layer
FACTORS = {"1/8": 1 / 8, "1/4": 1 / 4, "1/2": 1 / 2, "1": 1.0, "2": 2.0, "4": 4.0}
FACTORS |= {"8": 8.0, "10,000": 1e4}
INSTRUMENTS = {}  # name -> function that measures one layer, in a useful order


def instrument(heading, draw=None):
    """Turn a function that measures one layer into an instrument, which prints.

    With slugs it compares with a twin that has these wrong steps, not the healthy one.
    draw: function (layers, their names, **options) that also draws a figure
    """

    def decorate(measure):
        @wraps(measure)
        def read(layer, *slugs, **options):
            raise_unless(draw or not options, f"no options of {name}", *options)
            peer, peer_name = twin(layer, *slugs), " and ".join(slugs) or "healthy"
            values, peer_values = readings(layer, name), readings(peer, name)
            layer_name = f"patient {layer.number}" if layer.is_patient else "this layer"
            width = max(10, len(peer_name) + 2)
            print(f"{f'{name}: {heading}':52}{layer_name:>14}{peer_name:>{width}}")
            for label, value in values.items():
                print(f"{label:52}{value:14.2f}{peer_values[label]:{width}.2f}")
            print()  # the next instrument is often in the same cell
            if draw:
                draw([layer, peer], [layer_name, peer_name], **options)

        name = measure.__name__
        INSTRUMENTS[name] = measure
        return read

    return decorate


def usable_instruments(layer) -> list[str]:
    """Return the names of the instruments that fit: `replace_tokens` needs a mask."""
    return [
        name for name in INSTRUMENTS if layer.kind.is_masked or name != "replace_tokens"
    ]


def readings(layer, name: str) -> dict[str, float]:
    """Return what an instrument measures on a layer: what -> number."""
    usable = usable_instruments(check_layer(layer))
    raise_unless(name in usable, f"one of {', '.join(usable)} for this layer", name)
    values = INSTRUMENTS[name](layer)
    return {label: float(value) for label, value in values.items()}


def _draw_inputs(layer, tokens=TOKENS):
    """Return what a layer takes, a list: x, or query, key and value."""
    generator = torch.Generator().manual_seed((layer.number + 1_000_000) % 2**32)
    shape = BATCH, tokens, layer.kind.width
    return [uniform(generator, *shape) for _ in range(1 if layer.kind.is_masked else 3)]


def _run(layer, *inputs):
    """Return output and weights, without gradients."""
    with torch.no_grad():
        return layer(*inputs, need_weights=True)


def _distance(a, b):
    """Return the largest difference of two tensors."""
    return (a - b).abs().max()


@instrument("the largest differences")
def bisect(layer):
    """Split the layer after the weights, and test each half by itself.

    Before the cut: are the weights those of the healthy twin? After it: is the output
    what these weights give, with the layer's own values?
    """
    inputs = _draw_inputs(layer)
    output, weights = _run(layer, *inputs)
    _, healthy = _run(twin(layer), *inputs)
    with torch.no_grad():
        value = inputs[2] if not layer.kind.is_masked else layer.W_value(inputs[0])
        expected = weights @ split_heads(value, layer.kind.num_heads).squeeze(1)
        if layer.kind.num_heads > 1:
            expected = layer.out_proj(merge_heads(expected))
    return {
        "before the cut: weights against the twin's": _distance(weights, healthy),
        "after the cut: output against weights · values": _distance(output, expected),
    }


@instrument("sums of the weights")
def row_sums(layer):
    """Sum the weights along the keys, which should give 1, and along the queries."""
    _, weights = _run(layer, *_draw_inputs(layer))
    rows, columns = weights.sum(-1), weights.sum(-2)
    sums = {"smallest row": rows.min(), "largest row": rows.max()}
    return sums | {"smallest column": columns.min(), "largest column": columns.max()}


@instrument("the last row's largest weight")
def scale_scores(layer):
    """Multiply all scores by a factor, and see how peaked the last token's weights are.

    A function gets its query times the factor, a layer x times the root of it.
    """
    inputs, largest = _draw_inputs(layer), {}
    for name, factor in FACTORS.items():
        first_input = inputs[0] * (factor**0.5 if layer.kind.is_masked else factor)
        _, weights = _run(layer, first_input, *inputs[1:])
        largest[f"scores × {name}"] = weights[..., -1, :].amax(-1).mean()
    return largest


@instrument("how far outputs move")
def permute_tokens(layer):
    """Run tokens in another order.

    Keys and values may come in any order together. In a causal layer the output of the
    last token does not depend on the order of those before it.
    """
    inputs = _draw_inputs(layer)
    output = _run(layer, *inputs)[0]
    if not layer.kind.is_masked:
        query, key, value = inputs
        keys_reversed = _run(layer, query, key.flip(-2), value.flip(-2))[0]
        put_back = _run(layer, query.flip(-2), key, value)[0].flip(-2)
        return {
            "keys and values in reverse order": _distance(keys_reversed, output),
            "queries in reverse order, outputs put back": _distance(put_back, output),
        }
    x = inputs[0]
    moved_output = _run(layer, torch.cat([x[:, :-1].flip(1), x[:, -1:]], dim=1))[0]
    label = "tokens before the last in reverse: the last output"
    return {label: _distance(moved_output[:, -1], output[:, -1])}


def _measure_moves(layer):
    """Return (T, T): how far output i moves at most when token j is replaced."""
    x = _draw_inputs(layer)[0]
    output, moves = _run(layer, x)[0], []
    for j in range(TOKENS):
        changed_x = x.clone()
        changed_x[:, j] = x.roll(1, dims=0)[:, j]
        moves.append((_run(layer, changed_x)[0] - output).abs().amax((0, 2)))
    return torch.stack(moves, dim=1)


def _draw_moves(
    layers, names, title="How far each output moves when a token is replaced"
):
    maps = torch.stack([_measure_moves(layer) for layer in layers])
    axes = {"row_axis": "output", "column_axis": "replaced token"}
    chart.heat(maps, title=title, names=names, vmax=maps.max().item(), **axes)


@instrument("how far outputs move", _draw_moves)
def replace_tokens(layer):
    """Replace each token by that of another sentence; draw how far outputs move."""
    moves = _measure_moves(layer)
    return {
        "the next token replaced, at most": moves.diagonal(1).max(),
        "a token after that replaced, at most": moves.triu(2).max(),
    }


@instrument("how far its output is from …")
def one_token(layer):
    """Give one token alone, whose weight can only be 1, and see what comes out."""
    inputs = _draw_inputs(layer, tokens=1)
    output = _run(layer, *inputs)[0]
    if not layer.kind.is_masked:
        tensors = dict(zip(("query", "key", "value"), inputs))
    else:
        [x] = inputs
        tensors = {"x": x, "key": layer.W_key(x), "value": layer.W_value(x)}
    if layer.kind.num_heads > 1:
        tensors |= {f"out_proj({n})": layer.out_proj(t) for n, t in tensors.items()}
    return {name: _distance(output, t.detach()) for name, t in tensors.items()}
