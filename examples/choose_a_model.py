"""Choose the clusters per class and the covariance type by cross-validation that keeps links within folds.

Linked rows belong together. `Links.components` gives the groups that must stay in one fold, and `rows` tells each fit
which rows of the table it received.
"""

import numpy as np
import sklearn
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.preprocessing import StandardScaler

from linkmix import LinkMixture, Links, purity


def main() -> None:
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X[:, [6, 9, 12]])  # flavanoids, colour intensity, proline
    links = Links.from_labels(y, 40, random_state=0)
    with sklearn.config_context(enable_metadata_routing=True):
        mixture = LinkMixture(n_classes=3, n_init=3, random_state=0).set_fit_request(links=True, rows=True)
        search = GridSearchCV(
            mixture,
            {"clusters_per_class": [1, 2], "covariance_type": ["full", "tied", "diag"]},
            cv=GroupKFold(n_splits=4),
        )
        search.fit(X, links=links, rows=np.arange(len(X)), groups=links.components(len(X)))
    for parameters, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
        print(f"{score:8.3f}  {parameters}")
    print(f"best: {search.best_params_}, purity {purity(y, search.predict(X)):.2f}")


if __name__ == "__main__":
    main()
