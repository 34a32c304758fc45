# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Finds a backend by role and name; imports it only when it is asked for.

A backend is known by a dotted path, so listing, describing and probing all
backends imports none of them and none of the packages that they need.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import inspect
import os
from typing import Any

from perception import errors, roles
from perception.backends import SPECS, Spec


@dataclasses.dataclass(frozen=True)
class Availability:
  """Whether a backend can run here.

  Attributes:
    available: nothing that it needs is known to be absent.
    reason: what is absent and how to get it; empty when available.
  """

  available: bool
  reason: str


_SPECS: dict[tuple[str, str], Spec] = {}


def register(spec: Spec) -> None:
  """Adds a backend.

  Raises:
    ValueError: the role is unknown or the name is taken.
  """
  if spec.role not in roles.ROLES:
    raise ValueError(f"unknown role {spec.role!r}; known: {roles.ROLES}")
  key = (spec.role, spec.name)
  if key in _SPECS:
    raise ValueError(f"{spec.role} backend {spec.name!r} is registered twice")
  _SPECS[key] = spec


for _entry in SPECS:
  register(_entry)


def names(role: str) -> tuple[str, ...]:
  """Names of a role's backends, in order of registration.

  Raises:
    InputError: unknown role.
  """
  if role not in roles.ROLES:
    raise errors.InputError(
      "registry", "role", found=role, expected=f"one of {roles.ROLES}"
    )
  return tuple(name for key, name in _SPECS if key == role)


def specs() -> tuple[Spec, ...]:
  """All backends, grouped by role."""
  order = {role: row for row, role in enumerate(roles.ROLES)}
  return tuple(sorted(_SPECS.values(), key=lambda spec: order[spec.role]))


def spec(role: str, name: str) -> Spec:
  """The entry of one backend.

  Raises:
    InputError: unknown role or name; the message lists the known ones.
  """
  known = names(role)
  if name not in known:
    raise errors.InputError(
      "registry",
      f"{role} backend",
      found=repr(name),
      expected=f"one of {list(known)}",
    )
  return _SPECS[role, name]


def availability(role: str, name: str) -> Availability:
  """Whether a backend can run here, without importing what it needs.

  Raises:
    InputError: unknown role or name.
  """
  entry = spec(role, name)
  absent = [
    module
    for module in entry.requires
    if importlib.util.find_spec(module) is None
  ]
  unset = [key for key in entry.environment if not os.environ.get(key)]
  reasons = []
  if absent:
    advice = f" ({entry.install})" if entry.install else ""
    reasons.append(f"not installed: {', '.join(absent)}{advice}")
  if unset:
    reasons.append(f"not set: {', '.join(unset)}")
  if not reasons and entry.probe:
    module_name, _, function = entry.probe.partition(":")
    reasons += filter(
      None, [getattr(importlib.import_module(module_name), function)()]
    )
  return Availability(not reasons, "; ".join(reasons))


def get(role: str, name: str, **settings: Any) -> Any:
  """Makes a backend.

  Args:
    role: one of `roles.ROLES`; the result satisfies its Protocol.
    name: a registered name.
    **settings: the backend's own options.

  Raises:
    InputError: unknown role or name, something that it needs is absent, or a
      setting that it does not know.
  """
  entry = spec(role, name)
  state = availability(role, name)
  if not state.available:
    raise errors.InputError(
      "registry",
      f"{role} backend {name!r}",
      found=state.reason,
      expected="everything that it needs",
    )
  module_name, _, class_name = entry.target.partition(":")
  factory = getattr(importlib.import_module(module_name), class_name)
  try:
    inspect.signature(factory).bind(**settings)
  except TypeError as error:
    raise errors.InputError(
      "registry",
      f"settings of {role} backend {name!r}",
      found=error,
      expected=f"{name}{inspect.signature(factory)}",
    ) from error
  return factory(**settings)


def info(entry: Spec, version: str, **extra: Any) -> roles.BackendInfo:
  """The `BackendInfo` of a backend, with what its registry entry says.

  Args:
    entry: the backend's entry.
    version: of the implementation or of the model's package.
    **extra: `weights_sha256`, `settings`.
  """
  return roles.BackendInfo(
    role=entry.role,
    name=entry.name,
    version=version,
    licence=entry.licence,
    comparable_to_published=entry.comparable_to_published,
    **extra,
  )
