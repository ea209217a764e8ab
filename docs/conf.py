"""Sphinx configuration for `make docs`; needs no network.

The build executes the tutorials and generates the reference from the code
(`extensions/reference.py`). Every warning is an error.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "extensions"))
# Tutorials call `contstim` in a shell: use the one of this environment
os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
os.environ.update(
    NO_COLOR="1",
    PYTHONWARNINGS="ignore:IProgress not found",
    COLUMNS="100",
    OMP_NUM_THREADS="1",
    PYTHONHASHSEED="0",
)

from contstim.version import __version__  # noqa: E402

project = "contstim"
author = copyright = "The contstim authors"  # noqa: A001
release = version = __version__

extensions = [
    "myst_nb",
    "reference",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["extensions", "README.md"]
smartquotes = False  # options begin with two hyphens

# Markdown pages with the heading anchors of GitHub
myst_enable_extensions = ["deflist", "fieldlist", "dollarmath", "colon_fence"]
myst_heading_anchors = 4
myst_links_external_new_tab = False

# Tutorials
nb_execution_mode = os.environ.get("CONTSTIM_DOCS_EXECUTE", "force")
nb_execution_raise_on_error = True
nb_execution_timeout = 1200  # seconds per cell, enough for a busy machine
nb_execution_in_temp = True
nb_merge_streams = True
nb_execution_show_tb = True

# Google-style docstrings; text in single backticks is code
default_role = "literal"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
autodoc_preserve_defaults = True
autodoc_use_type_comments = False
python_maximum_signature_line_length = 80
python_display_short_literal_types = True
add_module_names = False
toc_object_entries = False

html_theme = "furo"
html_title = f"contstim {__version__}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {
    "navigation_with_keys": True,
    "light_css_variables": {"color-brand-primary": "#1b5e8a", "color-brand-content": "#1b5e8a"},
    "dark_css_variables": {"color-brand-primary": "#7cc0ea", "color-brand-content": "#7cc0ea"},
}
pygments_style = "friendly"
pygments_dark_style = "github-dark"
