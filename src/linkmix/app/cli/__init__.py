"""The command line. The only room that prints."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

try:
    import click
except ModuleNotFoundError:
    sys.exit("The linkmix command needs click: pip install 'linkmix[app]'")

from linkmix.app.cli.asking import ask
from linkmix.app.cli.choosing import choose, compare
from linkmix.app.cli.failures import bad_input, extras_needed
from linkmix.app.cli.fitting import fit, predict
from linkmix.app.cli.labelling import label
from linkmix.app.cli.reviewing import check_links, explain

if TYPE_CHECKING:
    from linkmix.study.demo import Demo, Result


def print_version(context: click.Context, option: click.Parameter, wanted: bool) -> None:
    """Print the version and stop."""
    if not wanted or context.resilient_parsing:
        return
    from linkmix import __version__

    click.echo(f"linkmix {__version__}")
    context.exit()


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=print_version, help="Show the version."
)
def main() -> None:
    """Cluster points with must-links and cannot-links.

    Say which points belong together and which do not: linkmix fits a mixture model in which those links are part of
    the likelihood.

    \b
    Examples:
      linkmix demo                 what 20 links change on real data
      linkmix fit points.csv --links links.csv --classes 3
                                   labels, a model and a report from your own table
      linkmix label points.csv --classes 3
                                   a page that asks which points belong together
      linkmix reproduce toy        an experiment of the paper
      linkmix fit --help           the options of one command
    """  # noqa: D301  (click wants the backspace itself)


@main.command()
@click.option(
    "--out",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("demo"),
    show_default=True,
    help="Folder for the picture; it is made if it is not there.",
)
@click.option("--links", "n_links", type=click.IntRange(1), default=20, show_default=True, help="Number of links.")
@click.option(
    "--draws",
    "n_draws",
    type=click.IntRange(0),
    default=20,
    show_default=True,
    help="Draws of links to average over; 0 for the shown one alone.",
)
@click.option(
    "--seed", type=click.IntRange(0, 2**31), default=0, show_default=True, help="Seed of the first draw of links."
)
def demo(folder: Path, n_links: int, n_draws: int, seed: int) -> None:
    """Show what 20 links change on real data.

    Clusters scikit-learn's handwritten digits 1, 2 and 5 without links and with links between random pairs of images,
    prints both results, and draws them.

    \b
    Examples:
      linkmix demo
      linkmix demo --links 10 --seed 7
      linkmix demo --out pictures --draws 0
    """  # noqa: D301
    with extras_needed(), bad_input():
        from linkmix import plots
        from linkmix.study import demo as room

        folder.mkdir(parents=True, exist_ok=True)
        shown = room.run(n_links, seed=seed)
        path = folder / "linkmix-demo.png"
        plots.save_picture(room.picture(shown), path)
    print_demo(shown)
    click.echo(f"\nThe picture is {path}.\n{what_one_sees(shown)}")
    if n_draws:
        click.echo(f"\nThe same with {n_draws} draws of {n_links} links ...")
        print_draws(shown, room.repeat(shown, n_draws, seed=seed), seed)


@main.group()
def data() -> None:
    """Say which data sets of the experiments are here, and fetch others.

    \b
    Examples:
      linkmix data list
      linkmix data fetch haberman thyroid
    """  # noqa: D301


@data.command("list")
@click.option("--cite", is_flag=True, help="Also say whom to cite, and the licence.")
def list_data(cite: bool) -> None:
    """List all data sets, and where each is found.

    A file is looked for in the folder that the variable LINKMIX_DATA names, in the cache, and in installed packages.

    \b
    Examples:
      linkmix data list
      linkmix data list --cite
    """  # noqa: D301
    with extras_needed(), bad_input():
        from linkmix.study.paper import data as room

        places = {name: room.where(name) or f"not here: linkmix data fetch {name}" for name in room.DATA}
    width = max(map(len, places.values()))
    click.echo(f"{'name':14}{'rows':>6}{'columns':>9}{'classes':>9}  {'where':{width}}  what")
    for name, place in places.items():
        spec = room.DATA[name]
        rows, columns = spec.shape
        click.echo(f"{name:14}{rows:6}{columns:9}{len(spec.class_names):9}  {place:{width}}  {spec.what}")
        if cite:
            click.echo(f"{'':14}{spec.cite}")


@data.command("fetch")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
def fetch_data(names: tuple[str, ...]) -> None:
    """Download data sets to the cache, unless they are here already.

    The cache is ~/.cache/linkmix, or the folder that the variable LINKMIX_CACHE names. What does not hold the values
    that the experiments were run on is refused.

    \b
    Examples:
      linkmix data fetch haberman
      linkmix data fetch mnist-123 coil20-20
    """  # noqa: D301
    with extras_needed(), bad_input():
        from linkmix.study.paper import data as room

        for name in names:
            click.echo(f"{name}: {room.fetch(name)}\n  cite {room.DATA[name].cite}")


@main.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--trials", type=click.IntRange(1), help="Number of trials; by default 100, and 10 for fewest-links.")
@click.option("--jobs", "n_jobs", type=click.IntRange(1), help="Number of processes; by default one per processor.")
@click.option(
    "--out",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("results"),
    show_default=True,
    help="Folder for the runs, the figures and the page; it is made if it is not there.",
)
def reproduce(names: tuple[str, ...], trials: int | None, n_jobs: int | None, folder: Path) -> None:
    """Run the experiments of the paper, draw its figures and test its claims.

    NAMES are toy, two-moons, haberman, thyroid, mnist-123, mnist-4567, coil20 and clusters-per-class, which is all of
    the paper and the default, and fewest-links, every method on eleven data sets.

    Every run is on the disk when it ends. A command that was stopped, in whatever way, goes on where it was when it is
    given again.

    \b
    Examples:
      linkmix reproduce --trials 10
      linkmix reproduce toy two-moons
      linkmix reproduce fewest-links --jobs 2 --out results-few
    """  # noqa: D301
    with extras_needed(), bad_input():
        from linkmix.study.paper import claims, protocol, report

        chosen = names or protocol.PAPER
        click.echo(f"Loading the data of {', '.join(chosen)}; each run is kept in {folder} when it ends.")
        table = protocol.run(chosen, folder, trials=trials, n_jobs=n_jobs or os.cpu_count() or 1)
        command = " ".join(["linkmix reproduce", *names, *(["--trials", str(trials)] if trials else [])])
        page = report.write(table, folder, command)
        findings = claims.examine(table)
    for claim, finding in findings:
        click.echo(f"{finding.verdict:18} {claim.text}")
    failed = int(table["error"].notna().sum())
    click.echo(f"\n{len(table)} runs, {failed} failed. Figures, tables and the rest of the findings: {page}")


def print_demo(shown: "Demo") -> None:
    """Print both results as a table."""
    links = shown.links
    click.echo(
        f"{len(shown.data.y)} images of the {', '.join(shown.data.class_names)}; "
        f"{links.n_must} must-links and {links.n_cannot} cannot-links between random pairs.\n"
    )
    click.echo(f"{'':16}{'':>8}{'adjusted':>10}{'links satisfied by':>20}{'log-':>12}{'':>12}")
    click.echo(
        f"{'mixture':16}{'purity':>8}{'Rand':>10}{'predict':>11}{'labels_':>9}{'likelihood':>12}{'iterations':>12}"
    )
    for name, result in (("without links", shown.without), ("with links", shown.with_links)):
        click.echo(
            f"{name:16}{result.purity:8.3f}{result.adjusted_rand:10.3f}{result.links_by_predict:11.2f}"
            f"{result.links_by_labels:9.2f}{result.model.log_likelihood_:12.1f}{result.model.n_iter_:12}"
        )
    click.echo(
        "\nBoth keep the most likely of the same 10 starts. The log-likelihoods sum over different items (a link with"
        "\nits two points is one) and do not compare."
    )


def what_one_sees(shown: "Demo") -> str:
    """Say what the picture shows, in a sentence."""
    before = "Without links the mixture parts the ones, which are written in two ways, and takes most of them for twos"
    if shown.with_links.adjusted_rand > shown.without.adjusted_rand:
        return f"{before};\nthe links bring the two ways of writing a one together."
    return f"{before};\nthese links do not change that, as a few draws of links do not: try another --seed."


def print_draws(shown: "Demo", results: "list[Result]", seed: int) -> None:
    """Print the mean over several draws of links."""
    import numpy as np

    for name in ("purity", "adjusted_rand"):
        values = np.array([getattr(result, name) for result in results])
        spread = f" +- {values.std(ddof=1):.3f} (standard deviation)" if len(values) > 1 else ""
        before = getattr(shown.without, name)
        click.echo(
            f"mean {name.replace('adjusted_rand', 'adjusted Rand')}: {values.mean():.3f}{spread}, "
            f"from {values.min():.3f} to {values.max():.3f}; {before:.3f} without links"
        )
    better = sum(result.adjusted_rand > shown.without.adjusted_rand + 0.01 for result in results)
    click.echo(f"better than without links (adjusted Rand, by more than 0.01) in {better} of {len(results)} draws")


# Modules of commands import only click when they are loaded, so that --help is quick.
for command in (fit, predict, check_links, ask, label, compare, choose, explain):
    main.add_command(command)
