# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Every constant of PDI-Bench, for both variants, with its source.

Numbers in brackets are sections of the specification. `RELEASED` reproduces
the published code, defects included; `PAPER` follows the paper's text with the
defects removed as the specification recommends. Where they differ, a flag
names the difference, and the code has one branch on it.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class PdiConstants:
  """Constants and named differences of one variant."""

  variant: str

  # Input (1, 2)
  resample_fps: float = 0.0  # [1.2, 1.3] 0: native frames
  max_frames: int = 0  # [1.1, 1.3] central window; 0: no limit
  min_frames: int = 0  # [1.3] shorter clips are rejected
  default_fps: float = 24.0  # [1.2] container without a rate
  min_mask_pixels: int = 10  # [2.2, 4.1] a mask needs more than this
  truncation_margin: int = 5  # [2.2] rows from the border
  min_track_visibility: float = 0.3  # [2.6] mean over time, inclusive
  max_track_jump: float = 120.0  # [2.6] video pixels, exclusive
  min_tracks: int = 2  # [2.6] fewer survivors keep all tracks
  visibility_threshold: float = 0.5  # [5.2] exclusive
  fallback_depth: float = 1.0  # [2.7] object depth without reconstruction
  default_intrinsics: tuple[float, float, float, float] = (
    1000.0,
    1000.0,
    320.0,
    240.0,
  )  # [2.4] fx, fy, cx, cy where K is unreadable
  depth_normaliser: float = 1e-8  # [2.3]
  depth_normaliser_floor: float = 1e-6  # [2.3]
  min_valid_fraction: float = 0.5  # [2.7] non-zero points of mask 0

  # Scale residual (3)
  scale_floor: float = 1e-6
  scale_reference_frames: int = 5

  # Trajectory residual (4)
  min_frame_rate: float = 1.0  # [4.3]
  speed_floor: float = 1e-6  # [4.3]
  acceleration_weight: float = 2.0  # [4.3]
  tanh_scale: float = 5.0  # [4.4]
  motion_threshold: float = 0.1  # [4.4] of the reference speed
  speed_epsilon: float = 1e-9  # [4.4]

  # Rigidity residual (5)
  gradient_quantile: float = 0.75  # [5.2.5]
  min_anchors: int = 5  # [5.2.5]
  num_pairs: int = 30  # [5.2.6, 5.4]
  min_pair_length: float = 1e-3  # [5.2.6] exclusive
  min_pairs: int = 3  # [5.2.6, 5.2.7]
  ratio_epsilon: float = 1e-6  # [5.2.7, 5.4]
  rigidity_sentinel: float = 1.0  # [5.2.5, 5.2.6]
  pair_seed: int = 42  # [5.4]
  height_quantiles: tuple[float, float] = (0.05, 0.95)  # [5.3]
  min_mean_height: float = 1e-6  # [5.3]

  # Index (6)
  weights: tuple[float, float, float] = (0.4, 0.4, 0.2)  # scale, traj, rigid
  vp_weight: float = 0.0  # the released calculator's fourth term
  grade_bounds: tuple[tuple[str, float], ...] = (
    ("A", 0.1),
    ("B", 0.3),
    ("C", 0.6),
  )  # PDI below the bound; F otherwise
  max_lost_fraction: float = 0.5  # [3] above it a clip is not valid

  # Fidelity guard (7)
  ground_first_row: float = 0.7  # [7.4] of the map's height
  ground_min_points: int = 50  # [7.4] per frame, exclusive
  ground_max_points: int = 5000  # [7.4]
  ground_seed: int = 42  # [7.4]
  ground_max_rms: float = 0.08  # [7.4] exclusive
  jump_epsilon: float = 1e-6  # [7.5]
  max_scale_jump: float = 0.5  # [7.5] exclusive
  reprojection_min_depth: float = 1e-3  # [7.3] recommended, as those below
  reprojection_radius: int = 1
  reprojection_steps: tuple[int, int] = (8, 4)  # B = A + round(T / step)
  min_coverage: float = 0.5
  max_mae: float = 0.15
  max_l2: float = 0.25

  # Diagnostics (9)
  diagnostic_floor: float = 1e-6  # [9.1] log form
  ratio_floor: float = 1.0  # [9.1 ratio form, 9.4] pixels
  transverse_threshold: float = 0.05  # [9.1]
  line_end_fraction: int = 10  # [9.2] T // 10 positions at either end
  min_line_motion: float = 3.0  # [9.2] pixels, inclusive
  low_track_quantile: float = 0.6  # [9.2] foreground tracks by mean y
  min_low_tracks: int = 4  # [9.2]
  min_scene_line: float = 60.0  # [9.2] pixels, inclusive
  horizontal_band: tuple[float, float] = (12.0, 168.0)  # [9.2] degrees, kept
  vanishing_hypotheses: int = 500  # [9.2]
  vanishing_seed: int = 42  # [9.2]
  vanishing_tolerance: float = 20.0  # [9.2]
  vanishing_min_w: float = 1e-8  # [9.2]
  line_epsilon: float = 1e-8  # [9.2]
  min_coupling_offset: float = 5.0  # [9.3] pixels

  # Benchmark statistics (8)
  outlier_pdi: float = 1.0  # [8.1] PDI above it is an outlier
  bootstrap_replicates: int = 10_000  # [8.2] recommended
  bootstrap_seed: int = 0  # [8.2] recommended
  interval_level: float = 0.95  # [8.2]

  # Differences between the variants
  math_pass_over_all: bool = False  # [8.1] denominator includes unaudited
  rescale_tracks: bool = False  # [2.7] video pixels to map pixels
  drop_lost_frames: bool = False  # [3] lost masks leave the scale residual
  drop_nonfinite: bool = False  # [2.8] non-finite points are missing
  storage_types: bool = True  # [0] centroids keep the map's float32
  repeat_first: bool = True  # [4.5] first trajectory value counts twice
  failures_score: bool = True  # [4.5, 5.1] failures score 0 or the sentinel
  first_ratio_is_one: bool = True  # [5.4] 2D fallback includes 1 at frame 0
  vanishing_divides_by_norm: bool = True  # [9.2] inlier distance / |vp|
  check_reprojection: bool = False  # [7.3, 12.12] absent from the release
  scale_jump_counts: bool = True  # [7.5, 12.12] absent from the paper
  anchor_seeds: tuple[int, ...] = ()  # [8.5] empty: all anchors, one run
  anchor_fraction: float = 0.8  # [8.5]


RELEASED = PdiConstants(variant="released")

PAPER = PdiConstants(
  variant="paper",
  resample_fps=24.0,
  max_frames=288,
  min_frames=96,
  math_pass_over_all=True,
  rescale_tracks=True,
  drop_lost_frames=True,
  drop_nonfinite=True,
  storage_types=False,
  repeat_first=False,
  failures_score=False,
  first_ratio_is_one=False,
  vanishing_divides_by_norm=False,
  check_reprojection=True,
  scale_jump_counts=False,
  anchor_seeds=(0, 1, 2, 3, 4),
)


def for_variant(name: str) -> PdiConstants:
  """The constants of a variant.

  Args:
    name: `released` or `paper`.

  Returns:
    The frozen constants.

  Raises:
    ValueError: unknown name.
  """
  known = {"released": RELEASED, "paper": PAPER}
  if name not in known:
    raise ValueError(f"unknown variant {name!r}; known: {sorted(known)}")
  return known[name]
