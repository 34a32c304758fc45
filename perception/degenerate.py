# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The verdict that an input does not determine the answer."""

from __future__ import annotations

from perception import errors


class DegenerateError(errors.InputError):
  """Sound input from which this quantity cannot be known.

  For example depth from a clip without parallax. A runner records the case as
  `degenerate`, with this line as the reason, and not as `failed`.
  """
