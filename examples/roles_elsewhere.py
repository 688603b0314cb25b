"""Roles learned in one organisation are recognised in another that SPINE never saw."""

from collections import Counter

from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import spinegraph as sg

here, elsewhere = sg.made.planted(seed=0), sg.made.planted(seed=1)

model = sg.SPINE(seed=0).fit(here.graph)  # does not see the roles
classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
classifier.fit(model.embeddings_.part("role").vectors, here.role)  # roles of the first organisation only

found = classifier.predict(model.transform(elsewhere.graph).part("role").vectors)
commonest = Counter(here.role.tolist()).most_common(1)[0][0]
print(f"right: {(found == elsewhere.role).mean():.0%} of {len(found)} people of an unseen organisation")
print(f"always guessing {here.role_names[commonest]!r}: {(elsewhere.role == commonest).mean():.0%}")
for role, name in enumerate(elsewhere.role_names):
    mine = elsewhere.role == role
    print(f"  {name:8}{mine.sum():4} people, {(found[mine] == role).mean():.0%} found")
