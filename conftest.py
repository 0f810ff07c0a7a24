"""What every test and every notebook under test starts from."""

import os
import tempfile

import pytest
from nbval.plugin import IPyNbCell, IPyNbFile, coalesce_streams

from tests.repository import LONG
from tests.tolerance import settled

# Set before any worker or kernel starts, so that all of them inherit it: one thread
# each, because two files run side by side, and none of the reader's IPython settings.
os.environ.setdefault("OMP_NUM_THREADS", "1")
IS_MAIN = "PYTEST_XDIST_WORKER" not in os.environ
if IS_MAIN:
    FOLDER = tempfile.TemporaryDirectory(prefix="course-")
    os.environ["COURSE_TESTS"] = FOLDER.name
    os.environ["IPYTHONDIR"] = FOLDER.name
    # Published models count as not fetched, even if this machine has them.
    os.environ |= {"HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": FOLDER.name}


def pytest_addoption(parser):
    """Add the option of the full run; see tests/README.md."""
    every = "leave nothing out, and run each test on every notebook instead of a sample"
    parser.addoption("--full", action="store_true", help=every)


def pytest_ignore_collect(collection_path, config):
    """Leave out what takes long, unless the command names it or nothing is left out."""
    is_long = any(collection_path.match(name) for name in LONG)
    return (is_long and not is_whole(config)) or None


def is_whole(config):
    """Return whether nothing is left out."""
    return "CI" in os.environ or config.getoption("--full")


def pytest_terminal_summary(terminalreporter, config):
    """Say after a plain `python -m pytest` what was left out."""
    if IS_MAIN and not config.option.file_or_dir and not is_whole(config):
        names = ", ".join(LONG)
        terminalreporter.write_line(f"Left out, because it takes long: {names}.")
        terminalreporter.write_line("Name what you want to run: python -m pytest PATH")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    """Run two files at a time, each in its order, if pytest-xdist is installed.

    A single test starts sooner without: with `-k` or `::` there is one process.
    `addopts` can't say this: without pytest-xdist, pytest would refuse the options.
    """
    if config.pluginmanager.has_plugin("xdist") and IS_MAIN:
        option = config.option
        if option.numprocesses is None:
            is_single = option.keyword or any("::" in arg for arg in option.file_or_dir)
            option.numprocesses = 0 if option.usepdb or is_single else 2
        option.dist = "loadfile" if option.dist == "no" else option.dist
        option.loadscopereorder = False


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Give each test and each notebook a progress of its own, not the reader's."""
    os.environ["COURSE_PROGRESS"] = tempfile.mkdtemp(dir=os.environ["COURSE_TESTS"])


def pytest_collectstart(collector):
    """Compare the text of a picture, which is also text/plain, and not its bytes."""
    if isinstance(collector, IPyNbFile):
        collector.skip_compare += ("text/html", "image/png")


def pytest_itemcollected(item):
    """Compare the numbers of a cell within the tolerance that its metadata states."""
    tolerance = isinstance(item, IPyNbCell) and item.cell.metadata.get("tolerance")
    if tolerance:
        exact = item.compare_outputs

        def compare(new, stored, skip_compare=None):
            new, stored = coalesce_streams(new), coalesce_streams(stored)
            return exact(settled(new, stored, tolerance), stored, skip_compare)

        item.compare_outputs = compare
