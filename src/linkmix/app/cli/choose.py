"""The command choose."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkmix.app.cli.failures import BadInput, bad_input, extras_needed, named_by_ids
from linkmix.app.cli.options import (
    FILE,
    Classes,
    Counts,
    Reading,
    out_option,
    points_argument,
    reading_options,
    seed_option,
)
from linkmix.app.cli.terminal import print_table, progress, say, watched

if TYPE_CHECKING:
    from linkmix.basics.arrays import Array

FORMS = ("full", "tied", "diag", "spherical")


@click.command()
@points_argument
@click.option("--links", type=FILE, help="File with links, as for linkmix fit.")
@click.option(
    "--classes",
    type=Classes(),
    multiple=True,
    default=["auto"],
    show_default="auto",
    help="Number of classes; repeat it to choose from several. auto takes the number that explains links and points "
    "best, from 2 to 50.",
)
@click.option(
    "--clusters-per-class",
    type=Counts(),
    multiple=True,
    default=[1, 2, 3],
    show_default="1, 2 and 3",
    help="Number of clusters in each class, or one for each class, such as 1,2,1; repeat it to choose from several.",
)
@click.option(
    "--covariance",
    "forms",
    type=click.Choice(FORMS),
    multiple=True,
    default=FORMS,
    show_default="all four",
    help="Covariance type; repeat it to choose from several.",
)
@click.option("--folds", type=click.IntRange(2), default=5, show_default=True, help="Number of parts that are hidden.")
@reading_options()
@seed_option
@out_option("choose", "the table and the picture")
def choose(
    points: Path,
    links: Path | None,
    classes: tuple[int | str, ...],
    clusters_per_class: tuple[int | list[int], ...],
    forms: tuple[str, ...],
    folds: int,
    reading: Reading,
    seed: int,
    folder: Path,
) -> None:
    """Choose the shape of the mixture by cross-validation.

    The shape is the number of clusters per class and the covariance type, and the number of classes. Each fold hides
    some of the points with all links that touch them; each shape is fitted to the rest. It is judged by the share of
    the hidden links that agree with its labels, and by the log-likelihood of a hidden point. Recommended is the shape
    with the fewest parameters of those that are no more than one standard error behind the best: by the links first,
    then by the likelihood. With fewer than ten links the likelihood alone decides.

    Writes choose.csv with the table and choose.png. The last line is the command that fits the recommended shape.

    \b
    Examples:
      linkmix choose points.csv --links links.csv
      linkmix choose points.csv --links links.csv --classes 3 --columns height,weight
      linkmix choose points.csv --links links.csv --classes 2 --classes 3 --covariance full
      linkmix choose points.csv --links links.csv --classes 3 --clusters-per-class 1 --clusters-per-class 1,2,1
    """  # noqa: D301
    with extras_needed(), bad_input():
        import pandas as pd

        from linkmix.app.cli.notes import cautions, tell
        from linkmix.app.cli.points import only_numbers, read, standardised
        from linkmix.basics.files import aside
        from linkmix.plots import choice_of_shape, save_picture
        from linkmix.search import AutoLinkMixture
        from linkmix.search.choice import choose as cross_validate

        if "auto" in classes and len(classes) > 1:
            raise BadInput("--classes auto chooses from all numbers up to 50: give it alone, or give numbers alone")
        table, known = read(points, reading, links)
        losses: list[str] = []
        plain = only_numbers(table, "--method linkmix", losses)
        tell(cautions(table, chosen=reading.columns is not None) + losses)
        numbers = [int(number) for number in classes if number != "auto"]
        tried = None
        with named_by_ids(links, table):
            if not numbers:
                say("Comparing 2 to 50 classes ...")
                model = AutoLinkMixture("auto", verbose=watched(), random_state=seed)
                model.fit(table.coded, links=known)
                tried, numbers = model.choice_, [model.n_classes_]
            found = cross_validate(
                standardised(plain),
                known,
                numbers,
                clusters_per_class=clusters_per_class,
                covariance_types=forms,
                n_folds=folds,
                random_state=seed,
                progress=progress("shapes and folds", "fit"),
            )
        shapes = found.table
        folder.mkdir(parents=True, exist_ok=True)
        with aside(folder / "choose.csv") as place:  # which gets its place after the picture, so both or none
            pd.DataFrame(shapes).to_csv(place, index=False)
            save_picture(choice_of_shape(shapes), folder / "choose.png")
    if tried is not None:
        show_numbers(tried, numbers[0])
    show_shapes(shapes)
    for shape, why in found.left_out:
        click.echo(f"Left out: {shape}: {why}")
    click.echo(f"\nRecommended: {found.chosen}. {found.reason}\n")
    click.echo(f"{folder / 'choose.csv'}: the table\n{folder / 'choose.png'}: the same as a picture\n")
    given = [*(() if links is None else ("--links", str(links))), *reading.as_typed_with_id]
    shape = found.chosen
    click.echo(
        shlex.join(["linkmix", "fit", str(points), *given, "--classes", str(shape.n_classes), "--method", "linkmix"])
        + f" --clusters-per-class {shape.clusters} --covariance {shape.covariance_type} --scale"
    )


def show_numbers(table: "Array", chosen: int) -> None:
    """Print what speaks for each number of classes."""
    rows = [
        [
            f"{row['n_classes']}",
            f"{row['links_broken']:g}",
            f"{row['log_probability_of_links']:.2f}",
            f"{row['bic']:,.0f}",
            f"{row['score'] - table['score'].max():.1f}",
            "chosen" if row["n_classes"] == chosen else "",
        ]
        for row in table
    ]
    print_table(["classes", "links missed by the points alone", "log-probability of links", "BIC", "score", ""], rows)
    click.echo()


def show_shapes(table: "Array") -> None:
    """Print how each shape did on what it had not seen, with standard errors."""
    rows = []
    for row in table:
        agree, error = row["links_agree"], row["links_agree_error"]
        rows.append(
            [
                f"{row['n_classes']}",
                f"{row['clusters_per_class']}",
                f"{row['covariance_type']}",
                f"{row['n_parameters']}",
                "" if agree != agree else f"{100 * agree:.1f} ± {100 * error:.1f} %",
                f"{row['log_likelihood']:.3f} ± {row['log_likelihood_error']:.3f}",
                "chosen" if row["chosen"] else "",
            ]
        )
    names = ["classes", "clusters per class", "covariance", "parameters", "hidden links that agree"]
    print_table([*names, "log-likelihood of a hidden point", ""], rows)
