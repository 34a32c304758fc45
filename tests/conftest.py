# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""absltest under pytest: flags parsed, a temporary folder of this process."""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile

from absl import flags
from absl.testing import absltest

_TEMPORARY = tempfile.mkdtemp(prefix="worldgauge_tests_")
atexit.register(shutil.rmtree, _TEMPORARY, ignore_errors=True)
flags.FLAGS([sys.argv[0], f"--test_tmpdir={_TEMPORARY}"])
assert absltest.TestCase  # defines --test_tmpdir
