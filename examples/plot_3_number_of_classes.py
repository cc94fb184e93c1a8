"""
Choosing the number of classes
==============================

Leave the number of classes open with ``n_classes="auto"``, and look at how close the decision was.

Without links the number is a guess. Links that no small number of classes can satisfy rule it out, and the others say
which split of the points you mean.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

from linkmix import AutoLinkMixture, Links, plots, purity

X, truth = load_wine(return_X_y=True)

# %%

for n_links in (0, 10, 25):
    links = Links.from_labels(truth, n_links, random_state=0)
    model = AutoLinkMixture(n_classes="auto", random_state=0).fit(X, links=links)
    print(f"{n_links:3d} links: {model.n_classes_} classes, purity {purity(truth, model.predict(X)):.2f}")

# %%
# ``choice_`` is the table of the numbers that were tried. Scores that differ by a few nats are nearly equal: look at
# both numbers, or give ten more links.

print(model.choice_.dtype.names)
figure = plots.choice_of_classes(model.choice_, model.n_classes_)
figure
