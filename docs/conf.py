"""The documentation's site: sphinx-build -W docs build/site

The pages are the Markdown files here, which read as well in the repository. What is made from the
code at build time, as a page a technique, goes to docs/generated/ and is not committed
(_ext/technique_pages.py). smemkern has to be installed: pages trace their kernels on the emulator.
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE / "_ext"), str(HERE.parent / "benchmarks")]

import smemkern  # noqa: E402

project = "smemkern"
author = "the smemkern authors"
project_copyright = "the smemkern authors"
version = release = smemkern.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "stand_ins",
    "repository_links",
    "reference_fields",
    "technique_pages",
    "lab_page",
]
exclude_patterns = ["_ext", "lab", "Thumbs.db", ".DS_Store"]
highlight_language = "text"  # of blocks that name no language: pictures and output

myst_enable_extensions = ["attrs_block"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings say types, shapes and units
napoleon_google_docstring = False
napoleon_use_param = False  # "a, b" stay one entry
napoleon_use_rtype = False
napoleon_use_ivar = True

html_theme = "furo"
html_title = f"smemkern {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["bank-explorer.html", "generated/extra"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"
pygments_dark_style = "github-dark"
