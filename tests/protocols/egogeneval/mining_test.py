# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Mining: gates, folder layouts, rows, quotas, training pairs."""

import itertools
import json
import pathlib
import shutil

import cv2
import numpy as np
from absl.testing import absltest, parameterized

from perception.errors import InputError
from protocols.common import manifest as common_manifest
from protocols.egogeneval import (
  assembly,
  benchmark_files,
  constants,
  gates,
  grounding,
  manifest,
  mining,
  scenes,
  training,
)
from tests.shared_files import shared

_GATES = gates.Gates()


def _motion(**values):
  zero = dict.fromkeys(("tx", "ty", "tz", "yaw", "pitch", "roll"), 0.0)
  return gates.Motion(**{**zero, **values})


class GateTest(parameterized.TestCase):
  @parameterized.parameters(
    ({"tz": 0.4}, "forward"),
    ({"tz": -0.4}, "backward"),
    ({"tx": 0.4}, "right"),
    ({"tx": -1.2}, "left"),
    ({"yaw": 20.0}, "yaw_right"),
    ({"yaw": -8.0}, "yaw_left"),
    ({"pitch": 6.0}, "pitch_up"),
    ({"pitch": -20.0}, "pitch_down"),
    ({"pitch": 11.0, "yaw": 13.4}, "pitch_up"),
    ({"tz": 0.14}, None),
    ({"tz": 1.21}, None),
    ({"tz": 0.4, "tx": 0.27}, None),
    ({"tz": 0.4, "ty": 0.27}, None),
    ({"tz": 0.4, "yaw": 12.0}, None),
    ({"yaw": 46.0}, None),
    ({"yaw": 20.0, "tz": 0.25}, None),
    ({"tz": 0.4, "roll": 18.9}, "forward"),
    ({}, None),
  )
  def test_classify(self, values, expected):
    found = gates.classify(_motion(**values), _GATES)
    self.assertEqual(found and found.dominant_action, expected)

  def test_scores_of_the_specification(self):
    found = gates.scores(_motion(tz=0.45, yaw=4.0, pitch=-3.0), _GATES)
    self.assertAlmostEqual(found.translation_score, 3.0)
    self.assertAlmostEqual(found.rotation_score, 0.5)
    self.assertAlmostEqual(found.motion_clarity_score, 6.0)

  def test_stored_pitch_is_positive_up_and_roll_remains(self):
    yaw, up, roll = np.radians([20.0, 10.0, 15.0])
    c, s = np.cos, np.sin
    ry = np.array([[c(yaw), 0, s(yaw)], [0, 1, 0], [-s(yaw), 0, c(yaw)]])
    rx = np.array([[1, 0, 0], [0, c(up), -s(up)], [0, s(up), c(up)]])
    rz = np.array([[c(roll), -s(roll), 0], [s(roll), c(roll), 0], [0, 0, 1]])
    # Ry(20) Rx(10) looks up by 10 in OpenCV axes: pitch down is -10.
    found = gates.motion_of(np.zeros(3), ry @ rx @ rz, 20.0, -10.0)
    self.assertAlmostEqual(found.pitch, 10.0)
    self.assertAlmostEqual(found.roll, 15.0, places=9)

  def test_stored_scores_of_the_samples(self):
    path = shared("samples/egogeneval_manifest_sample.jsonl")
    for _, row in common_manifest.read_jsonl(path):
      found = row["pose_metadata"]
      own = gates.Gates(
        min_trans=found["effective_stage1_thresholds"]["min_trans"]
      )
      for pose in found["relative_poses"]:
        motion = gates.Motion(
          *(pose[k] for k in ("tx", "ty", "tz", "yaw", "pitch", "roll"))
        )
        scored = gates.scores(motion, own)
        for name in ("translation_score", "rotation_score"):
          self.assertAlmostEqual(
            getattr(scored, name) / pose[name], 1, places=6
          )
        action = gates.classify(motion, own)
        self.assertEqual(action and action.atom, pose["action_atom"])


def _write_image(path, value=90):
  path.parent.mkdir(parents=True, exist_ok=True)
  rng = np.random.default_rng(value)
  cv2.imwrite(str(path), rng.integers(0, 255, (24, 32, 3), np.uint8))


def _write_depth(path, counts):
  path.parent.mkdir(parents=True, exist_ok=True)
  image = np.full((24, 32), counts, np.uint16)
  image[0, 0] = 0
  cv2.imwrite(str(path), image)


def _write_text(path, text):
  path.parent.mkdir(parents=True, exist_ok=True)
  path.write_text(text)


def _rows(matrix):
  return "\n".join(" ".join(str(v) for v in row) for row in matrix)


class LayoutTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.root = pathlib.Path(self.create_tempdir().full_path)

  def _check(self, scene, dataset, metres, center):
    self.assertEqual(scene.dataset, dataset)
    self.assertLen(scene.frames, 2)
    frame = scene.frames[1]
    self.assertEqual(frame.image().shape, (24, 32, 3))
    depth = frame.read_depth()
    self.assertAlmostEqual(float(depth[5, 5]), metres, places=5)
    self.assertTrue(np.isnan(depth[0, 0]))
    np.testing.assert_allclose(frame.pose_c2w[:3, 3], center, atol=1e-9)
    self.assertAlmostEqual(frame.intrinsics[0, 0], 30.0)

  def test_scannet(self):
    scene = self.root / "scene0000_00"
    matrix = np.diag([30.0, 30.0, 1.0, 1.0])
    matrix[:2, 2] = 15.5, 11.5
    _write_text(scene / "intrinsic" / "intrinsic_color.txt", _rows(matrix))
    aligned = np.eye(4)
    aligned[0, 3] = 5.0
    _write_text(
      scene / "scene0000_00.txt",
      "axisAlignment = " + " ".join(str(v) for v in aligned.ravel()),
    )
    for i in range(3):
      pose = np.eye(4)
      pose[2, 3] = i
      if i == 2:
        pose[0, 0] = np.inf  # Not tracked.
      _write_image(scene / "color" / f"{i}.jpg", i)
      _write_depth(scene / "depth" / f"{i}.png", 1500)
      _write_text(scene / "pose" / f"{i}.txt", _rows(pose))
    found = scenes.open_scene(scene, layout="scannet")
    self._check(found, "scannet", 1.5, [5.0, 0, 1.0])
    self.assertEqual(found.skipped, 1)
    self.assertEqual(
      found.frames[0].reference, "${SCANNET_ROOT}/scene0000_00/color/0.jpg"
    )

  def test_scannetpp(self):
    root = self.root / "abc" / "dslr"
    frames = []
    for i in range(2):
      pose = np.eye(4)
      pose[0, 3] = i
      frames.append(
        {"file_path": f"DSC{i}.JPG", "transform_matrix": pose.tolist()}
      )
      _write_image(root / "resized_undistorted_images" / f"DSC{i}.jpg", i)
      shutil.move(
        root / "resized_undistorted_images" / f"DSC{i}.jpg",
        root / "resized_undistorted_images" / f"DSC{i}.JPG",
      )
      _write_depth(root / "render_depth" / f"DSC{i}.png", 2000)
    _write_text(
      root / "nerfstudio" / "transforms_undistorted.json",
      json.dumps(
        {"fl_x": 30.0, "fl_y": 30.0, "cx": 16, "cy": 12, "frames": frames}
      ),
    )
    found = scenes.open_scene(self.root / "abc", layout="scannetpp")
    self._check(found, "scannetpp", 2.0, [1.0, 0, 0])
    # OpenGL looks along -z: in OpenCV axes the view turns to +z.
    np.testing.assert_allclose(found.frames[0].pose_c2w[:3, 2], [0, 0, -1])

  def test_matterport3d(self):
    scene = self.root / "house"
    lines = ["intrinsics_matrix 30 0 16 0 30 12 0 0 1"]
    for i in range(2):
      pose = np.eye(4)
      pose[1, 3] = i
      values = " ".join(str(v) for v in pose.ravel())
      lines.append(f"scan d{i}.png c{i}.jpg {values}")
      _write_image(scene / "undistorted_color_images" / f"c{i}.jpg", i)
      _write_depth(scene / "undistorted_depth_images" / f"d{i}.png", 4000)
    _write_text(
      scene / "undistorted_camera_parameters" / "house.conf", "\n".join(lines)
    )
    found = scenes.open_scene(scene, layout="matterport3d")
    self._check(found, "matterport3d", 1.0, [0, 1.0, 0])

  def test_hypersim(self):
    try:
      import h5py
    except ImportError:
      self.skipTest("h5py is not installed")
    camera = self.root / "ai_001_001" / "_detail" / "cam_00"
    camera.mkdir(parents=True)
    images = camera.parent.parent / "images"

    def write(path, values):
      path.parent.mkdir(parents=True, exist_ok=True)
      with h5py.File(path, "w") as content:
        content["dataset"] = values

    write(
      camera / "camera_keyframe_orientations.hdf5",
      np.tile(np.eye(3), (2, 1, 1)),
    )
    write(
      camera / "camera_keyframe_positions.hdf5",
      np.array([[0, 0, 0], [0, 0, 4.0]]),
    )
    _write_text(
      camera.parent / "metadata_scene.csv",
      "name,value\nmeters_per_asset_unit,0.5\n",
    )
    for i in range(2):
      _write_image(
        images / "scene_cam_00_final_preview" / f"frame.{i:04d}.color.jpg", i
      )
      write(
        images
        / "scene_cam_00_geometry_hdf5"
        / f"frame.{i:04d}.depth_meters.hdf5",
        np.full((24, 32), 2.0),
      )
    found = scenes.open_scene(camera, layout="hypersim")
    self.assertEqual(found.scene_id, "ai_001_001/cam_00")
    np.testing.assert_allclose(found.frames[1].pose_c2w[:3, 3], [0, 0, 2.0])
    # Distance 2 m to the corner is less depth; to the middle nearly all.
    depth = found.frames[0].read_depth()
    self.assertLess(float(depth[0, 0]), 1.8)
    self.assertAlmostEqual(float(depth[12, 16]), 2.0, places=2)

  def test_hypersim_without_its_reader_says_what_to_install(self):
    try:
      import h5py  # noqa: F401

      self.skipTest("h5py is installed")
    except ImportError:
      pass
    camera = self.root / "ai" / "_detail" / "cam_00"
    camera.mkdir(parents=True)
    with self.assertRaisesRegex(InputError, "pip install h5py"):
      scenes.open_scene(camera, layout="hypersim")

  def test_wrong_folders_are_named(self):
    for layout in ("7scenes", "scannet", "scannetpp", "matterport3d"):
      with self.subTest(layout), self.assertRaises(InputError):
        scenes.open_scene(self.root, layout=layout)
    with self.assertRaisesRegex(InputError, "layout"):
      scenes.open_scene(self.root, layout="kitti")


class SevenScenesTest(absltest.TestCase):
  """The real sequence, mined once for all tests of the class."""

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    scene = scenes.open_scene(shared("data/sevenscenes"), layout="7scenes")
    cls.config = mining.MiningConfig(stride=3)
    cls.miner = mining.SceneMiner(scene, cls.config)
    cls.mined = cls.miner.mine()
    cls.quotas = assembly.Quotas(atomic=6, chain=2, cycle=4, max_per_scene=100)
    cls.rows = assembly.select([(cls.miner, cls.mined)], cls.quotas)

  def test_every_pair_passes_every_gate(self):
    self.assertNotEmpty(self.mined.pairs)
    for pair in self.mined.pairs:
      self.assertGreaterEqual(pair.visibility.overlap, _GATES.min_overlap)
      self.assertLessEqual(pair.visibility.overlap, _GATES.max_overlap)
      self.assertEqual(gates.classify(pair.motion, _GATES), pair.action)
      self.assertEqual(pair.scores, gates.scores(pair.motion, _GATES))
      self.assertTrue(all(pair.layers) or not pair.action.is_translation)

  def test_overlap_is_symmetric(self):
    pair = self.mined.pairs[0]
    there = self.miner.visibility(pair.source, pair.target)
    back = self.miner.visibility(pair.target, pair.source)
    self.assertEqual(there.overlap, back.overlap)
    self.assertEqual(there.forward_visible, back.backward_visible)

  def test_rows_follow_the_published_rules(self):
    self.assertNotEmpty(self.rows)
    for number, row in enumerate(self.rows):
      case = manifest.parse(row, source="mined", field=f"row {number}")
      self.assertEqual(
        manifest.expected_texts(case), [step.text for step in case.steps]
      )
      if case.protocol == "cycle":
        first, second = manifest.stored_poses(case)
        self.assertEqual(first["yaw"], -second["yaw"])
        self.assertEqual(first["overlap"], second["overlap"])

  def test_selection_is_deterministic_and_within_quota(self):
    again = assembly.select([(self.miner, self.mined)], self.quotas)
    self.assertEqual(self.rows, again)
    counts = benchmark_files.case_counts(self.rows)
    for subtype in constants.SUBTYPES:
      for k in assembly.K_SHARES:
        self.assertLessEqual(
          counts[subtype][f"k{k}"], self.quotas.of_bucket(subtype, k)
        )
    few = assembly.select(
      [(self.miner, self.mined)],
      assembly.Quotas(atomic=20, max_per_scene=7),
    )
    self.assertLessEqual(len(few), 7)

  def test_stored_motion_agrees_with_the_scored_one(self):
    pair = self.mined.pairs[0]
    source, target = (
      self.miner.scene.frames[row].pose_c2w
      for row in (pair.source, pair.target)
    )
    relative = grounding.relative_from_extrinsics(
      np.stack([np.linalg.inv(source), np.linalg.inv(target)])
    )
    # Recorded rotations are orthonormal to 1e-4 only.
    self.assertAlmostEqual(float(relative[0, 3]), pair.motion.tx, places=3)
    self.assertAlmostEqual(float(relative[2, 3]), pair.motion.tz, places=3)

  def test_training_pairs_are_teacher_forced(self):
    rows = training.trajectories([(self.miner, self.mined)], 2, seed=0)
    self.assertEqual(
      rows, training.trajectories([(self.miner, self.mined)], 2, seed=0)
    )
    for row in rows:
      pairs = training.pairs(row)
      self.assertLen(pairs, len(row["target_images"]))
      inputs = [image["image_path"] for image in row["input_images"]]
      self.assertEqual(pairs[0]["reference_images"], inputs)
      for before, after in itertools.pairwise(pairs):
        self.assertEqual(after["reference_images"][0], before["target_image"])
      for pair, step in zip(pairs, row["instructions"], strict=True):
        self.assertEqual(pair["text"], step["text"])
    for miner, candidate in (
      (self.miner, c)
      for c in assembly.candidates(self.mined)["A3_yaw_rotation"]
    ):
      consistent = training.is_consistent(candidate, miner.config)
      shares = (
        candidate.steps[0].visibility.forward_visible,
        candidate.steps[0].visibility.backward_visible,
      )
      self.assertEqual(consistent, all(0.35 <= s <= 0.85 for s in shares))

  def test_blocked_scenes_are_refused(self):
    with self.assertRaisesRegex(InputError, "blocklist"):
      assembly.refuse_blocked(
        [("synthetic", "sevenscenes")],
        [("synthetic", "sevenscenes"), ("scannet", "x")],
        source="blocklist",
      )


if __name__ == "__main__":
  absltest.main()
