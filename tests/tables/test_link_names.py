"""Files and tables of links whose columns and kinds have other names than ours."""

import pandas as pd
import pytest

from linkmix import Links
from linkmix.basics.errors import BadFile
from linkmix.tables import read_links

IDS = ["p", "q", "r", "s"]
MUST, CANNOT = [[0, 1]], [[2, 3]]


@pytest.mark.parametrize(
    ("names", "kinds"),
    [
        ("a,b,kind", ("must", "cannot")),
        ("id1,id2,same", ("yes", "no")),
        ("Left,Right,Match", ("TRUE", "FALSE")),
        ("unique_id_l,unique_id_r,is_match", ("1", "0")),
        ("source,target,label", ("same", "different")),
        ("from,to,type", ("match", "distinct")),
        ("id_a,id_b,link", ("1", "-1")),
    ],
)
def test_other_names_are_read(names, kinds, tmp_path):
    file = tmp_path / "links.csv"
    file.write_text(f"{names}\np,q,{kinds[0]}\nr,s,{kinds[1]}\n")
    table = pd.read_csv(file, dtype=str)
    for links in (read_links(file, IDS), Links.from_table(table, ids=IDS)):
        assert (links.must.tolist(), links.cannot.tolist()) == (MUST, CANNOT)


def test_truth_values_are_kinds():
    links = Links.from_table({"left": [0, 2], "right": [1, 3], "same": [True, False]})
    assert (links.must.tolist(), links.cannot.tolist()) == (MUST, CANNOT)


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("id1,id2,left,right,kind", "'id1' and 'left' may both be the first id: name the ids 'a' and 'b'"),
        ("a,b,same,match", "'same' and 'match' may both be the kind of link: name it 'kind'"),
        ("a,id2,kind", "there is no column 'b' (columns: 'a', 'id2', 'kind')"),
        ("a,b,colour", "there is no column 'kind' (columns: 'a', 'b', 'colour')"),
    ],
)
def test_what_may_mean_two_things_is_refused(header, said, tmp_path):
    file = tmp_path / "links.csv"
    file.write_text(f"{header}\n" + ",".join("p" for _ in header.split(",")) + "\n")
    with pytest.raises(BadFile) as refused:
        read_links(file, IDS)
    assert f"links.csv, line 1: {said}" in str(refused.value)
    with pytest.raises(ValueError, match="table: ") as told:
        Links.from_table({name: ["p"] for name in header.split(",")}, ids=IDS)
    assert said in str(told.value)


def test_our_names_come_first(tmp_path):
    file = tmp_path / "links.csv"
    file.write_text("a,b,kind,left,right,label\np,q,must,r,s,no\n")
    links = read_links(file, IDS)
    assert (links.must.tolist(), links.n_cannot) == (MUST, 0)


def test_an_error_names_the_column_of_the_file(tmp_path):
    file = tmp_path / "links.csv"
    file.write_text("id1,id2,same\np,q,maybe\n")
    with pytest.raises(BadFile, match=r"links\.csv, line 2, column 'same': 'maybe' is not a kind of link"):
        read_links(file, IDS)
