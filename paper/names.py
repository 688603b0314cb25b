"""The items' names and homes, which load nothing."""

HOMES = {  # item: module, in the order of ``all``
    "table1": "transductive",
    "table2": "inductive",
    "ppi": "tissues",
    "runtime": "runtime",
    "mirror": "mirrors",
    "perturbation": "mirrors",
    "mirror-inductive": "mirrors",
    "correlation": "correlations",
    "alpha": "parameters",
    "lambda": "parameters",
    "case-study": "case_study",
}
NAMES = tuple(HOMES)
