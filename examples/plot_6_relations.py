"""
Relations between sets of points
================================

Say more than "same" and "different": "exactly two of these three belong together", or "all of these differ".

The points are the digits of the first example. Somebody looks at triples of images and says how many different digits
there are, without saying which image is which digit.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from linkmix import LinkMixture, Links, SetRelation, links_satisfied, plots, purity

images, digits = load_digits(return_X_y=True)
chosen = np.isin(digits, [1, 2, 5])
X, truth = PCA(2, svd_solver="full").fit_transform(images[chosen]), digits[chosen]

# %%
# Twenty triples, and how many digits each of them has.

triples = np.random.default_rng(0).permutation(len(X))[:60].reshape(20, 3)
n_digits = np.array([len(set(truth[triple])) for triple in triples])
relations = [SetRelation.classes(triples[n_digits == number], exactly=number) for number in set(n_digits.tolist())]
links = Links(relations=relations)
print(relations)

# %%

without = LinkMixture(3, coupling="graph", n_init=10, random_state=0).fit(X)
model = LinkMixture(3, coupling="graph", n_init=10, random_state=0).fit(X, links=links)
print(f"without relations: purity {purity(truth, without.predict(X)):.2f}")
print(f"with 20 triples: purity {purity(truth, model.predict(X)):.2f}")
print(f"relations satisfied by labels_: {links_satisfied(model.labels_, links):.0%}")

# %%

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5), sharex=True, sharey=True, layout="constrained")
names = ["first component", "second component"]
plots.draw_mixture(without, X, ax=left, columns=names).set_title("without relations")
plots.draw_mixture(model, X, ax=right, columns=names).set_title("with 20 triples")
plt.show()
