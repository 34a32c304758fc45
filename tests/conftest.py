# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""absltest under pytest: flags parsed, a temporary folder of this process."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile

from absl import flags
from absl.testing import absltest

_TEMPORARY = tempfile.mkdtemp(prefix="worldgauge_tests_")
atexit.register(shutil.rmtree, _TEMPORARY, ignore_errors=True)
# Binaries that tests start compile the same small stages again and again.
os.environ.setdefault(
  "JAX_COMPILATION_CACHE_DIR", os.path.join(_TEMPORARY, "jax")
)
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
flags.FLAGS([sys.argv[0], f"--test_tmpdir={_TEMPORARY}"])
assert absltest.TestCase  # defines --test_tmpdir
