"""
A loop of questions
===================

Let the model choose the pairs to ask about: the same number of answers helps more than answers about random pairs.

A person would answer on the page of ``linkmix label`` or in a loop like this one. Here the true classes answer.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score

from linkmix import AutoLinkMixture, Links, purity
from linkmix.queries import Questioner

images, digits = load_digits(n_class=6, return_X_y=True)
X, truth = PCA(8, random_state=0).fit_transform(images)[:400], digits[:400]

# %%
# ``next`` gives the pair whose answer is expected to help most, and ``refit`` fits again with all answers.

asker = Questioner(X, n_classes=6, random_state=0)
asked = {0: adjusted_rand_score(truth, asker.labels)}
for number in range(1, 41):
    a, b = asker.next()[0]
    asker.answer(a, b, "same" if truth[a] == truth[b] else "different")
    if number % 10 == 0:
        asker.refit()
        asked[number] = adjusted_rand_score(truth, asker.labels)
print(f"after 40 questions: purity {purity(truth, asker.labels):.2f}")
print(asker.stop_meaning)

# %%
# For comparison: answers about random pairs, one draw.

drawn = {}
for number in asked:
    links = Links.from_labels(truth, number, random_state=0)
    found = AutoLinkMixture(6, calibrate=False, random_state=0).fit(X, links=links)
    drawn[number] = adjusted_rand_score(truth, found.labels_)

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(list(asked), list(asked.values()), "o-", color="#2b5fa8", label="questions chosen by the model")
ax.plot(list(drawn), list(drawn.values()), "s--", color="#8a5a00", label="random pairs")
ax.set(xlabel="answers", ylabel="adjusted Rand index")
ax.legend(frameon=False)
plt.show()
