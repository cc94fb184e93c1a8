"""Cell types that you mean: links between cells of an AnnData object.

The cells are the 700 blood cells that come with scanpy. An estimator takes the principal components in ``obsm``, and
the labels go to ``obs``, where scanpy's plots find them. In practice a person who knows the markers says of some pairs
of cells whether they are of one type; here the published types give the answers.

Needs ``pip install scanpy``.
"""

import warnings

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

from linkmix import AutoLinkMixture, Links, purity


def main() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of anndata, about the age of the file
        import scanpy

        cells = scanpy.datasets.pbmc68k_reduced()
    truth = cells.obs["bulk_labels"].to_numpy().astype(str)
    X = np.asarray(cells.obsm["X_pca"][:, :20], dtype=float)
    print(f"{len(X)} cells of {len(set(truth))} published types")
    print(f"Louvain, as in the file: adjusted Rand index {adjusted_rand_score(truth, cells.obs['louvain']):.2f}")
    for n_links in (0, 25, 100, 200):
        found = []
        for draw in range(3):
            links = Links.from_labels(truth, n_links, random_state=draw)
            model = AutoLinkMixture(10, random_state=0).fit(X, links=links)
            found.append(adjusted_rand_score(truth, model.labels_))
        each = "  ".join(f"{one:.2f}" for one in found)
        print(f"{n_links:3d} links: adjusted Rand index of three draws {each}")

    cells.obs["linkmix"] = pd.Categorical(model.labels_.astype(str))
    cells.obs["linkmix_confidence"] = model.probabilities_
    print(f"200 links, the last draw: purity {purity(truth, model.labels_):.2f}. {model.quality_}")
    print(cells.obs[["bulk_labels", "linkmix", "linkmix_confidence"]].head(3).to_string())


if __name__ == "__main__":
    main()
