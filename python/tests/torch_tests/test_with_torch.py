"""Tests of the whole package that leave out samebits.torch where there is no torch."""

import pytest
from test_doctests import test_examples as test_examples
from test_help import test_docstrings_describe_every_parameter_and_show_an_example as test_docstrings
from test_rotary import test_torch as test_rotary

pytestmark = pytest.mark.usefixtures("cublas_workspace")  # an example pins the settings of a GPU

__all__ = ["test_docstrings", "test_examples", "test_rotary"]
