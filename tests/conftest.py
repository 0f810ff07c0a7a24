"""What the tests share: the sample of the quick run, summaries, pictures."""

import os
from pathlib import Path
from types import SimpleNamespace

import cloudpickle
import pytest

from tests.browser import browser
from tests.notebooks import find_notebooks
from tests.repository import ROOT

__all__ = ["browser"]


@pytest.fixture(autouse=True)
def own_progress(monkeypatch):
    """Forget the answers of other tests; return the file for this test's progress."""
    monkeypatch.setattr("utils.checks.reader._passed_answers", {})
    monkeypatch.setattr("utils.checks.reader._checked_answers", {})
    return Path(os.environ["COURSE_PROGRESS"], "progress.txt")


@pytest.fixture
def published(monkeypatch):
    """Collect the bundles that would reach a notebook."""
    outputs = []

    def display(bundle, metadata, raw):
        assert raw and metadata == {"image/png": {"width": 759}}
        outputs.append(bundle)

    monkeypatch.setattr("utils.plots.publishing.get_ipython", SimpleNamespace)
    monkeypatch.setattr("utils.plots.publishing.display", display)
    return outputs


def pytest_generate_tests(metafunc):
    """Run a test with a sample of the notebooks, or in the full run with all."""
    sample = metafunc.definition.get_closest_marker("sample")
    if sample is None:
        return
    folder = ROOT / "notebooks"
    paths = [p for p in find_notebooks() if p.match(sample.kwargs.get("of", "*"))]
    known = {path.relative_to(folder).as_posix(): path for path in paths}
    names = known if metafunc.config.getoption("--full") else sample.args
    paths = [pytest.param(known[name], id=name) for name in names]
    metafunc.parametrize("path", paths, scope="module")


@pytest.fixture(scope="module")
def on_cpu(request):
    """Hide GPUs from the processes that a test starts, and let them find the course.

    Functions are pickled by value, so the processes needn't import the test file.
    """
    cloudpickle.register_pickle_by_value(request.module)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUDA_VISIBLE_DEVICES", "")
        patch.setenv("PYTHONPATH", str(ROOT))
        yield
