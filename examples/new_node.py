"""A new person joins: her vector from her links and words, without refitting or copying the network."""

import numpy as np

import spinegraph as sg
from spinegraph.analysis.search import Search

company = sg.made.planted(seed=0)
graph = company.graph
model = sg.SPINE(dim=32, seed=0).fit(graph)

# She knows six people of one department, and her profile has three of its words.
department = company.community_names.index("Support")
colleagues = graph.names[company.community == department][:6]
words = np.isin(graph.feature_names, ["tickets", "helpdesk", "chat"]).astype(np.float32)

today = graph.overlay(["Zoe New"], [("Zoe New", colleague) for colleague in colleagues], features=[words])
zoe = model.transform(today, nodes=["Zoe New"])["Zoe New"]

for match in Search(model.embeddings_).similar_to(zoe, n=5):
    position = graph.positions([match.name])[0]
    where = company.community_names[company.community[position]]
    role = company.role_names[company.role[position]]
    print(f"{match.score:.2f}  {match.name}: {role}, {where}")
