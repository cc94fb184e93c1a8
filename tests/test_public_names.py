"""The names that users rely on, and that `import linkmix` finds them without loading what is not used."""

import inspect
import subprocess
import sys

import numpy as np
import pytest

import linkmix

ROOMS = {
    "couplings": ["Graph", "MeanField", "Pairwise", "Projection", "Uncoupled", "solve_class_weights"],
    "densities": ["Bernoulli", "Categorical", "Gaussian", "Poisson", "Product", "StudentT"],
    "distributed": ["connect", "fit", "predict", "predict_proba", "read"],
    "plots": ["draw_clusters", "draw_links", "draw_points"],
    "queries": ["STRATEGIES", "Answer", "Questioner"],
    "rivals": ["COPKMeans", "CSC", "E2CP", "EMPC", "GMM", "GMMEC", "GMPR", "MPCKMeans", "PCKMeans", "PPC", "SSKK"],
    "tables": ["read_links", "read_points", "write_labels", "write_links"],
}


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_is_found_after_import_linkmix(room):
    script = f"import linkmix; [getattr(linkmix.{room}, name) for name in {ROOMS[room]!r}]"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_every_public_name_is_there():
    assert set(linkmix.__all__) == set(dir(linkmix))
    for name in linkmix.__all__:
        getattr(linkmix, name)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        linkmix.nothing  # noqa: B018


def test_import_linkmix_alone_loads_nothing_heavy():
    script = "import sys, linkmix; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "scipy", "sklearn", "pandas", "matplotlib"} & set(loaded)


def test_link_mixture_loads_nothing_of_scikit_learn_but_its_base():
    script = "import sys; from linkmix import LinkMixture; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    heavy = ("cluster", "decomposition", "linear_model", "metrics", "mixture", "neighbors", "preprocessing")
    assert not {f"sklearn.{name}" for name in heavy} & set(loaded)
    assert not {"matplotlib", "plotly", "linkmix.search", "linkmix.tables"} & set(loaded)


@pytest.mark.parametrize(("name", "most"), [("LinkMixture", 140), ("AutoLinkMixture", 180)])
def test_importing_an_estimator_loads_few_modules(name, most):
    """The time of an import grows with what it loads, and can be counted where clocks cannot be trusted."""
    script = (
        "import sys, numpy, scipy, sklearn.base; before = len(sys.modules); "
        f"from linkmix import {name}; print(len(sys.modules) - before)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert 50 < int(done.stdout) <= most


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (linkmix.LinkMixture.fit, ["X", "y", "links", "ids", "must_link", "cannot_link", "rows", "sample_weight"]),
        (linkmix.AutoLinkMixture.fit, ["X", "y", "links", "ids", "must_link", "cannot_link", "rows", "sample_weight"]),
        (linkmix.calibrate, ["model", "X", "y", "links", "ids", "sample_weight"]),
        (linkmix.purity, ["y_true", "labels"]),
        (linkmix.links_satisfied, ["labels", "links"]),
        (linkmix.distributed.fit, ["model", "X", "y", "links", "ids", "sample_weight", "client", "persist", "verbose"]),
    ],
)
def test_arguments_keep_their_names(function, names):
    assert [name for name in inspect.signature(function).parameters if name != "self"] == names


@pytest.mark.parametrize("name", [name for name in ROOMS["rivals"] if name != "GMM"])
def test_every_rival_has_the_same_interface(name):
    rival = getattr(linkmix.rivals, name)
    settings = inspect.signature(rival).parameters
    assert next(iter(settings)) == "n_classes"
    assert "random_state" in settings
    X = np.concatenate([np.random.default_rng(0).normal(size=(20, 2)) + 9 * k for k in range(2)])
    links = linkmix.Links(cannot=[(0, 30)]) if name == "EMPC" else linkmix.Links(must=[(0, 1)], cannot=[(0, 30)])
    model = rival(n_classes=2, random_state=0).fit(X, links=links)
    assert model.labels_[0] != model.labels_[30]
    assert set(model.labels_) == {0, 1}
