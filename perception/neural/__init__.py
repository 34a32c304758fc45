# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Adapters to neural perception systems, one system per file.

Nothing here is imported before a backend of it is asked for; the systems'
packages are imported inside the adapters, never at module level. Conventions
are converted in `conventions`, weights found in `weights`, tensors handed over
in `handoff`.
"""
