"""
A table with columns of every kind
==================================

Hand over a data frame as it is: categories, amounts as text, dates and missing values.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from linkmix import AutoLinkMixture, Links, purity
from linkmix.columns import describe

random = np.random.default_rng(0)
kind = random.integers(2, size=300)  # what we mean: private customers, and companies
table = pd.DataFrame(
    {
        "customer": np.arange(5000, 5300),
        "plan": np.where(random.random(300) < 0.8, np.array(["basic", "team"])[kind], "trial"),
        "spend": [f"{amount:,.2f} €" for amount in random.gamma(4, 300, 300) * (1 + 2 * kind)],
        "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(random.integers(900, size=300), unit="D"),
    }
)
table.loc[[3, 8], "plan"] = None
print(table.head())

# %%
# A column that only numbers the rows is left out, with a warning. ``recipe_`` says what each column was taken for.

links = Links.from_labels(kind, 20, random_state=0)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    model = AutoLinkMixture(2, random_state=0).fit(table, links=links)
for column, what in describe(model.recipe_):
    print(f"{column}: {what}")
print(f"left out: {dict(model.recipe_.left_out)}")
print(f"purity {purity(kind, model.predict(table)):.2f}")
print(model.quality_)

# %%
# The probabilities are calibrated: of the rows with a largest probability of 0.8, about 80 % should be right.

labelled = table.assign(label=model.labels_, confidence=model.predict_proba(table).max(axis=1).round(2))
print(labelled.head())

# %%

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
amounts = labelled["spend"].str.strip(" €").str.replace(",", "").astype(float)
for label, colour in zip(sorted(set(model.labels_)), ("#2b5fa8", "#8a5a00"), strict=True):
    ax.hist(amounts[labelled["label"] == label], bins=30, alpha=0.7, color=colour, label=f"class {label}")
ax.set(xlabel="spend, €", ylabel="customers")
ax.legend(frameon=False)
plt.show()
