"""Files as people have them, and what linkmix fit says about each of them."""
# ruff: noqa: E501

import gzip
import io

import numpy as np
import pandas as pd

N = 36
RANDOM = np.random.default_rng(0)
A = (RANDOM.normal(size=N) + 5 * (np.arange(N) % 2)).round(2)
B = (RANDOM.normal(size=N) - 5 * (np.arange(N) % 2)).round(2)
PLANS = np.array(["free", "gold", "silver"])[RANDOM.integers(3, size=N)]
NAMES = [
    f"{first}{last}" for first in ("An", "Be", "Ca", "Di", "Ed", "Fa") for last in ("na", "rt", "lo", "do", "mi", "xu")
]
DAYS = pd.Timestamp("2021-01-05") + pd.to_timedelta(RANDOM.integers(700, size=N), unit="D")


def frame(**more):
    return pd.DataFrame({"a": A, "b": B, **more})


def text(separator=",", header=True, **more):
    return frame(**more).to_csv(index=False, sep=separator, header=header)


def spoiled(column, **values):
    """Numbers as text, with other values in some rows."""
    found = [f"{value}" for value in column]
    for row, value in values.items():
        found[int(row[1:])] = value
    return found


def bytes_of(write):
    file = io.BytesIO()
    write(file)
    return file.getvalue()


ENGLISH = [f"{1000 + 700 * row + 0.5:,.2f}" for row in range(N)]
GERMAN = [value.translate(str.maketrans(",.", ".,")) for value in ENGLISH]
VECTORS = [(RANDOM.normal(size=4) + row % 2).tolist() for row in range(N)]
WORDS = [
    ("the battery is dead", "screen is broken again", "great screen and battery")[row % 3] + f" {NAMES[row]}"
    for row in range(N)
]
PLAIN = "Used 2 columns: a, b.\n"

# Name, name of the file, content or what makes it, options of fit, and what the command says. Without --method the fit
# is that of --method auto, which uses columns of every kind.
QUICK = ["--method", "linkmix"]
MESSY = [
    ("plain numbers", "p.csv", text(), QUICK, [PLAIN]),
    ("semicolons and decimal commas", "p.csv", frame().to_csv(index=False, sep=";", decimal=","), QUICK, ["Used 2 columns: a (number), b (number).", "Note: 'a': read with a decimal comma"]),
    ("tabs in a csv", "p.csv", text("\t"), QUICK, [PLAIN]),
    ("compressed", "p.csv.gz", gzip.compress(text().encode()), QUICK, [PLAIN]),
    ("compressed tabs", "p.tsv.gz", gzip.compress(text("\t").encode()), QUICK, [PLAIN]),
    ("compressed without saying so", "p.csv", gzip.compress(text().encode()), QUICK, [PLAIN]),
    ("half of a compressed file", "p.csv.gz", gzip.compress(text().encode())[:-20], QUICK, ["Error: p.csv.gz: is compressed with gzip and damaged"]),
    ("feather", "p.feather", bytes_of(frame(plan=PLANS).to_feather), [], ["plan (category, 3 levels)"]),
    ("spreadsheet", "p.xlsx", lambda: bytes_of(lambda file: frame(plan=PLANS, day=DAYS).to_excel(file, index=False)), [], ["Used 4 columns: a (number), b (number), plan (category, 3 levels), day (date)"]),
    ("a sheet that is not there", "p.xlsx", lambda: bytes_of(lambda file: frame().to_excel(file, index=False)), [*QUICK, "--sheet", "Q3"], ["Error: p.xlsx: there is no sheet 'Q3': choose from 'Sheet1'"]),
    ("an old spreadsheet by its name", "p.xlsx", b"\xd0\xcf\x11\xe0 old", QUICK, ["Error: p.xlsx: is not a spreadsheet in the format .xlsx"]),
    ("no header", "p.csv", text(header=False), QUICK, ["Used 2 columns: column1, column2.\n", "Note: the first line of p.csv holds only numbers", "36 points"]),
    ("no header, with a word that comes again", "p.csv", text(header=False, plan=PLANS), [], ["36 points, 3 columns", "column3 (category, 3 levels)", "Note: the first line of p.csv is like the lines below it"]),
    ("no header, with words of their own", "p.csv", text(header=False, name=NAMES), QUICK, ["36 points, 2 columns", "Left out: column3 (text, nearly all values differ)"]),
    ("years as names", "p.csv", text().replace("a,b", "2001,2002,2003") + "", QUICK, ["Error: p.csv, line 2: 2 values are on a line of a file with 3 columns", "and 26 more"]),
    ("two columns of one name", "p.csv", text(c=B[::-1]).replace("a,b,c", "a,b,b"), QUICK, ["Used 3 columns: a, b, b_2.\n", "Note: 2 columns of p.csv are called 'b': they are read as 'b', 'b_2'"]),
    ("an index of pandas", "p.csv", frame().to_csv(), QUICK, [PLAIN, "Left out: column1 (numbers the rows)", "Note: 1 column has no name in p.csv: it is called 'column1'"]),
    ("a numeric id", "p.csv", text(customer_id=np.arange(N) + 5000), QUICK, [PLAIN, "Left out: customer_id (numbers the rows)."]),
    ("a numeric id that is wanted", "p.csv", text(customer_id=np.arange(N) + 5000), [*QUICK, "--as", "customer_id=number"], ["Used 3 columns: a, b, customer_id.\n", "Note: column 'customer_id' numbers the rows"]),
    ("a constant", "p.csv", text(batch=7), QUICK, [PLAIN, "Left out: batch (the same value in every row)."]),
    ("no values", "p.csv", text(gap=np.nan), QUICK, [PLAIN, "Left out: gap (no values)."]),
    ("a column twice", "p.csv", text(c=A), QUICK, ["Used 3 columns: a, b, c.\n", "Note: the same values in every row, which count twice: 'c' as 'a'"]),
    ("the answer", "p.csv", text(target=PLANS), [], ["target (category, 3 levels)", "Note: column 'target' may be the answer"]),
    ("thousands", "p.csv", text(spend=ENGLISH), QUICK, ["spend (number)", "Note: 'spend': read with a comma between thousands: '1,000.50' is 1000.5"]),
    ("thousands of Germany", "p.csv", text(spend=GERMAN), QUICK, ["spend (number)", "a decimal comma and points between thousands"]),
    ("a unit", "p.csv", text(weight=[f"{50 + row / 7:.1f} kg" for row in range(N)]), QUICK, ["weight (number, in kg)"]),
    ("a currency", "p.csv", text(cost=[f"€{3 + row % 9}" for row in range(N)]), QUICK, ["(number, in €)"]),
    ("two units", "p.csv", text(weight=[f"{50 + row} {'lb' if row % 3 else 'kg'}" for row in range(N)]), QUICK, ["Error: p.csv, line 2, column 'weight': '50 kg' is not a number in lb, as most of its column are: convert it"]),
    ("truth values", "p.csv", text(member=[row % 3 == 0 for row in range(N)]), [], ["member (true or false)"]),
    ("yes and no", "p.csv", text(member=["yes" if row % 3 else "No" for row in range(N)]), [], ["member (true or false)"]),
    ("categories", "p.csv", text(plan=PLANS), [], ["Used 3 columns: a (number), b (number), plan (category, 3 levels).\n"]),
    ("categories for another method", "p.csv", text(plan=PLANS), QUICK, [PLAIN, "plan (a category, and the method knows only numbers)", "Note: --method linkmix knows only numbers, so it does without plan"]),
    ("codes as numbers", "p.csv", text(zone=RANDOM.integers(1, 5, N) * 100), ["--as", "zone=category"], ["zone (category, 4 levels)"]),
    ("an order", "p.csv", text(size=np.array(["S", "M", "L"])[np.arange(N) % 3]), [*QUICK, "--as", "size=ordered:S<M<L"], ["size (ordered, 3 levels)"]),
    ("dates", "p.csv", text(day=DAYS.strftime("%d.%m.%Y")), QUICK, ["day (date)", "Note: 'day': read as day.month.year"]),
    ("names of people", "p.csv", text(name=NAMES), QUICK, [PLAIN, "Left out: name (text, nearly all values differ)."]),
    ("free text", "p.csv", text(note=WORDS), QUICK, ["note (text, "]),
    ("a list of numbers", "p.parquet", bytes_of(frame(embedding=VECTORS).to_parquet), QUICK, ["embedding (vector of 4 numbers)"]),
    ("a question mark", "p.csv", text(c=spoiled(A + B, r3="?", r7="n/d")), QUICK, ["Error: p.csv, line 5, column 'c': '?' is not a number", "p.csv, line 9, column 'c': 'n/d' is not a number"]),
    ("a question mark that is named", "p.csv", text(c=spoiled(A + 2 * B, r3="?", r7="n/d", r9="-999")), ["--na", "?,n/d,-999"], ["Used 3 columns: a, b, c.\n", "Note: 3 values are missing"]),
    ("many mistakes", "p.csv", text(c=spoiled(A, r3="tall", r7="inf")) + "1,2\n1,2,3,4\n", QUICK, ["Error: p.csv, line 5, column 'c': 'tall' is not a number", "p.csv, line 9, column 'c': inf is not a finite", "p.csv, line 38: 2 values are on a line", "p.csv, line 39: 4 values are on a line"]),
    ("more mistakes than are told", "p.csv", text() + "1\n" * 25, QUICK, ["line 38: 1 value is on a line", "line 47: 1 value", "and 15 more"]),
    ("a quote that is never closed", "p.csv", text(size=['"5 disk' if row == 4 else "3 disk" for row in range(N)]).replace('"""5 disk"', '"5 disk'), QUICK, ["Error: p.csv, line 6: a quote is opened and never closed"]),
    ("two quotes that are never closed", "p.csv", "a,b,n\n1,2,\"x\n3,4,y\n5,6,\"z\n7,8,w\n", QUICK, ["Error: p.csv, line 2: "]),
    ("lines within values", "p.csv", text(note=[f"first\nsecond {name}" for name in NAMES]), QUICK, ["36 points"]),
    ("repeated names within the file", "p.csv", text() + text(), QUICK, ["Error: p.csv, line 38, column 'a': 'a' is not a number"]),
    ("a byte order mark", "p.csv", b"\xef\xbb\xbf" + text().encode(), QUICK, [PLAIN]),
    ("another encoding", "p.csv", text(name=["Müller", *NAMES[1:]]).encode("latin-1"), QUICK, ["Error: p.csv, line 2: byte 0xfc is not UTF-8"]),
    ("an id twice and one without", "p.csv", text(id=["x", "x", "", *range(N - 3)]), QUICK, ["Error: p.csv, line 3, column 'id': id 'x' is also on line 2", "p.csv, line 4, column 'id': the id is empty"]),
    ("a wrong name", "p.csv", text(), [*QUICK, "--columns", "a,c", "--leave-out", "d"], ["Error: p.csv: there is no column 'c': choose from 'a', 'b'", "p.csv: there is no column 'd'"]),
]  # fmt: skip
