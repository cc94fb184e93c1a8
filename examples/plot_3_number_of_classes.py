"""
Choosing the number of classes
==============================

Leave the number of classes open with ``n_classes="auto"``, and look at how close the decision was.

Without links the number is a guess. Links that no small number of classes can satisfy rule it out, and the others say
which split of the points you mean.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

from linkmix import AutoLinkMixture, Links, purity

X, truth = load_wine(return_X_y=True)

# %%

for n_links in (0, 10, 25):
    links = Links.from_labels(truth, n_links, random_state=0)
    model = AutoLinkMixture(n_classes="auto", random_state=0).fit(X, links=links)
    print(f"{n_links:3d} links: {model.n_classes_} classes, purity {purity(truth, model.predict(X)):.2f}")

# %%
# ``choice_`` is the table of the numbers that were tried. Scores that differ by a few nats are nearly equal: look at
# both numbers, or give ten more links.

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
tried = model.choice_[model.choice_["n_classes"].argsort()]
ax.plot(tried["n_classes"], tried["score"], "o-", color="#2b5fa8")
ax.axvline(model.n_classes_, color="#8a5a00", linestyle="--", label=f"chosen: {model.n_classes_}")
ax.set(xlabel="number of classes", ylabel="score, nats", title="with 25 links")
ax.legend(frameon=False)
plt.show()
