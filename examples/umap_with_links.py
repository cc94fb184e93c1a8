"""Links after UMAP: the mixture sees the coordinates that UMAP finds.

UMAP makes round groups of what a mixture could not describe, at the price that distances between groups mean little.
Use five dimensions or so rather than the two of a picture. New points go through ``transform`` first.

Needs ``pip install umap-learn``.
"""

import warnings

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score

from linkmix import AutoLinkMixture, Links, purity


def main() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of umap, about threads
        from umap import UMAP

        images, digits = load_digits(return_X_y=True)
        X, truth = images[:1000], digits[:1000]
        reduce = UMAP(n_components=5, random_state=0).fit(X)
        new = reduce.transform(images[1000:1200])
    for name, points in (("pixels", X), ("UMAP", np.asarray(reduce.embedding_, dtype=float))):
        for n_links in (0, 50, 200):
            links = Links.from_labels(truth, n_links, random_state=0)
            model = AutoLinkMixture(10, random_state=0).fit(points, links=links)
            alike = adjusted_rand_score(truth, model.predict(points))
            print(f"{name:6s} {n_links:3d} links: adjusted Rand index {alike:.2f}")
    print(f"new images, through UMAP: purity {purity(digits[1000:1200], model.predict(new)):.2f}")


if __name__ == "__main__":
    main()
