"""The command data, with its parts list and fetch."""

import click

from linkmix.app.cli.failures import bad_input, extras_needed


@click.group()
def data() -> None:
    """List the data sets of the experiments, and download them.

    \b
    Examples:
      linkmix data list
      linkmix data fetch haberman thyroid
    """  # noqa: D301


@data.command("list")
@click.option("--cite", is_flag=True, help="Also show what to cite, and the licence.")
def list_data(cite: bool) -> None:
    """List all data sets, and where each one is found.

    A file is looked for in the folder that the environment variable LINKMIX_DATA names, in the cache, and in installed
    packages.

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
    """Download data sets to the cache, unless they are there already.

    The cache is ~/.cache/linkmix, or the folder that the environment variable LINKMIX_CACHE names. A download is
    refused if its values are not those that the experiments were run on.

    \b
    Examples:
      linkmix data fetch haberman
      linkmix data fetch mnist-123 coil20-20
    """  # noqa: D301
    with extras_needed(), bad_input():
        from linkmix.study.paper import data as room

        for name in names:
            click.echo(f"{name}: {room.fetch(name)}\n  cite {room.DATA[name].cite}")
