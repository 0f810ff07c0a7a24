"""Each test pins one sentence about the versions that the course is tested with."""

import re

import pytest
from repository import pins

FILES = [pins.PINS, pins.SITE, pins.COLAB, pins.GPT2, pins.LOCK]


@pytest.mark.parametrize("path", FILES)
def test_every_line_pins_one_version_and_names_no_address(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    pin = r"([\w.-]+==[\w.]+( ; [\w ().<>=!'\"]+)?)?|# python .ci/pins.py lock"
    assert [line for line in lines if not re.fullmatch(pin, line)] == []


def test_the_lock_is_that_of_the_requirements():
    assert pins.read_pins(pins.PINS).items() <= pins.read_pins(pins.LOCK).items()


def test_a_version_is_raised_wherever_it_was_the_old_one():
    old, new = {"torch": "2.13.0", "six": "1"}, {"torch": "2.14.0", "six": "1"}
    text = "torch==2.13.0\nsix==1\ntorchvision==2.13.0\n"
    assert pins.raised(text, old, new) == text.replace("torch==2.13.0", "torch==2.14.0")
    colab = "torch==2.11.0\nnumpy==2.13.0\n"
    assert pins.raised(colab, old, new) == colab
