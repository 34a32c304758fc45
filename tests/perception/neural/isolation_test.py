# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Our `kernels` beside transformers, and scoring without torch.

transformers takes a distribution that provides a top-level `kernels` for the
PyPI package of that name when its version lies in [0.18.2, 0.19.0). The tests
run in processes of their own, because imports leave traces.
"""

import os
import pathlib
import subprocess
import sys
import tomllib

import pytest
from absl.testing import absltest, parameterized

_ROOT = pathlib.Path(__file__).parents[3]

_MODEL = """
import kernels, transformers, torch
model = transformers.Dinov2Model(transformers.Dinov2Config(
  hidden_size=32, num_hidden_layers=1, num_attention_heads=2))
with torch.no_grad():
  out = model(pixel_values=torch.zeros(1, 3, 28, 42))
assert out.last_hidden_state.shape == (1, 7, 32)
print(kernels.__file__)
"""

_NO_TORCH = """
import importlib, pkgutil, sys
class Refuse:
  def find_spec(self, name, path=None, target=None):
    if name.split('.')[0] in ('torch', 'transformers', 'tensorflow'):
      raise AssertionError('imported ' + name)
sys.meta_path.insert(0, Refuse())
for package in {packages}:
  module = importlib.import_module(package)
  for item in pkgutil.walk_packages(module.__path__, package + '.'):
    importlib.import_module(item.name)
"""


def _run(code, folder=_ROOT):
  environment = {
    **os.environ,
    "PYTHONPATH": str(folder),
    "HF_HUB_OFFLINE": "1",
    "JAX_PLATFORMS": "cpu",
  }
  return subprocess.run(
    [sys.executable, "-W", "ignore", "-c", code],
    capture_output=True,
    text=True,
    env=environment,
    check=False,
    cwd=folder,
    timeout=300,
  )


def _installed(folder, version):
  """A folder as pip would leave it: our package and its metadata."""
  os.symlink(_ROOT / "kernels", pathlib.Path(folder, "kernels"))
  info = pathlib.Path(folder, f"worldgauge-{version}.dist-info")
  info.mkdir()
  (info / "METADATA").write_text(
    f"Metadata-Version: 2.1\nName: worldgauge\nVersion: {version}\n"
  )
  (info / "top_level.txt").write_text("kernels\n")
  return folder


@pytest.mark.perception
class BesideTransformersTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    pytest.importorskip("torch", reason="needs the perception extra")
    pytest.importorskip("transformers", reason="needs the perception extra")

  def _ours(self, result):
    self.assertEqual(result.returncode, 0, result.stderr[-2000:])
    self.assertEqual(
      pathlib.Path(result.stdout.strip()).resolve(),
      _ROOT / "kernels" / "__init__.py",
    )

  def test_beside_our_folder(self):
    self._ours(_run(_MODEL))

  def test_beside_our_installed_distribution(self):
    with open(_ROOT / "pyproject.toml", "rb") as stream:
      version = tomllib.load(stream)["project"]["version"]
    folder = _installed(self.create_tempdir().full_path, version)
    self._ours(_run(_MODEL, folder))

  def test_the_version_to_avoid_really_breaks_it(self):
    # Without this control the test above could not fail.
    folder = _installed(self.create_tempdir().full_path, "0.18.5")
    result = _run(_MODEL, folder)
    self.assertNotEqual(result.returncode, 0)
    self.assertIn("kernels", result.stderr)


class NoTorchTest(parameterized.TestCase):
  def test_version_is_not_one_to_avoid(self):
    with open(_ROOT / "pyproject.toml", "rb") as stream:
      version = tomllib.load(stream)["project"]["version"]
    numbers = tuple(int(part) for part in version.split(".")[:3])
    self.assertFalse((0, 18, 2) <= numbers < (0, 19, 0))

  @parameterized.parameters("kernels", "protocols", "perception.neural")
  def test_every_module_imports_without_torch(self, package):
    result = _run(_NO_TORCH.format(packages=[package]))
    self.assertEqual(result.returncode, 0, result.stderr[-2000:])

  def test_help_imports_no_torch(self):
    if not (_ROOT / "bin" / "evaluate.py").is_file():
      self.skipTest("bin.evaluate is not there yet")
    code = (
      _NO_TORCH.format(packages=[])
      + "import runpy\nsys.argv = ['evaluate', '--help']\n"
      "runpy.run_module('bin.evaluate', run_name='__main__')\n"
    )
    result = _run(code)
    self.assertNotIn("imported torch", result.stderr)
    self.assertIn("USAGE", result.stdout + result.stderr)


if __name__ == "__main__":
  absltest.main()
