"""How `make docs` makes the manual into a site; anything that Sphinx warns of fails the build."""

from __future__ import annotations

from foreplan.version import __version__

project = "foreplan"
author = "The foreplan maintainers"
copyright = "The foreplan maintainers, Apache License 2.0"
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
nitpicky = False

myst_heading_anchors = 3  # [text](page.md#heading), as on the pages of a forge
myst_enable_extensions = ["deflist"]
suppress_warnings = ["myst.header"]  # a results report may begin with a smaller heading

default_role = "code"  # `name` in docstrings
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True

html_theme = "furo"
html_title = f"foreplan {release}"
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
