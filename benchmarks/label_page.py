"""Response times of the labelling page: ``python -m benchmarks.label_page --points 100000``.

Starts ``linkmix label`` and a browser, and measures in the page: the time until the first question and the map are
shown, the time from a key press to the next question while the model is refitted, and the frames per second while the
map is moved.
"""

import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import numpy as np

COLUMNS, CLASSES = 8, 5


def write_table(path: Path, n: int) -> None:
    """Write a mixture of five Gaussians; the class of a row is its number modulo five."""
    import pyarrow as pa
    from pyarrow import parquet

    random = np.random.default_rng(0)
    centres = 3 * random.normal(size=(CLASSES, COLUMNS))
    X = centres[np.arange(n) % CLASSES] + random.normal(size=(n, COLUMNS))
    columns = {"id": [f"p{row}" for row in range(n)]} | {f"column {j}": X[:, j] for j in range(COLUMNS)}
    parquet.write_table(pa.table(columns), path)


def watch(url: str, seen: list[bool], done: threading.Event) -> None:
    """Record ten times a second whether a refit is running."""
    while not done.wait(0.1):
        base, _, token = url.partition("#token=")
        with urllib.request.urlopen(urllib.request.Request(f"{base}api/status", headers={"X-Linkmix": token})) as reply:
            seen.append(json.load(reply)["fitting"])


def measure(n_points: int, n_answers: int) -> None:
    """Measure, and print one table."""
    from playwright.sync_api import sync_playwright

    folder = Path(tempfile.mkdtemp())
    write_table(folder / "points.parquet", n_points)
    command = [
        sys.executable,
        "-c",
        "from linkmix.app.cli import main; main()",
        "label",
        str(folder / "points.parquet"),
    ]
    command += ["--classes", str(CLASSES), "--port", "0", "--no-browser"]
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        url = re.search(r"http://\S+", process.stdout.readline())[0]
        print(f"{n_points:,} points, {n_answers} answers\n")
        print(f"command to address                  {time.perf_counter() - started:8.2f} s")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
            page = browser.new_page(viewport={"width": 1280, "height": 860})
            page.add_init_script("localStorage.setItem('kinds', '\"pair\"')")
            page.goto(url)
            page.wait_for_selector("#plot[data-drawn]", timeout=120_000)
            marks = "performance.getEntriesByName('{}')[0].startTime"
            for what, name in (
                ("first paint", "first-contentful-paint"),
                ("first question", "question"),
                ("map", "map"),
            ):
                print(f"address to {what:25}{page.evaluate(marks.format(name)):8.0f} ms")
            frames = move(page)
            print(f"frames while the map is moved       {1000 / statistics.median(frames):8.0f} per second")
            print(f"  of these, slowest                 {max(frames):8.0f} ms")

            seen: list[bool] = []
            done = threading.Event()
            watcher = threading.Thread(target=watch, args=(url, seen, done))
            watcher.start()
            times = []
            for _ in range(n_answers):
                rows = page.get_attribute("#ask", "data-rows")
                a, b = (int(row) % CLASSES for row in rows.split())
                page.keyboard.press("s" if a == b else "d")
                page.wait_for_selector(f'#ask:not([data-rows="{rows}"])')
                last = "performance.getEntriesByName('{}').at(-1).startTime"
                times.append(page.evaluate(f"{last.format('question')} - {last.format('answer')}"))
                page.wait_for_timeout(150)
            done.set()
            watcher.join()
            browser.close()
        median, most, longest = np.percentile(times, [50, 95, 100])
        print(f"answer to next question, median     {median:8.0f} ms")
        print(f"  95 % of them within               {most:8.0f} ms")
        print(f"  longest                           {longest:8.0f} ms")
        print(f"a refit ran                         {100 * np.mean(seen):8.0f} % of the time")
    finally:
        process.terminate()
        process.communicate()
        shutil.rmtree(folder)


def move(page) -> list[float]:
    """Milliseconds between frames while the map is dragged back and forth."""
    page.evaluate(
        """() => { window.frames_ = []; let last = performance.now();
        const tick = () => { const now = performance.now(); window.frames_.push(now - last); last = now;
                             window.ticking = requestAnimationFrame(tick); };
        window.ticking = requestAnimationFrame(tick); }"""
    )
    box = page.locator("#cloud").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    for shift in (60, -60, 60, 0):
        page.mouse.move(x + shift, y + shift / 2, steps=25)
    page.mouse.up()
    return page.evaluate("() => { cancelAnimationFrame(window.ticking); return window.frames_.slice(3); }")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=100_000)
    parser.add_argument("--answers", type=int, default=150)
    given = parser.parse_args()
    measure(given.points, given.answers)
