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


def needed(found, what):
    """Return what was found; if nothing was, skip the test, but fail in CI on Linux.

    `needed(shutil.which("node"), "node")`
    """
    if not found:
        must = os.environ.get("CI") and sys.platform == "linux"  # see `.ci/run`
        missing = pytest.fail if must else pytest.skip
        missing(f"{what} is missing")
    return found


@pytest.fixture(scope="module")
def browser():
    """Open one Chromium for all tests of a file; return Playwright's browser."""
    needed(importlib.util.find_spec("playwright"), "the package playwright")
    path = needed(find_browser(), "Chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path)
        yield browser
        browser.close()
