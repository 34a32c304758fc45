# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Rollouts on a drawn scene: what a generator sees, resume, references."""

import pathlib
import sys

import cv2
import numpy as np
from absl.testing import absltest, parameterized

from perception.errors import InputError
from protocols.egogeneval import (
  formats,
  frame_files,
  manifest,
  predictions,
  references,
  rollout,
)
from tests.protocols.egogeneval import sample_rows

_SIZE = (24, 32)
_K = np.array([[30.0, 0, 15.5], [0, 30.0, 11.5], [0, 0, 1]])
REQUESTS = []


def brighten(request):
  """An entry point: the current view, one grey level brighter, as a clip."""
  REQUESTS.append(request)
  image = request.images[0]
  return np.stack([image, image + 1])


def wrong(request):
  """An entry point that gives no image."""
  del request
  return np.zeros(3)


def write_scene(root: pathlib.Path, rows) -> None:
  """Images, depth and frame rows of every image of some manifest rows."""
  references_seen = sorted(
    {
      image["image_path"]
      for row in rows
      for name in ("input_images", "target_images")
      for image in row[name]
    }
  )
  written = []
  for number, reference in enumerate(references_seen):
    rng = np.random.default_rng(number)
    small = rng.integers(0, 200, (6, 8, 3), np.uint8)
    image = cv2.resize(small, (2 * _SIZE[1], 2 * _SIZE[0]))
    name = frame_files.asset_id(reference)
    cv2.imwrite(str(root / f"{name}.png"), image)
    np.save(root / f"{name}.npy", np.full(_SIZE, 2.0, np.float32))
    pose = np.eye(4)
    pose[2, 3] = 0.1 * number
    written.append(
      {
        "asset_id": name,
        "dataset": "synthetic",
        "scene_id": "s1",
        "image_ref": reference,
        "loader_frame_idx": number,
        "image_path": f"{name}.png",
        "depth_path": f"{name}.npy",
        "rgb_sha256": formats.sha256_of_file(root / f"{name}.png"),
        "depth_sha256": formats.sha256_of_file(root / f"{name}.npy"),
        "image_height": _SIZE[0],
        "image_width": _SIZE[1],
        "depth_height": _SIZE[0],
        "depth_width": _SIZE[1],
        "extrinsics_c2w": pose.tolist(),
        "intrinsics": _K.tolist(),
        "asset_format_version": frame_files.FORMAT_VERSION,
        "preprocessing": frame_files.PREPROCESSING,
        "resize_stages": [0.5],
        "calibration_source": "drawn",
        "asset_revision": None,
      }
    )
  formats.write_rows(root / "eval_frames.jsonl", written)
  formats.write_rows(root / "manifest.jsonl", rows)


class RolloutTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.root = pathlib.Path(self.create_tempdir().full_path)
    rows = [
      sample_rows.manifest_row("atomic", inputs=2),
      sample_rows.manifest_row("chain"),
      sample_rows.manifest_row("cycle"),
    ]
    write_scene(self.root, rows)
    REQUESTS.clear()

  def _config(self, name="out", **options):
    return rollout.RolloutConfig(
      manifest=self.root / "manifest.jsonl",
      eval_frames=self.root / "eval_frames.jsonl",
      output=self.root / name,
      model_id="demo",
      **options,
    )

  def _run(self, name="out", **options):
    text = rollout.run(self._config(name, **options))
    content = manifest.read(self.root / "manifest.jsonl")
    _, outputs = predictions.read(
      self.root / name / "predictions.jsonl", content
    )
    return text, outputs

  def test_entry_point_sees_its_own_output_and_no_target(self):
    _, outputs = self._run(entry_point=f"{__name__}:brighten")
    self.assertLen(outputs, 6)
    atomic, chain = REQUESTS[0], REQUESTS[1:4]
    self.assertLen(atomic.images, 2)
    for request in REQUESTS:
      self.assertNotIn("target_images", request.row)
      self.assertNotIn("pose_metadata", request.row)
    first = chain[0].images[0].astype(int)
    for step, request in enumerate(chain):
      np.testing.assert_array_equal(request.images[0], first + step)
    last = predictions.load_image(outputs[3].path)
    np.testing.assert_array_equal(last, first + 3)

  def test_a_killed_run_resumes_with_the_same_bytes(self):
    self._run(entry_point=f"{__name__}:brighten")
    whole = (self.root / "out" / "predictions.jsonl").read_bytes()
    log = self.root / "out" / "rollout.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:3]) + lines[3][:20])
    (self.root / "out" / "predictions.jsonl").unlink()
    REQUESTS.clear()
    text, _ = self._run(entry_point=f"{__name__}:brighten")
    self.assertIn("3 made, 3 kept", text)
    self.assertLen(REQUESTS, 3)
    again = (self.root / "out" / "predictions.jsonl").read_bytes()
    self.assertEqual(again, whole)

  def test_a_damaged_output_is_made_again(self):
    _, outputs = self._run(entry_point=f"{__name__}:brighten")
    outputs[0].path.write_bytes(b"cut")
    text, _ = self._run(entry_point=f"{__name__}:brighten")
    self.assertIn("1 made, 5 kept", text)

  def test_command_line(self):
    script = self.root / "copy.py"
    script.write_text(
      "import shutil, sys\n"
      "assert open(sys.argv[2]).read().endswith('consistency.') or True\n"
      "shutil.copy(sys.argv[1] + '/image1.png', sys.argv[3])\n"
    )
    command = f"{sys.executable} {script} {{images}} {{prompt}} {{output}}"
    _, outputs = self._run(command=command)
    self.assertLen(outputs, 6)

  def test_failing_command_names_case_and_step(self):
    with self.assertRaisesRegex(InputError, "step 1: found exit code 3"):
      self._run(command=f"{sys.executable} -c 'raise SystemExit(3)'")

  @parameterized.named_parameters(
    ("none", {}, "exactly one"),
    ("two", {"reference": "oracle", "command": "x"}, "exactly one"),
    ("unknown", {"reference": "magic"}, "--reference"),
    ("module", {"entry_point": "no_such_module:f"}, "--entry_point"),
    ("output", {"entry_point": f"{__name__}:wrong"}, "output of step 1"),
  )
  def test_bad_generators(self, options, words):
    with self.assertRaisesRegex(InputError, words):
      self._run(**options)

  def test_oracle_and_source_copy(self):
    content = manifest.read(self.root / "manifest.jsonl")
    stored = frame_files.read(self.root / "eval_frames.jsonl")
    _, oracle = self._run("oracle", reference="oracle")
    _, copies = self._run("copy", reference="source_copy")
    steps = [(case, step) for case in content.cases for step in case.steps]
    for (case, step), target, copied in zip(steps, oracle, copies, strict=True):
      np.testing.assert_array_equal(
        predictions.load_image(target.path),
        frame_files.of_case(stored, step.target).native,
      )
      np.testing.assert_array_equal(
        predictions.load_image(copied.path),
        frame_files.of_case(stored, case.inputs[0]).native,
      )

  def test_nearest_input_never_takes_the_target(self):
    _, outputs = self._run(reference="nearest_input_copy")
    stored = frame_files.read(self.root / "eval_frames.jsonl")
    content = manifest.read(self.root / "manifest.jsonl")
    inputs = [
      frame_files.of_case(stored, ref).native for ref in content.cases[0].inputs
    ]
    found = predictions.load_image(outputs[0].path)
    self.assertTrue(any(np.array_equal(found, image) for image in inputs))


class WarpTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    rng = np.random.default_rng(0)
    self.view = references.ReferenceView(
      rng.integers(0, 255, (*_SIZE, 3), np.uint8),
      np.full(_SIZE, 3.0, np.float32),
      np.eye(4),
      _K,
    )

  def test_sideways_motion_shifts_by_the_disparity(self):
    pose = np.eye(4)
    pose[0, 3] = 0.5  # 30 px focal, 3 m: 5 px to the left.
    found = references.warp(self.view, pose)
    inner = (slice(2, -2), slice(2, -8))
    np.testing.assert_allclose(found.depth[inner], 3.0, atol=1e-4)
    moved = np.roll(self.view.image, -5, axis=1)
    same = np.all(found.image[inner] == moved[inner], axis=-1)
    self.assertGreater(float(same.mean()), 0.3)

  def test_fraction_of_a_motion(self):
    relative = np.eye(4)
    relative[:3, :3] = cv2.Rodrigues(np.radians([0, 30.0, 0]))[0]
    relative[:3, 3] = [1.0, 0, 2.0]
    found = references.fraction_of(relative, 0.4)
    np.testing.assert_allclose(found[:3, 3], [0.4, 0, 0.8])
    angle = np.degrees(np.arctan2(found[0, 2], found[2, 2]))
    self.assertAlmostEqual(float(angle), 12.0)
    np.testing.assert_allclose(references.fraction_of(relative, 1.0), relative)


if __name__ == "__main__":
  absltest.main()
