"""
Links that may be wrong
=======================

Say how far to believe your links, and get a list of those worth a second look.

One hundred random pairs of wines were answered, and twenty of the answers are wrong.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

from linkmix import AutoLinkMixture, Links, purity

X, truth = load_wine(return_X_y=True)
right = Links.from_labels(truth, 100, random_state=1)
pairs = np.concatenate([right.must, right.cannot])
same = np.arange(100) < right.n_must
flipped = np.random.default_rng(0).permutation(100) < 20
said = same ^ flipped

# %%
# Certain links force their answers, right or wrong. With a confidence of 0.8 each link is evidence that may be wrong.

certain = AutoLinkMixture(n_classes=3, random_state=0).fit(X, links=Links(must=pairs[said], cannot=pairs[~said]))
print(f"taken at their word: purity {purity(truth, certain.predict(X)):.2f}")

links = Links(must=pairs[said], cannot=pairs[~said], must_confidence=0.8, cannot_confidence=0.8)
model = AutoLinkMixture(n_classes=3, random_state=0).fit(X, links=links)
print(f"with a confidence of 0.8: purity {purity(truth, model.predict(X)):.2f}")

# %%
# ``links_to_review_`` lists every link with the probability that it is wrong, the most doubtful first.

review = model.links_to_review_
wrong = {tuple(sorted(pair)) for pair in pairs[flipped].tolist()}
is_wrong = np.array([tuple(sorted((int(link["a"]), int(link["b"])))) in wrong for link in review])
for link in review[:5]:
    print(f"{link['kind']}-link {link['a']}, {link['b']}: wrong with probability {link['probability_wrong']:.2f}")
print(f"{is_wrong[:20].sum()} of the first 20 really are wrong")

# %%

figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
rank = np.arange(1, len(review) + 1)
for kind, colour, label in ((True, "#b3261e", "the answer was wrong"), (False, "#2b5fa8", "the answer was right")):
    ax.bar(rank[is_wrong == kind], review["probability_wrong"][is_wrong == kind], color=colour, label=label, width=0.9)
ax.set(xlabel="links, the most doubtful first", ylabel="probability that the link is wrong")
ax.legend(frameon=False)
plt.show()
