"""The facts of ``python -m audit --house``."""

from audit.house import PACKAGE, import_layers, importers


def test_importers_are_counted_wherever_the_import_stands():
    files = {
        PACKAGE / "__init__.py": "",
        PACKAGE / "errors.py": "",
        PACKAGE / "graph" / "__init__.py": "from .graph import Graph",
        PACKAGE / "graph" / "graph.py": "import spinegraph.errors\nfrom numpy import array",
        PACKAGE / "estimator.py": "def fit():\n    import spinegraph.errors\n    from .graph import graph",
    }
    assert importers(files) == {
        "spinegraph": set(),
        "spinegraph.errors": {"spinegraph.graph.graph", "spinegraph.estimator"},
        "spinegraph.graph": set(),
        "spinegraph.graph.graph": {"spinegraph.graph", "spinegraph.estimator"},
        "spinegraph.estimator": set(),
    }


def test_the_layers_are_those_that_import_linter_checks():
    assert import_layers() >= 5
