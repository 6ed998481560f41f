"""The Python half of the reference: settings of Sphinx. build.py runs it."""

project = "samebits"
extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "alabaster"
html_theme_options = {"description": "Python reference"}
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_mock_imports = ["torch", "hypothesis"]
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_ivar = True
suppress_warnings = ["ref.python"]  # words of parameter types that are names elsewhere
