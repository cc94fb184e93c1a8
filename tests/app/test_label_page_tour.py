"""The pictures of docs/labelling.md can be made again, through every view of the page."""

import pytest
from benchmarks.label_tour import make
from PIL import Image

from browser import chromium

LARGEST = 3_000_000
VIEWS = ("wide", "group", "classes", "members", "review", "narrow", "finish", "progress")


@pytest.mark.slow
def test_the_tour_shows_every_view_in_two_minutes(tmp_path):
    with chromium() as browser:
        made = make(tmp_path, browser)
    assert [path.name for path in made] == [*(f"label-{view}.png" for view in VIEWS), "label-tour.webp"]
    for path in made[:-1]:
        with Image.open(path) as still:
            assert still.size == ((390, 844) if "narrow" in path.name else (1280, 720))
    assert made[-1].stat().st_size < LARGEST
    seconds = []
    with Image.open(made[-1]) as tour:
        for number in range(tour.n_frames):
            tour.seek(number)
            tour.load()
            seconds.append(tour.info["duration"] / 1000)
    assert len(seconds) >= 20
    assert 100 <= sum(seconds) <= 135
