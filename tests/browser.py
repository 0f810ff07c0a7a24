"""A real browser for the tests that look at notebooks as readers do."""

import importlib.util
import os
import shutil
import sys

import pytest

COMMANDS = ("chromium", "chromium-browser", "google-chrome")
# Containers lack the kernel's sandbox and a GPU; a test asks nothing of the network.
FLAGS = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
FLAGS += "--disable-background-networking --disable-component-update"


def needed(found, what):
    """Return what was found; where it is missing skip, but fail on a CI with Linux.

    `needed(shutil.which("chromium"), "Chromium")`
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
    path = needed(next(filter(None, map(shutil.which, COMMANDS)), None), "Chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS.split())
        yield browser
        browser.close()
