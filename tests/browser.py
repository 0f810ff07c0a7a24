"""A real browser for the tests that look at notebooks as readers do."""

import importlib.util
import os
import shutil
import sys

import pytest


def find_browser():
    """Return the path of Chromium, or None."""
    names = "chromium", "chromium-browser", "google-chrome"
    return next(filter(None, map(shutil.which, names)), None)


def require_resource(resource, what):
    """Return the resource; if there is none, skip the test, but fail in CI on Linux.

    `require_resource(shutil.which("node"), "node")`
    """
    if not resource:
        must = os.environ.get("CI") and sys.platform == "linux"  # see `.ci/run`
        missing = pytest.fail if must else pytest.skip
        missing(f"{what} is missing")
    return resource


@pytest.fixture(scope="module")
def browser():
    """Open one Chromium for all tests of a file; return Playwright's browser."""
    require_resource(importlib.util.find_spec("playwright"), "the package playwright")
    path = require_resource(find_browser(), "Chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path)
        yield browser
        browser.close()


def use_slider(place):
    """Move the slider of `plots.steps` by keyboard and mouse; fail if it isn't right.

    `place` is a locator or a frame that has one drawing in four states.
    """
    slider = place.get_by_role("slider", name="State")
    line, image, list_ = (place.locator(s) for s in ("[aria-live]", "img", "ol"))
    sources = [image.get_attribute("src")]
    assert line.inner_text() == "1 of 4. State 1 & <more>."
    assert not list_.is_visible()
    slider.focus()
    for number in (2, 3):
        slider.press("ArrowRight")
        assert line.inner_text() == f"{number} of 4. State {number} & <more>."
        sources.append(image.get_attribute("src"))
    box = slider.bounding_box()
    assert box["y"] < line.bounding_box()["y"] < image.bounding_box()["y"]
    slider.click(position={"x": box["width"] - 4, "y": box["height"] / 2})
    slider.page.keyboard.press("ArrowLeft")  # goes to the slider after a click, too
    assert line.inner_text() == "3 of 4. State 3 & <more>."
    slider.page.keyboard.press("ArrowRight")
    assert slider.bounding_box() == box, "it stays where it is"
    assert line.inner_text() == "4 of 4. State 4 & <more>."
    assert slider.get_attribute("aria-valuetext") == "4 of 4"
    sources.append(image.get_attribute("src"))
    assert len(set(sources)) == 4, "each state has its own picture"
