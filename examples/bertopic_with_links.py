"""Topics that you mean: a mixture with links inside BERTopic.

BERTopic calls ``fit(X, y)`` of whatever stands in for HDBSCAN, and knows nothing about links. So the estimator brings
them along: ``AutoLinkMixture(4, links=links)``. The texts are the docstrings of scikit-learn, and the topics that we
mean are what people do with it: data sets, columns, models, measures. Embeddings by TF-IDF keep the example small;
those of a sentence transformer go the same way.

One draw of links tells little here, so the first part shows several. With few links, topics can be worse than without.

Needs ``pip install bertopic``.
"""

from importlib import import_module
from inspect import getdoc, ismodule
from typing import Any

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from linkmix import AutoLinkMixture, Links, links_satisfied, purity

MEANT = {
    "data sets": ["datasets"],
    "columns": ["preprocessing", "feature_extraction", "feature_selection", "impute"],
    "models": ["linear_model", "ensemble", "neighbors", "svm", "tree", "naive_bayes"],
    "measures": ["metrics"],
}
NUMBERS, N_DRAWS, N_KNOWN = (0, 25, 50, 100, 200), 4, 5
WORDS = {"stop_words": "english", "min_df": 3, "max_df": 0.5, "token_pattern": r"[a-z]{3,}"}
NEW = "Mean absolute error between the true and the predicted targets."


def docstrings() -> tuple[list[str], list[str]]:
    """Texts, and the topic that we mean for each."""
    topic_of: dict[str, str] = {}
    for topic, modules in MEANT.items():
        for name in modules:
            module = import_module(f"sklearn.{name}")
            for member, value in sorted(vars(module).items()):
                text = getdoc(value) or ""
                if not member.startswith("_") and not ismodule(value) and len(text) > 300:
                    topic_of.setdefault(text, topic)
    return list(topic_of), list(topic_of.values())


def topics(clusterer: AutoLinkMixture, texts: list[str], embeddings: np.ndarray, y: np.ndarray | None = None) -> Any:
    """BERTopic with a clusterer of our own, on embeddings that are used as they are."""
    from bertopic import BERTopic
    from bertopic.dimensionality import BaseDimensionalityReduction

    model = BERTopic(
        hdbscan_model=clusterer,
        umap_model=BaseDimensionalityReduction(),
        vectorizer_model=CountVectorizer(**{**WORDS, "min_df": 1, "max_df": 1.0}),  # it sees one text for each topic
    )
    return model.fit(texts, embeddings, y=y)


def main() -> None:
    texts, meant = docstrings()
    words = TfidfVectorizer(sublinear_tf=True, **WORDS)
    embed = make_pipeline(words, TruncatedSVD(8, random_state=0), Normalizer())
    embeddings = embed.fit_transform(texts)
    print(f"{len(texts)} docstrings of scikit-learn, and {len(MEANT)} topics that we mean.\n")

    print(f"links   purity   adjusted Rand index of each of {N_DRAWS} draws, and their mean")
    for n_links in NUMBERS:
        pure, alike = [], []
        for draw in range(N_DRAWS):
            # In practice a person looks at pairs of texts; here the modules give the answers.
            links = Links.from_labels(meant, n_links, random_state=draw)
            clusterer = AutoLinkMixture(4, links=links, calibrate=False, random_state=draw)
            found = topics(clusterer, texts, embeddings).topics_
            assert links_satisfied(found, links) == 1
            pure.append(purity(meant, found))
            alike.append(adjusted_rand_score(meant, found))
        each = "  ".join(f"{one:.2f}" for one in alike)
        print(f"{n_links:5d}   {np.mean(pure):6.2f}   {each}   mean {np.mean(alike):.2f}")

    links = Links.from_labels(meant, 100, random_state=0)
    print(f"\nThe first draw of {links}: documents by their topic and the one that we mean")
    model = topics(AutoLinkMixture(4, links=links, random_state=0), texts, embeddings)
    table = model.get_document_info(texts).assign(Meant=meant)
    print(table.groupby(["Topic", "Meant"]).size().unstack(fill_value=0).to_string())
    for topic, found in model.get_topics().items():
        print(f"topic {topic}: {', '.join(word for word, _ in found[:6])}")
    least = table.sort_values("Probability").iloc[0]
    print(f"The text that fits its topic least ({least.Probability:.2f}): {least.Document.splitlines()[0]}")
    [topic], _ = model.transform([NEW], embed.transform([NEW]))
    print(f"A new text, of topic {topic}: {NEW}")

    y = np.full(len(texts), -1)
    for number, name in enumerate(MEANT):
        y[[row for row, topic in enumerate(meant) if topic == name][:N_KNOWN]] = number
    found = topics(AutoLinkMixture(4, links=links, random_state=0), texts, embeddings, y).topics_
    print(f"\nThe same links, and {N_KNOWN} known texts of each topic as y: purity {purity(meant, found):.2f}")


if __name__ == "__main__":
    main()
