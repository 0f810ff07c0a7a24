"""The experiments of the notebooks."""

import functools
import re

import pytest
import torch

from tests import result_tables
from utils.pages import definitions, read_cells

page = functools.cache(definitions)  # not while tests are collected
TRANSLATION, BOOKS = "12_translation", "13_attention_without_a_softmax"
TRANSFORMER = "deeper/the_transformer_of_2017"
PRONOUNS = "deeper/heads_that_resolve_it"


@functools.cache
def nouns():
    kinds = (page(PRONOUNS)[name] for name in ("CREATURES", "VEHICLES", "PLACES"))
    return {noun for kind in kinds for noun in kind}


def test_held_out_scenes_never_occur_in_training():
    def scenes(*options):
        return {
            frozenset(nouns() & {*words} | {words[pronoun + 3]})
            for words, pronoun, _ in page(PRONOUNS)["pronoun_sentences"](*options)
        }

    held_out = scenes(1000, True)
    assert not scenes(5000) & held_out
    for quality in ("tired", "wide"):
        assert {"animal", "street", quality} in held_out


@pytest.mark.parametrize("kind", "OneVector FixedPlaces Recurrent Transformer".split())
def test_a_decoder_does_not_look_ahead(kind):
    names, heads = page(TRANSLATION), [4] * (kind == "Transformer")
    torch.manual_seed(0)
    decoders = page(TRANSFORMER if heads else TRANSLATION)
    decoder = decoders[f"{kind}Decoder"](11, 8, *heads)
    encoder = names["RecurrentEncoder"](7, 8)
    translator = names["Translator"](encoder, decoder)
    source, words = torch.randint(1, 7, (2, 5)), torch.randint(1, 11, (2, 6))
    other = words.clone()
    other[:, 4] = words[:, 4] % 10 + 1  # another word
    before, after = translator(source, words)[0], translator(source, other)[0]
    torch.testing.assert_close(after[:, :4], before[:, :4])
    assert not torch.allclose(after[:, 4], before[:, 4])


def test_no_pair_of_the_test_occurs_in_training():
    names = page(TRANSLATION)
    pairs = names["held_out_pairs"]()
    assert len(pairs) == 600
    train = {*names["translation_pairs"](32_000, seed=0)}
    assert not {*pairs} & train
    train |= {*pairs}
    assert len(train) == len({french for french, _ in train})  # one translation each


def test_the_alignment_knows_that_clauses_change_places():
    names = page(TRANSLATION)
    source, target = names["PAIR"]
    words = source.split()
    pairs = zip(target.split(), names["align"](source, target))
    aligned_words = [(word, *(words[i] for i in sorted(ids))) for word, ids in pairs]
    clause = [("the", "le"), ("black", "noir"), ("cat", "chat"), ("sleeps", "dort")]
    assert aligned_words[:5] == [*clause, ("when", "quand")]
    assert aligned_words[8:] == [("not", "ne", "pas"), ("shine", "brille")]


ACCOUNT = {  # page: how many rows the account has there
    "09_attention_at_speed": 1,
    "11_a_narrower_cache": 4,
    TRANSLATION: 1,
    BOOKS: 1,
    "14_looking_back": 6,
}


def account_rows(notebook):
    """Return the cells of each row of the account in a notebook."""
    sources = ["".join(cell["source"]) for cell in read_cells(f"{notebook}.ipynb")]
    [_, table] = "\n\n".join(sources).split("| kept of the past |")
    lines = table.split("\n\n")[0].replace("**", "").splitlines()[2:]
    return [result_tables.cells(line) for line in lines]


@pytest.mark.parametrize("notebook", ACCOUNT)
def test_the_account_says_what_a_layer_keeps(notebook):
    kept, layer_bytes = (page("14_looking_back")[x] for x in ("KEPT", "layer_bytes"))
    rows = account_rows(notebook)
    assert len(rows) == ACCOUNT[notebook]
    for name, per_token, after, *_ in rows:
        name = name.removeprefix("keys and values in ").split(", shared")[0]
        stops = kept[name][1] == 1
        assert per_token.split()[0] == ("none" if stops else f"{kept[name][0]:,}")
        [size, unit] = after.replace(",", "").split()
        units = {"KiB": 2**10, "MiB": 2**20}
        assert int(size) * units[unit] == layer_bytes(name, 131_072)


def test_the_account_quotes_what_the_notebooks_print():
    pages = [*list(ACCOUNT)[1:4], "deeper/latents_and_positions"]  # what 11 links to
    cells = [c for name in pages for c in read_cells(f"{name}.ipynb")]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    lines = "".join(x for out in outputs for x in out.get("text", [])).splitlines()
    for *_, tried, result in account_rows("14_looking_back"):
        quotes = {tried: result} | dict(re.findall(r"\((.+): (.+)\)", result))
        for name, quote in quotes.items():
            if name == "not measured":
                assert quote == ""
            else:
                loss, percent = re.match(r"loss (.+)|(\d+)%", quote).groups()
                number = loss or f"{int(percent) / 100:.2f}"
                starts = [line for line in lines if line.startswith(f"{name} ")]
                assert any(number in line.split() for line in starts), name
