"""The command label."""

from pathlib import Path

import click

from linkmix.app.cli.failures import BadInput, bad_input, extras_needed
from linkmix.app.cli.options import (
    FILE,
    Reading,
    out_option,
    points_argument,
    raw_cells_option,
    reading_options,
    seed_option,
    wrong_option,
)
from linkmix.app.cli.terminal import say

DEFAULT_PORT = 8765


@click.command()
@points_argument
@click.option(
    "--classes",
    type=click.IntRange(1, 1000),
    help="Number of classes. Without it, classes appear as answers show them.",
)
@click.option(
    "--links",
    type=FILE,
    help="File of links: it is read if it exists, and answers are added to it. By default the name of POINTS with "
    "-links.csv at its end.",
)
@reading_options()
@wrong_option
@click.option(
    "--noise",
    is_flag=True,
    help="Allow points that belong to no class: say so on the page, and the model finds others.",
)
@click.option(
    "--audit",
    type=click.IntRange(1, 1000),
    default=20,
    show_default=True,
    help="Number of random questions that tell how good the result is, once you ask for them on the page.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen at; 0.0.0.0 for all addresses of this machine, so that others can open the page.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_PORT,
    show_default=True,
    help="Port to listen at; 0 for any that is free.",
)
@click.option(
    "--no-token",
    is_flag=True,
    help="Show the page without a token to everybody who has an account on this machine.",
)
@click.option(
    "--certificate",
    type=FILE,
    help="Certificate in PEM format, to encrypt the connection.",
)
@click.option("--key", type=FILE, help="Private key of the certificate, if it is in a file of its own.")
@click.option("--no-browser", is_flag=True, help="Do not open a browser, only print the address.")
@raw_cells_option
@seed_option
@out_option("linkmix-out", "labels, model, report and links")
def label(
    points: Path,
    classes: int | None,
    links: Path | None,
    reading: Reading,
    wrong: float,
    noise: bool,
    audit: int,
    host: str,
    port: int,
    no_token: bool,
    certificate: Path | None,
    key: Path | None,
    no_browser: bool,
    raw_cells: bool,
    seed: int,
    folder: Path,
) -> None:
    """Answer questions about points in a browser.

    Shows points, chosen so that the answer helps most, and asks which of them belong together. Every answer is on the
    disk before the page confirms it, in a journal beside the file of links: whatever happens, the same command
    continues where it was. Finish on the page writes labels, model, report and links, as linkmix fit does, from the
    model that the page shows. Ctrl-C ends.

    \b
    Examples:
      linkmix label points.csv
      linkmix label points.csv --classes 3
      linkmix label cells.parquet --classes 4 --id cell --links links.csv
      linkmix label points.csv --classes 3 --wrong 0.1
      linkmix label points.csv --classes 3 --port 0 --no-browser
    """  # noqa: D301
    with extras_needed(), bad_input():
        from linkmix.app.cli.notes import cautions, tell
        from linkmix.app.label import server
        from linkmix.app.label.session import Session
        from linkmix.app.report import columns_in_words
        from linkmix.app.results import Origin, typed
        from linkmix.tables import read_points
        from linkmix.tables.files import stem_of

        if no_token and not server.is_loopback(host):
            raise BadInput(f"--no-token would open the page to everybody who can reach {host}: drop one of the two")
        if key is not None and certificate is None:
            raise BadInput("--key is of no use without a certificate: give --certificate as well")
        tls = None if certificate is None else server.tls_context(certificate, key)
        say(f"Reading {points} ...")
        table = read_points(points, **reading.arguments)
        for sentence in columns_in_words(table):
            click.echo(sentence, err=True)
        tell(cautions(table, chosen=reading.columns is not None))
        if links is None and table.files:
            raise BadInput("--links is missing: say where the answers about a table of several files go")
        links = links or points.with_name(f"{stem_of(points)}-links.csv")
        listener = server.listen(host, port)
        try:
            session = Session(
                table,
                classes,
                links,
                points.parent,
                out=folder,
                origin=Origin(points, links, reading.as_typed_with_id, reading.missing, typed("label"), raw_cells),
                wrong=wrong,
                noise=noise,
                n_audit=audit,
                seed=seed,
            )
        except BaseException:
            listener.close()
            raise
        tell(session.files.notes)
        token = None if no_token else server.new_token()
        ticket = None if no_token else server.new_token()
        address = server.address(listener, host, token, encrypted=tls is not None)

        def ready() -> None:
            click.echo(f"{points.name} is at {address}\nAnswers go to {links}. Ctrl-C ends.")
            if not no_browser:
                # Other accounts of the machine can read the arguments of programs: a ticket is good once.
                click.launch(server.address(listener, host, ticket, ticket=True, encrypted=tls is not None))

        server.serve(session, points.name, listener, token=token, ticket=ticket, tls=tls, ready=ready)
    click.echo()
    for sentence in session.view.farewell():
        click.echo(sentence)
