"""Text, vectors, sentences and pictures: many numbers become a few."""

import sys
import types

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from linkmix.columns import BadColumns, describe, learn

WORDS = {
    "wine": ["red", "white", "grape", "cellar", "bottle", "dry", "sweet", "oak", "vintage", "cork", "glass", "harvest"],
    "cars": ["engine", "wheel", "diesel", "petrol", "gear", "brake", "clutch", "road", "tyre", "fuel", "seat", "motor"],
}


def sentences(n=60, seed=0):
    rng = np.random.default_rng(seed)
    topics = ["wine", "cars"] * (n // 2)
    return [" ".join(rng.choice(WORDS[topic], 6)) + "." for topic in topics]


def test_free_text_becomes_components_of_its_words():
    texts = sentences()
    recipe = learn({"text": texts})
    assert describe(recipe) == [("text", "text, 10 components")]
    assert recipe.names[0] == "text (component 1)"
    assert set(recipe.owners) == {"text"}
    X = recipe({"text": texts})
    tfidf = TfidfVectorizer(sublinear_tf=True, strip_accents="unicode", min_df=2).fit_transform(texts)
    expected = TruncatedSVD(10, algorithm="arpack", random_state=0).fit_transform(tfidf)
    np.testing.assert_allclose(X, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-10)
    of_first = np.abs(X[:, 0]) > np.abs(X[:, 1])  # no word is in both topics, so each has a component of its own
    assert set(of_first[::2]) != set(of_first[1::2])
    assert len(set(of_first[::2])) == len(set(of_first[1::2])) == 1


def test_new_text_is_read_by_the_learned_words():
    texts = sentences()
    recipe = learn({"text": texts})
    X = recipe({"text": texts})
    np.testing.assert_allclose(recipe({"text": texts[5:9]}), X[5:9], atol=1e-12)
    new = recipe({"text": ["nothing known here", None, texts[0].upper()]})
    assert np.isnan(new[:2]).all()
    np.testing.assert_allclose(new[2], X[0], atol=1e-12)
    assert recipe({"text": [None, ""]}).shape == (2, 10)


def test_text_is_free_if_it_has_several_words_and_hardly_repeats():
    few = [f"{word} of the house" for word in ("wine", "beer", "tea")] * 20
    assert describe(learn({"text": few})) == [("text", "category, 3 levels")]
    single = [f"{word}{row}" for row, word in enumerate(["wine", "beer"] * 20)]
    assert learn({"text": single, "x": np.arange(40) ** 2}).left_out == {"text": "text, nearly all values differ"}
    assert describe(learn({"text": sentences()}))[0][1].startswith("text")
    different = [f"a{row} b{row} c{row}" for row in range(20)]
    recipe = learn({"text": different, "x": np.arange(20) ** 2})
    assert recipe.left_out == {"text": "text, no word of which tells rows apart"}
    alike = [f"the note of customer x{row}" for row in range(20)]
    recipe = learn({"text": alike, "x": np.arange(20) ** 2})
    assert recipe.left_out == {"text": "text, no word of which tells rows apart"}


def test_text_on_request():
    table = {"text": ["red wine", "red car", "white wine", "white car"] * 3}
    assert describe(learn(table)) == [("text", "category, 4 levels")]
    recipe = learn(table, {"text": "text"})
    assert describe(recipe) == [("text", "text, 3 components")]
    few = {"text": ["red", "white", "red", "white white", "white and red"]}
    X = learn(few, {"text": "text"})(few)  # two words, as they are
    np.testing.assert_allclose(X[:4], [[1, 0], [0, 1], [1, 0], [0, 1]])
    assert (X[4] > 0).all()
    with pytest.raises(BadColumns, match="holds numbers, and no texts"):
        recipe({"text": [1.5, 2.5]})


def embeddings(n=200, d=384, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 5)) @ rng.normal(size=(5, d)) + 0.1 * rng.normal(size=(n, d)) + 3


def test_long_vectors_become_principal_components():
    rows = embeddings()
    recipe = learn({"embedding": list(rows)})
    assert describe(recipe) == [("embedding", "vector of 384 numbers, 20 components")]
    X = recipe({"embedding": list(rows)})
    pca = PCA(20, svd_solver="full").fit(rows)
    expected = pca.transform(rows)
    signs = np.sign((expected * X).sum(axis=0))
    np.testing.assert_allclose(X, expected * signs, atol=1e-6)
    np.testing.assert_allclose(X.var(axis=0, ddof=1), pca.explained_variance_)


def test_short_vectors_stay_as_they_are():
    rows = np.column_stack([np.arange(6.0), np.ones(6), np.arange(6.0) ** 2])
    recipe = learn({"v": rows})
    assert recipe.names == ("v (1)", "v (3)")  # the second is the same in all rows
    assert describe(recipe) == [("v", "vector of 3 numbers")]
    np.testing.assert_array_equal(recipe({"v": rows}), rows[:, [0, 2]])
    assert learn({"v": np.ones((6, 3)), "x": rows[:, 2]}).left_out == {"v": "the same value in every row"}


def test_missing_vectors_and_numbers_in_them():
    rows = embeddings(60, 80)
    table = {"v": [*rows[:-1], None]}
    recipe = learn(table)
    X = recipe(table)
    assert np.isnan(X[-1]).all()
    assert not np.isnan(X[:-1]).any()
    gap = rows[0].copy()
    gap[3] = np.nan
    filled = rows[0].copy()
    filled[3] = rows[:-1, 3].mean()
    np.testing.assert_allclose(recipe({"v": [gap]}), recipe({"v": [filled]}), atol=1e-9)


def test_few_rows_of_long_vectors():
    rows = embeddings(5, 80)
    recipe = learn({"v": rows})
    assert recipe({"v": rows}).shape == (5, 4)


def test_vectors_of_another_length_are_refused():
    recipe = learn({"v": embeddings(30, 60)})
    with pytest.raises(BadColumns, match="holds vectors of 61 numbers, not 60"):
        recipe({"v": embeddings(30, 61)})
    with pytest.raises(BadColumns, match=r"'v': vectors differ in length: most have 2 numbers, row 1 has 3"):
        learn({"v": [[1, 2], [1, 2, 3], [3, 4]]})


def test_vectors_of_all_packages_are_the_same():
    rows = embeddings(40, 60)
    expected = learn({"v": rows})({"v": rows})
    for made in (pd.DataFrame({"v": list(rows)}), pa.table({"v": list(rows)})):
        np.testing.assert_array_equal(learn(made)(made), expected)
    written = {"v": [str(row.tolist()) for row in rows]}
    np.testing.assert_array_equal(learn(written)(written), expected)


class Model:
    """Stands in for a sentence-embedding model: lengths and letters of texts."""

    def __init__(self, name):
        assert name == "tiny-model"

    def encode(self, texts, show_progress_bar):
        return np.array([[len(text), text.count("a"), text.count("e")] for text in texts], dtype=np.float32)


def test_sentences_by_a_named_model(monkeypatch):
    module = types.ModuleType("sentence_transformers")
    module.SentenceTransformer = Model
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    table = {"text": ["a text", "another text", None, "the end"]}
    recipe = learn(table, {"text": "sentences:tiny-model"})
    assert describe(recipe) == [("text", "text by tiny-model, 3 components")]
    np.testing.assert_array_equal(recipe(table), [[6, 1, 1], [12, 1, 2], [np.nan] * 3, [7, 0, 2]])


def test_a_package_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(BadColumns, match="need the package sentence-transformers: pip install"):
        learn({"text": ["a", "b"]}, {"text": "sentences:another-model"})


@pytest.fixture
def pictures(tmp_path):
    from PIL import Image

    rng = np.random.default_rng(0)
    names = []
    for row in range(30):
        bright = np.zeros((40, 60, 3), dtype=np.uint8)
        bright[:, : 30 if row % 2 else 60] = rng.integers(150, 250)
        names.append(f"{row}.{'png' if row % 3 else 'jpg'}")
        Image.fromarray(bright).save(tmp_path / names[-1])
    return tmp_path, names


def test_pictures_become_components_of_grey_pixels(pictures):
    folder, names = pictures
    recipe = learn({"picture": names}, folder=str(folder))
    kind = recipe.columns[0].kind
    assert describe(recipe) == [("picture", f"picture, {kind.reduction.width} components")]
    X = recipe({"picture": [*names, None]}, folder=str(folder))
    assert np.isnan(X[-1]).all()
    halves = X[:-1, 0] > 0
    assert set(halves[::2]) != set(halves[1::2])
    assert len(set(halves[::2])) == len(set(halves[1::2])) == 1
    whole = {"picture": [str(folder / name) for name in names]}  # paths that do not need the folder
    np.testing.assert_array_equal(recipe(whole), X[:-1])


def test_pictures_that_cannot_be_read_are_named(pictures):
    folder, names = pictures
    (folder / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\nbroken")
    with pytest.raises(BadColumns, match=r"2 of 32 pictures cannot be read") as error:
        learn({"picture": [*names, "gone.png", "broken.png"]}, folder=str(folder))
    assert error.value.problems[0].examples == (("gone.png", 30), ("broken.png", 31))


def test_names_of_pictures_that_are_not_there_are_left_out(pictures, tmp_path):
    _, names = pictures
    table = {"picture": names, "x": np.arange(30) ** 2}
    assert learn(table, folder=str(tmp_path / "elsewhere")).left_out == {"picture": "pictures, none of which is there"}
    with pytest.raises(BadColumns, match="30 of 30 pictures cannot be read"):
        learn(table, {"picture": "picture"}, folder=str(tmp_path / "elsewhere"))
