"""A clustering that does not find the classes you want, and the links that correct it.

The classes that a mixture finds in handwritten ones, twos and fives are not the digits. Each round asks about ten
random pairs of images; earlier answers are kept, and classes keep their numbers.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from linkmix import LinkMixture, Links, links_satisfied, purity

ROUNDS, QUESTIONS = 4, 10


def main() -> None:
    images, digits = load_digits(return_X_y=True)
    chosen = np.isin(digits, [1, 2, 5])
    X, truth = PCA(2, svd_solver="full").fit_transform(images[chosen]), digits[chosen]

    model = LinkMixture(n_classes=3, n_init=10, warm_start=True, random_state=0).fit(X)
    before = model.labels_
    print(f"no links: purity {purity(truth, model.predict(X)):.2f}")

    links = Links()
    for round_number in range(ROUNDS):
        # In practice a person looks at the images; here the true digits give the answers.
        links = links.union(Links.from_labels(truth, QUESTIONS, random_state=round_number)).distinct()
        model.fit(X, links=links)
        print(
            f"{links}: purity {purity(truth, model.predict(X)):.2f}, "
            f"links satisfied {links_satisfied(model.labels_, links):.0%}, "
            f"labels changed {np.mean(model.labels_ != before):.0%}"
        )
        before = model.labels_

    # Here all answers are right: on two principal components these images look like another digit.
    print("\nThe links that the model doubts most; check these images again:")
    for link in model.links_to_review_[:3]:
        print(f"  {link['kind']}-link {link['a']}, {link['b']}: wrong with probability {link['probability_wrong']:.2f}")


if __name__ == "__main__":
    main()
