"""Topics that you mean: a mixture with links inside BERTopic.

BERTopic calls ``fit(X, y)`` of whatever stands in for HDBSCAN, and knows nothing about links. So the estimator brings
them along: ``AutoLinkMixture(4, links=links)``. The texts are the docstrings of scikit-learn, and the topics that we
mean are what people do with it: data sets, columns, models, measures. Embeddings by TF-IDF keep the example small;
those of a sentence transformer go the same way.

Needs ``pip install bertopic``.
"""

from importlib import import_module
from inspect import getdoc, ismodule

import numpy as np
from bertopic import BERTopic
from bertopic.dimensionality import BaseDimensionalityReduction
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
N_LINKS, N_KNOWN = 100, 5
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


def main() -> None:
    texts, meant = docstrings()
    embed = make_pipeline(TfidfVectorizer(sublinear_tf=True, **WORDS), TruncatedSVD(8, random_state=0), Normalizer())
    embeddings = embed.fit_transform(texts)
    # In practice a person looks at pairs of texts; here the modules give the answers.
    links = Links.from_labels(meant, N_LINKS, random_state=0)
    print(f"{len(texts)} docstrings of scikit-learn; we mean {len(MEANT)} topics, and give {links}")

    def topics(clusterer: AutoLinkMixture, y: np.ndarray | None = None) -> BERTopic:
        """Fit BERTopic, and say how close its topics are to those that we mean."""
        model = BERTopic(
            hdbscan_model=clusterer,
            umap_model=BaseDimensionalityReduction(),  # leaves the embeddings as they are
            vectorizer_model=CountVectorizer(**{**WORDS, "min_df": 1, "max_df": 1.0}),  # sees one text for each topic
        )
        found, probabilities = model.fit_transform(texts, embeddings, y=y)
        print(
            f"purity {purity(meant, found):.2f}, adjusted Rand index {adjusted_rand_score(meant, found):.2f}, links "
            f"satisfied {links_satisfied(found, links):.0%}, mean probability {np.mean(probabilities):.2f}"
        )
        return model

    print("\nWithout links:")
    topics(AutoLinkMixture(4, random_state=0))
    print("\nWith links:")
    model = topics(AutoLinkMixture(4, links=links, random_state=0))
    found = model.get_document_info(texts).assign(Meant=meant)
    print(found.groupby(["Topic", "Meant"]).size().unstack(fill_value=0).to_string())
    for topic, words in model.get_topics().items():
        print(f"  topic {topic}: {', '.join(word for word, _ in words[:6])}")
    least = found.sort_values("Probability").iloc[0]
    print(f"  the text that fits its topic least, {least.Probability:.2f}: {least.Document.splitlines()[0]}")
    [topic], _ = model.transform([NEW], embed.transform([NEW]))
    print(f"  a new text, of topic {topic}: {NEW}")

    print(f"\nWith links, and with the topics of {N_KNOWN} texts each as y, which BERTopic hands on:")
    y = np.full(len(texts), -1)
    for number, name in enumerate(MEANT):
        y[[row for row, topic in enumerate(meant) if topic == name][:N_KNOWN]] = number
    topics(AutoLinkMixture(4, links=links, random_state=0), y)


if __name__ == "__main__":
    main()
