"""Settings of the documentation; warnings are errors in ``make docs``."""

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

from spinegraph import __version__

project = "spinegraph"
author = "the spinegraph authors"
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
smartquotes = False  # a value such as 'auto' is copied as it stands
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
html_static_path = ["style"]
html_css_files = ["wide.css"]
html_math_renderer = "mathml"


def setup(app: Sphinx) -> None:
    """Formulas become MathML, which browsers draw themselves: pages load nothing and are whole offline."""
    app.add_html_math_renderer("mathml", (write_inline, None), (write_block, None))


def write_inline(writer: HTML5Translator, node: nodes.math) -> None:
    """Write a formula within a line."""
    writer.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def write_block(writer: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula that has a line of its own."""
    writer.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>\n')
    raise nodes.SkipNode
