"""The command reproduce."""

import os
from pathlib import Path

import click

from linkmix.app.cli.failures import bad_input, extras_needed
from linkmix.app.cli.options import jobs_option, out_option


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--trials", type=click.IntRange(1), help="Number of trials. Default: 100, or 10 for fewest-links.")
@jobs_option
@out_option("results", "the runs, the figures and the page")
def reproduce(names: tuple[str, ...], trials: int | None, n_jobs: int | None, folder: Path) -> None:
    """Run the experiments of the paper.

    Draws its figures and tests its claims.

    A NAME is toy, two-moons, haberman, thyroid, mnist-123, mnist-4567, coil20 or clusters-per-class, which together are
    the paper; why-ahead, a hypothesis about it; these are the default. Or fewest-links, which runs every method on
    eleven data sets.

    Writes index.html with all figures (PNG, SVG and PDF), tables.md, and runs.parquet with a row for each run.

    Every run is saved as soon as it ends. If the command is stopped, the same command continues where it was.

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
