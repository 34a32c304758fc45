# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Recordings, files, generators and dose tables."""

import dataclasses
import hashlib
import pathlib
from unittest import mock

import numpy as np
from absl.testing import absltest

from perception import observation, video
from protocols.calibration import clips, defects, doses, generators, scenes

_SIZE = (48, 64)


def _scene(category: str = "dynamic_tracking", frames: int = 7) -> scenes.Scene:
  return scenes.make_scene(
    category, seed=0, frames=frames, size=_SIZE, fps=24.0
  )


class RecordTest(absltest.TestCase):
  def test_records_agree_with_each_other(self):
    found = clips.record(_scene(), color=False, anchors=30)
    self.assertIsNone(found.rgb)
    self.assertEqual(found.fps, 24.0)
    self.assertBetween(found.tracks.xy.shape[1], 20, 30)
    self.assertTrue(found.tracks.visible[0].all())
    mask = found.masks.of(clips.SUBJECT_ID)
    column, row = np.rint(found.tracks.xy).astype(int).transpose(2, 0, 1)
    seen = found.tracks.visible
    frame = np.broadcast_to(np.arange(7)[:, None], seen.shape)
    self.assertTrue(mask[frame[seen], row[seen], column[seen]].all())
    np.testing.assert_array_equal(found.geometry.c2w, found.scene.c2w)

  def test_recorded_depth_carries_the_gain_and_the_picture_does_not(self):
    scene = _scene()
    gain = np.linspace(1.0, 2.0, 7)
    worse = dataclasses.replace(scene, depth_gain=gain)
    a, b = (clips.record(s, color=True) for s in (scene, worse))
    np.testing.assert_array_equal(a.rgb, b.rgb)
    np.testing.assert_array_equal(a.masks.masks, b.masks.masks)
    np.testing.assert_allclose(
      b.geometry.depth, a.geometry.depth * gain[:, None, None], rtol=1e-6
    )

  def test_subject_out_of_view_in_frame_0_is_an_error(self):
    scene = _scene()
    gone = scene.motion.without_body_from(0, 0)
    with self.assertRaisesRegex(ValueError, "not in frame 0"):
      clips.record(dataclasses.replace(scene, motion=gone), color=False)

  def test_a_hidden_subject_leaves_empty_masks_and_invisible_tracks(self):
    worse = defects.inject(_scene(), "forgetting", strength=0.43)
    found = clips.record(worse, color=False)
    self.assertFalse(found.masks.masks[0, 4:].any())
    self.assertFalse(found.tracks.visible[4:].any())
    self.assertTrue(found.masks.masks[0, 3].any())


class WriteTest(absltest.TestCase):
  def test_clip_and_observations_come_back(self):
    folder = pathlib.Path(self.create_tempdir().full_path) / "clip"
    found = clips.record(_scene(), color=True)
    clips.write(folder, found)
    clip = video.read_clip(folder / "clip.mp4")
    self.assertLen(clip, 7)
    self.assertEqual(clip.size, _SIZE)
    self.assertEqual(float(clip.fps), 24.0)
    error = clip.frames.astype(int) - found.rgb
    self.assertLess(abs(error).mean(), 4.0)
    geometry = observation.Geometry.load(folder / "geometry.npz")
    np.testing.assert_array_equal(geometry.depth, found.geometry.depth)
    self.assertEqual(geometry.unit, "metre")
    masks = observation.Masks.load(folder / "masks.npz")
    np.testing.assert_array_equal(masks.masks, found.masks.masks)
    tracks = observation.Tracks.load(folder / "tracks.npz")
    np.testing.assert_array_equal(tracks.xy, found.tracks.xy)
    digest = hashlib.sha256((folder / "clip.mp4").read_bytes()).hexdigest()
    for record in (geometry, masks, tracks):
      self.assertEqual(record.provenance.source_sha256, digest)
      self.assertEqual(record.provenance.backend, "ray_cast")

  def test_without_colour_there_is_nothing_to_write(self):
    found = clips.record(_scene(frames=2), color=False)
    with self.assertRaisesRegex(ValueError, "without colour"):
      clips.write(pathlib.Path("unused"), found)


class GeneratorsTest(absltest.TestCase):
  def test_all_get_the_same_scenes_and_one_is_honest(self):
    pristine, *others = generators.GENERATORS
    self.assertLen(others, 4)
    self.assertEqual(pristine.defect, "")
    plain = pristine.scene("curved_motion", seed=1)
    for other in others:
      scene = other.scene("curved_motion", seed=1)
      np.testing.assert_array_equal(scene.c2w, plain.c2w)
      self.assertEqual(scene.world, plain.world)
      self.assertFalse(
        np.array_equal(scene.subject_poses(), plain.subject_poses())
      )

  def test_writes_the_layout_and_continues_a_stopped_run(self):
    root = pathlib.Path(self.create_tempdir().full_path)
    patches = [
      mock.patch.object(generators, "SIZE", _SIZE),
      mock.patch.object(generators, "FRAMES", 3),
      mock.patch.object(scenes, "CATEGORIES", scenes.CATEGORIES[:2]),
      mock.patch.object(generators, "GENERATORS", generators.GENERATORS[::4]),
    ]
    for patch in patches:
      self.enterContext(patch)
    done = list(generators.write_generators(root, clips_per_category=1))
    self.assertLen(done, 4)
    self.assertEqual(
      done[0].relative_to(root),
      pathlib.Path("pristine/longitudinal_convergence/1"),
    )
    (done[0] / clips.LAST_FILE).unlink()
    kept = (done[1] / "clip.mp4").stat().st_mtime_ns
    with mock.patch.object(clips, "record", wraps=clips.record) as record:
      list(generators.write_generators(root, clips_per_category=1))
    self.assertEqual(record.call_count, 1)
    self.assertTrue((done[0] / clips.LAST_FILE).exists())
    self.assertEqual((done[1] / "clip.mp4").stat().st_mtime_ns, kept)

  def test_refuses_no_clips(self):
    with self.assertRaisesRegex(ValueError, "clips_per_category"):
      next(generators.write_generators(pathlib.Path("x"), clips_per_category=0))


class DosesTest(absltest.TestCase):
  def test_means_counts_and_order(self):
    calls = []

    def score(recording):
      calls.append(recording)
      lost = 1.0 - recording.masks.masks[0].any((1, 2)).mean()
      late = recording.scene.category == "dynamic_tracking"
      return {"lost": lost, "odd": 2.0 if late else None, "none": None}

    scenes_ = [_scene(), _scene("curved_motion")]
    told = []
    rows = doses.run(
      score,
      scenes_,
      doses={"forgetting": (0.43, 0.0), "skating": (0.0, 1.0)},
      progress=told.append,
    )
    self.assertEqual(
      [(r.defect, r.strength) for r in rows],
      [
        ("forgetting", 0.0),
        ("forgetting", 0.43),
        ("skating", 0.0),
        ("skating", 1.0),
      ],
    )
    self.assertLen(calls, 6)  # strength 0 is scored once
    self.assertLen(told, 4)
    self.assertAlmostEqual(rows[1].values["lost"], 3 / 7)
    self.assertEqual(rows[1].values["odd"], 2.0)
    self.assertIsNone(rows[1].values["none"])
    self.assertEqual(rows[1].counts, {"lost": 2, "odd": 1, "none": 0})
    self.assertEqual(rows[2].values, rows[0].values)

  def test_refuses_no_scenes(self):
    with self.assertRaisesRegex(ValueError, "scenes"):
      doses.run(lambda _: {}, [])


class ScenesTest(absltest.TestCase):
  def test_seeds_change_and_repeat_scenes(self):
    a, b = _scene(), _scene()
    np.testing.assert_array_equal(a.c2w, b.c2w)
    self.assertEqual(a.world, b.world)
    other = scenes.make_scene(
      "dynamic_tracking", seed=1, frames=7, size=_SIZE, fps=24.0
    )
    self.assertNotEqual(a.world.textures, other.world.textures)

  def test_every_category_is_rigid_smooth_and_changes_depth(self):
    for category in scenes.CATEGORIES:
      with self.subTest(category):
        scene = _scene(category, frames=96)
        rotation = scene.subject_poses()[:, :3, :3]
        np.testing.assert_allclose(
          rotation.transpose(0, 2, 1) @ rotation,
          np.tile(np.eye(3), (96, 1, 1)),
          atol=1e-12,
        )
        speed = np.linalg.norm(
          np.diff(scene.subject_poses()[:, :3, 3], axis=0)[:, [0, 2]], axis=1
        )
        self.assertLess(np.ptp(speed) / speed.mean(), 1e-3)
        depth = scene.subject_depth()
        self.assertGreater(depth[-1] / depth[0], 1.35)

  def test_one_frame_is_allowed_and_none_is_not(self):
    self.assertEqual(_scene(frames=1).frames, 1)
    with self.assertRaisesRegex(ValueError, "frames: found 0"):
      _scene(frames=0)
    with self.assertRaisesRegex(ValueError, "category: found 'dolly'"):
      _scene("dolly")


class ShrunkDepthTest(absltest.TestCase):
  def test_half_size_depth_lifts_to_the_same_surface(self):
    scene = scenes.make_scene(
      "dynamic_tracking", seed=1, frames=2, size=_SIZE, fps=24.0
    )
    full = clips.record(scene, color=False).geometry
    half = clips.record(scene, color=False, depth_shrink=2).geometry
    self.assertEqual(half.depth_size, (_SIZE[0] // 2, _SIZE[1] // 2))
    self.assertEqual(half.video_size, _SIZE)
    # A pixel of the half map lies in the middle of four pixels of the full
    # one: same point of the picture, so its depth is between theirs.
    blocks = full.depth.reshape(2, _SIZE[0] // 2, 2, _SIZE[1] // 2, 2)
    low, high = blocks.min(axis=(2, 4)), blocks.max(axis=(2, 4))
    smooth = high < 1.05 * low
    self.assertGreater(smooth.mean(), 0.25)
    self.assertTrue(np.all(half.depth[smooth] >= 0.999 * low[smooth]))
    self.assertTrue(np.all(half.depth[smooth] <= 1.001 * high[smooth]))

  def test_a_size_that_does_not_divide_is_refused(self):
    scene = scenes.make_scene(
      "dynamic_tracking", seed=1, frames=1, size=_SIZE, fps=24.0
    )
    with self.assertRaisesRegex(ValueError, "does not divide"):
      clips.record(scene, color=False, depth_shrink=5)


if __name__ == "__main__":
  absltest.main()
