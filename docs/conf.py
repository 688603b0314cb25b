"""Settings of the documentation; warnings are errors in ``make docs``."""

from spinegraph import __version__

project = "spinegraph"
author = "the spinegraph authors"
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
suppress_warnings = ["ref.python"]  # "iterable of names" in a docstring refers to no one's ``names``
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

autodoc_typehints = "none"  # signatures would repeat what the parameter lists say
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_ivar = False

html_theme = "furo"
html_show_copyright = False
html_title = f"spinegraph {version}"
