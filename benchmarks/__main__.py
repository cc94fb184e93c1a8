"""All parts of `front_door`, `speed`, `prediction` and `scale` in one run.

    python -m benchmarks [--quick] [--plot PNG]

Each part can also be run alone: ``python -m benchmarks.speed iterations``, ``python -m benchmarks.scale dask``.
OMP_NUM_THREADS sets the number of threads of the core. BLAS has one thread, except that scikit-learn is also run with
all of them.
"""

import argparse
import warnings

from benchmarks import front_door, prediction, scale, speed
from linkmix import native


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--quick", action="store_true", help="smaller problems: a minute instead of a quarter of an hour"
    )
    parser.add_argument("--plot", metavar="PNG", help="file for a plot of the growth")
    options = parser.parse_args()
    options.level, options.separation = None, 3.0
    options.gigabytes = options.folder = None
    options.turns, options.against, options.links, options.draws, options.first = 3, None, [25, 100], 1, 0
    warnings.simplefilter("ignore")
    print(native.description())
    rooms = (front_door, speed, prediction, scale)
    for part in [part for room in rooms for part in room.PARTS.values()]:
        part(options)


if __name__ == "__main__":
    main()
