import pytest

from browser import chromium
from label_serving import Serving, write_points


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture
def serving(tmp_path):
    with Serving(write_points(tmp_path / "points.csv")) as serving:
        yield serving
