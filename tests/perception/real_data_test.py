# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The offline roles on real footage; skipped where ../shared is absent.

Boxes were chosen by eye on the first frame and the results looked at once as
overlays; the bounds below keep what was seen.
"""

import itertools

import numpy as np
from absl.testing import absltest, parameterized

from perception import decoding, recorded, registry, roles, seeding, video
from tests.perception import media

# Object boxes on the first frame (x_min, y_min, x_max, y_max).
_BACKPACK = (208, 116, 284, 278)
_CUP = (827, 288, 1003, 549)
_CHAIR = (172, 122, 304, 240)
_MUG = (355, 158, 402, 206)


def _perceive(clip, *boxes):
  """Masks of the boxes and tracks seeded on them."""
  prompts = [roles.ObjectPrompt(k, box=box) for k, box in enumerate(boxes)]
  masks = registry.get("masks", "grabcut_flow").segment(clip, prompts)
  queries = seeding.seed_queries(
    clip.frames[0], masks.masks[:, 0], masks.object_ids
  )
  tracks = registry.get("tracks", "lucas_kanade").track(clip, queries)
  return masks, tracks


def _share_inside(masks, tracks, object_id):
  """Share of an object's visible points that lie in its mask."""
  mask, points = masks.of(object_id), tracks.of(object_id)
  row, point = np.nonzero(points.visible & mask.any(axis=(1, 2))[:, None])
  x, y = np.rint(points.xy[row, point]).astype(int).T
  x = np.clip(x, 0, mask.shape[2] - 1)
  y = np.clip(y, 0, mask.shape[1] - 1)
  return float(mask[row, y, x].mean())


class RealDataTest(parameterized.TestCase):
  """Videos and the RGB-D sequence of ../shared/data."""

  def setUp(self):
    super().setUp()
    if not media.DATA.is_dir():
      self.skipTest("../shared/data is absent")

  @parameterized.parameters(
    ("apple", 50, (720, 1296), 10, 4.9),
    ("backpack", 87, (480, 368), 20, 4.3),
    ("paragliding-launch", 80, (480, 854), 30, 79 / 30),
  )
  def test_every_clip_decodes(self, name, count, size, fps, last):
    clip = video.open_video(media.DATA / "videos" / f"{name}.mp4")
    self.assertLen(clip, count)
    self.assertEqual((clip.size, clip.fps), (size, fps))
    self.assertAlmostEqual(float(clip.timestamps[-1]), last)

  def test_backpack_is_held_while_it_turns(self):
    """A rigid object that shows another side while the camera moves."""
    clip = video.read_clip(media.DATA / "videos" / "backpack.mp4")
    masks, tracks = _perceive(clip.select(np.arange(24)), _BACKPACK)
    area = masks.of(0).sum(axis=(1, 2))
    self.assertGreater(int(area.min()), 6000)
    self.assertLess(int(area.max()), 16000)
    self.assertGreater(_share_inside(masks, tracks, 0), 0.75)

  def test_cup_is_lost_when_hands_cover_it(self):
    path = media.DATA / "videos" / "cups.mp4"
    stream = decoding.decode(path, decoding.Timeline(), pixels=True)
    frames = list(itertools.islice(stream, 0, 120, 3))
    stream.close()
    clip = video.clip_from_frames(np.stack(frames), fps=10)
    masks, tracks = _perceive(clip, _CUP)
    area = masks.of(0).sum(axis=(1, 2))
    self.assertTrue(np.all(area[:20] > 25000))
    lost = int(np.argmax(area == 0))
    self.assertBetween(lost, 20, 39)
    self.assertFalse(masks.of(0)[lost:].any())
    self.assertGreater(_share_inside(masks, tracks, 0), 0.9)

  def test_static_objects_of_the_rgbd_sequence(self):
    """Lifted points of a static object stay where they are in the world."""
    source = recorded.open_rgbd(media.DATA / "sevenscenes", fps=6)
    self.assertLen(source, 60)
    rows = np.arange(14)
    clip, geometry = source.clip(rows), source.geometry(rows)
    masks, tracks = _perceive(clip, _CHAIR, _MUG)
    for object_id, (least, most) in ((0, (10000, 20000)), (1, (800, 2400))):
      area = masks.of(object_id).sum(axis=(1, 2))
      self.assertGreater(int(area.min()), least)
      self.assertLess(int(area.max()), most)
      self.assertGreater(_share_inside(masks, tracks, object_id), 0.7)
    points = tracks.of(1)
    columns = np.rint(points.xy[..., 0]).astype(int)
    lines = np.rint(points.xy[..., 1]).astype(int)
    depth = geometry.depth[rows[:, None], lines, columns]
    rays = np.linalg.solve(
      geometry.intrinsics[0].astype(float),
      np.stack([points.xy[..., 0], points.xy[..., 1], np.ones(depth.shape)])
      .reshape(3, -1)
      .astype(float),
    )
    camera = (rays * depth.reshape(-1)).T.reshape(*depth.shape, 3)
    rotation, centre = geometry.c2w[:, :3, :3], geometry.c2w[:, :3, 3]
    world = np.einsum("tij,tnj->tni", rotation, camera) + centre[:, None]
    world[~points.visible] = np.nan
    drift = np.linalg.norm(world - world[0], axis=-1)
    # The camera moves 0.34 m and depth is registered only approximately.
    self.assertLess(float(np.nanmedian(drift, axis=1).max()), 0.06)  # metres


if __name__ == "__main__":
  absltest.main()
