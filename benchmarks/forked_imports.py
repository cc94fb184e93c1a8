"""What commands import, imported once; `benchmarks.forked` forks from here."""

import matplotlib
import openpyxl
import pandas
import pyarrow.compute
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet

import linkmix.app.label.session
import linkmix.app.models
import linkmix.app.report
import linkmix.app.results
import linkmix.plots.figures
import linkmix.search
import linkmix.study.comparison
import linkmix.study.paper
import linkmix.study.paper.report
import linkmix.tables

__all__ = ["linkmix", "matplotlib", "openpyxl", "pandas", "pyarrow"]
