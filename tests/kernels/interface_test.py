# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Every public kernel keeps the house rules of a signature."""

import importlib
import inspect
import pathlib
import pkgutil
import subprocess
import sys

from absl.testing import absltest, parameterized

import kernels

_MODULES = [m.name for m in pkgutil.iter_modules(kernels.__path__)]


def _functions(module):
  for name, value in vars(module).items():
    public = not name.startswith("_") and inspect.isfunction(value)
    if public and value.__module__ == module.__name__:
      yield name, value


class InterfaceTest(parameterized.TestCase):
  def test_there_are_modules(self):
    self.assertIn("numerics", _MODULES)
    self.assertIn("rigidity", _MODULES)

  @parameterized.parameters(*_MODULES)
  def test_options_are_keyword_only_and_have_no_defaults(self, name):
    module = importlib.import_module(f"kernels.{name}")
    self.assertTrue(module.__doc__)
    for function_name, function in _functions(module):
      with self.subTest(function_name):
        self.assertTrue(inspect.getdoc(function))
        parameters = inspect.signature(function).parameters
        for position, (key, parameter) in enumerate(parameters.items()):
          self.assertIs(parameter.default, inspect.Parameter.empty, key)
          if key == "key":
            self.assertEqual(position, 0)

  def test_the_package_is_ours(self):
    # transformers can import a package of the same name from PyPI.
    root = pathlib.Path(__file__).resolve().parents[2]
    found = pathlib.Path(kernels.__file__).resolve()
    self.assertEqual(found, root / "kernels" / "__init__.py")

  def test_import_pulls_no_heavy_package(self):
    names = "".join(f"import kernels.{n}\n" for n in _MODULES)
    code = (
      f"import sys\n{names}"
      "bad = {'torch', 'flax', 'cv2', 'perception', 'protocols'}\n"
      "print(sorted(bad & set(sys.modules)))"
    )
    found = subprocess.run(
      [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    self.assertEqual(found.stdout.strip(), "[]")


if __name__ == "__main__":
  absltest.main()
