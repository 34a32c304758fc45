# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""One thread and no network for the neural tests.

Small networks on a busy machine lose most of their time in torch's thread
barriers (measured: 274 s against 14 s for the SAM 2 tests).
"""

import importlib.util
import os

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("DA3_LOG_LEVEL", "ERROR")


@pytest.fixture(autouse=True, scope="session")
def _one_torch_thread():
  if importlib.util.find_spec("torch") is None:
    yield
    return
  import torch

  threads = torch.get_num_threads()
  torch.set_num_threads(1)
  yield
  torch.set_num_threads(threads)
