"""Each test pins one sentence about the versions that the course is tested with."""

import importlib.metadata
import os
import re
import sysconfig

import pytest
from repository import pins

LOCKED = pins.read_pins(pins.LOCK)


def plain(name):
    """Return the name of a package as an index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


FILES = [pins.PINS, pins.SITE, pins.COLAB, pins.GPT2, pins.LOCK]


@pytest.mark.parametrize("path", FILES)
def test_every_line_pins_one_version_and_names_no_address(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    pin = r"([\w.-]+==[\w.]+( ; [\w ().<>=!'\"]+)?)?|# python .ci/pins.py lock"
    assert [line for line in lines if not re.fullmatch(pin, line)] == []


def test_the_lock_is_that_of_the_requirements():
    assert pins.read_pins(pins.PINS).items() <= LOCKED.items()


def installed():
    """Return what lies in this environment, by name.

    Not what a package keeps for itself: setuptools shows its own copies to whoever
    imports it.
    """
    folder = sysconfig.get_path("purelib")
    found = importlib.metadata.distributions(path=[folder])
    return {plain(each.name): each for each in found}


def brought_along(names):
    """Return what these packages need, and what that needs, as far as it lies here."""
    here, found, left = installed(), {}, [*names]
    while left:
        name = plain(left.pop())
        if name in found or name not in here:  # another system or Python needs it
            continue
        found[name] = here[name].version
        needs = here[name].requires or []
        asked_for = [need for need in needs if not re.search(r"\bextra\b", need)]
        left += [re.match(r"[\w.-]+", need)[0] for need in asked_for]
    return found


@pytest.mark.skipif("CI" not in os.environ, reason="`.ci/run` alone obeys the lock")
def test_nothing_is_installed_in_another_version_than_the_lock_says():
    known = brought_along(LOCKED)
    plainly = {name: version.partition("+")[0] for name, version in known.items()}
    assert plainly.items() <= LOCKED.items()


def test_a_version_is_raised_wherever_it_was_the_old_one():
    old, new = {"torch": "2.13.0", "six": "1"}, {"torch": "2.14.0", "six": "1"}
    text = "torch==2.13.0\nsix==1\ntorchvision==2.13.0\n"
    assert pins.raised(text, old, new) == text.replace("torch==2.13.0", "torch==2.14.0")
    colab = "torch==2.11.0\nnumpy==2.13.0\n"
    assert pins.raised(colab, old, new) == colab
