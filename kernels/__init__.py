# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Pure JAX measurements: arrays in, numbers out.

Nothing here imports another package of this project, torch, flax or OpenCV.
Every function takes one item; callers batch with `jax.vmap` or `jax.lax.map`
and compile. Import the modules: `from kernels import camera`.
"""
