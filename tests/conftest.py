import os
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

# A shell that runs the tests in the background may make them ignore Ctrl-C, which some tests send.
if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


collect_ignore = ["user_script.py"]  # for type checkers: not a module to run


# Hypothesis draws new examples in every local run. On CI they are fixed, so that it cannot fail by chance.
settings.register_profile("linkmix", deadline=None, derandomize=os.environ.get("CI") == "true", print_blob=True)
settings.load_profile("linkmix")


@pytest.fixture
def reference(request):
    """Arrays of a file of reference values, named by the parameter."""
    folder = os.environ.get("LINKMIX_DATA")
    if not folder:
        pytest.skip("LINKMIX_DATA is not set: the reference values are not available")
    with np.load(Path(folder) / "reference" / f"{request.param}.npz", allow_pickle=False) as arrays:
        return dict(arrays)


@pytest.fixture(scope="module")
def browser():
    """A browser, for tests of the labelling page."""
    from browser import chromium

    with chromium() as found:
        yield found


@pytest.fixture
def serving(tmp_path):
    """The labelling page of a small table."""
    from label_serving import Serving, write_points

    with Serving(write_points(tmp_path / "points.csv")) as serving:
        yield serving
