"""
First steps: what twenty links change
=====================================

Cluster points without links, then with twenty of them, and see which classes each fit finds.

The points are scikit-learn's handwritten digits 1, 2 and 5, on their first two principal components. People write a 1
in two ways, and the most likely mixture of three Gaussians makes two classes of them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from linkmix import LinkMixture, Links, links_satisfied, plots, purity

images, digits = load_digits(return_X_y=True)
chosen = np.isin(digits, [1, 2, 5])
X, truth = PCA(2, svd_solver="full").fit_transform(images[chosen]), digits[chosen]

# %%
# Links say of two rows that they belong to the same class (must) or to different ones (cannot). Here the true digits
# answer; your own links are pairs of row numbers: ``Links(must=[(4, 7)], cannot=[(4, 9)])``.

links = Links.from_labels(truth, 20, random_state=0)
print(links)

# %%
# Both fits have the same ten starts and keep the most likely result.

without = LinkMixture(n_classes=3, n_init=10, random_state=0).fit(X)
model = LinkMixture(n_classes=3, n_init=10, random_state=0).fit(X, links=links)
print(f"without links: purity {purity(truth, without.predict(X)):.2f}")
print(f"with 20 links: purity {purity(truth, model.predict(X)):.2f}")
print(f"links satisfied by labels_: {links_satisfied(model.labels_, links):.0%}")

# %%
# Solid lines are must-links, dashed ones cannot-links.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5), sharex=True, sharey=True, layout="constrained")
names = ["first component", "second component"]
plots.draw_mixture(without, X, ax=left, columns=names).set_title("without links")
plots.draw_mixture(model, X, ax=right, links=links, columns=names).set_title("with 20 links")
plt.show()

# %%
# ``predict`` and ``predict_proba`` look at a point alone, so they work for new points.

print(model.predict_proba([[30.0, 20.0]]).round(3))
