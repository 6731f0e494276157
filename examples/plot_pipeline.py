"""
A DataFrame in a pipeline
=========================

The selector is a step of a scikit-learn pipeline, so that every fold of a cross-validation selects on its own training
rows. Here the accuracy of a logistic regression against the number of features.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from seqatt import SequentialAttentionSelector

X, y = load_wine(return_X_y=True, as_frame=True)
pipeline = make_pipeline(SequentialAttentionSelector(random_state=0), StandardScaler(), LogisticRegression())
sizes = [1, 2, 4, 8]
search = GridSearchCV(pipeline, {"sequentialattentionselector__n_features_to_select": sizes}, cv=3)
search.fit(X, y)
print(list(search.best_estimator_[0].get_feature_names_out()))

# %%
figure, axes = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
scores = search.cv_results_
axes.errorbar(
    sizes, scores["mean_test_score"], scores["std_test_score"], marker="o", capsize=3, color="#0072B2"
)
axes.set_xlabel("features selected")
axes.set_ylabel("accuracy, three folds")
plt.show()
