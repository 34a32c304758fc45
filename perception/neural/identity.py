# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""What an adapter says about itself, and when its scores are comparable.

A backend is what the published tables used only with the same model, the same
settings and real weights; where a digest of the weights was published, with
that digest.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from perception import registry, roles
from perception.neural import weights


def describe(
  role: str,
  name: str,
  version: str,
  found: weights.Found,
  *,
  settings: Mapping[str, Any],
  published: Mapping[str, Any],
  published_sha256: str = "",
  licence: str = "",
) -> roles.BackendInfo:
  """The `BackendInfo` of an adapter.

  Args:
    role: of the backend.
    name: registered name.
    version: of the packages that compute.
    found: its weights.
    settings: options that change the result.
    published: the values of some of them in the published evaluation.
    published_sha256: digest of the published weights, if known.
    licence: of code and weights, where the registry's is another model's.

  Returns:
    Comparable only if the registry allows it and the model, the settings and
    the weights are the published ones.
  """
  info = registry.info(
    registry.spec(role, name),
    version,
    weights_sha256=found.sha256,
    settings=settings,
  )
  same = all(settings[key] == value for key, value in published.items())
  digest = published_sha256 in ("", found.sha256)
  return dataclasses.replace(
    info,
    licence=licence or info.licence,
    comparable_to_published=(
      info.comparable_to_published and same and digest and not found.random
    ),
  )
