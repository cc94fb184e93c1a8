"""The command demo."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkmix.app.cli.failures import bad_input, extras_needed
from linkmix.app.cli.options import out_option

if TYPE_CHECKING:
    from linkmix.study.demo import Demo, Result


@click.command()
@out_option("demo", "the picture")
@click.option("--links", "n_links", type=click.IntRange(1), default=20, show_default=True, help="Number of links.")
@click.option(
    "--draws",
    "n_draws",
    type=click.IntRange(0),
    default=20,
    show_default=True,
    help="Number of random draws of links to average over; 0 for the one shown only.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**31),
    default=0,
    show_default=True,
    help="Random seed of the first draw.",
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


def print_demo(shown: "Demo") -> None:
    """Print both results as a table."""
    links = shown.links
    click.echo(
        f"{len(shown.data.y)} images of the {', '.join(shown.data.class_names)}; "
        f"{links.n_must} must-links and {links.n_cannot} cannot-links between random pairs.\n"
    )
    click.echo(f"{'':16}{'':>8}{'adjusted':>10}{'links satisfied by':>20}")
    click.echo(f"{'mixture':16}{'purity':>8}{'Rand':>10}{'predict':>11}{'labels_':>9}{'iterations':>12}")
    for name, result in (("without links", shown.without), ("with links", shown.with_links)):
        click.echo(
            f"{name:16}{result.purity:8.3f}{result.adjusted_rand:10.3f}{result.links_by_predict:11.2f}"
            f"{result.links_by_labels:9.2f}{result.model.n_iter_:12}"
        )
    click.echo("\nBoth keep the most likely of the same 10 starts.")


def what_one_sees(shown: "Demo") -> str:
    """Say what the picture shows, in a sentence."""
    before = "Without links the mixture splits the ones, which are written in two ways, and takes most of them for twos"
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
