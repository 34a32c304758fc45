# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Manifest rows of every kind that the specification allows.

Rows are built here from the specification's own strings (sections 10, 12.1),
without the project's row builder: 4 sources x 9 subtypes x 4 sizes of context
x 2 directions. Schema, ids, roles, cycle rule and instruction text must agree.
"""

import copy
import itertools
import json

from absl.testing import absltest, parameterized

from perception.errors import InputError
from protocols.egogeneval import actions, formats, manifest

_KEEP = (
  "Keep the same static 3D scene, object identities, spatial layout, relative"
  " depth order, and perspective consistency."
)
_BEFORE = (
  "Image 1 is the current view and should be used as the starting point. The"
  " other images are auxiliary context views of the same scene. Starting from"
  " Image 1, generate the new view after the following camera motion: "
)
_AFTER = (
  " Use the auxiliary images only to preserve scene identity and spatial"
  " layout. Do not simply copy any input image."
)
_MOVE = "Move the camera mainly {} by about {:.2f} meters, with only minor {}"
_CLAUSES = {
  "A1": lambda v: _MOVE.format(
    "forward" if v > 0 else "backward", abs(v),
    "sideways shift and minor rotation.",
  ),
  "A2": lambda v: _MOVE.format(
    "to the right" if v > 0 else "to the left", abs(v),
    "forward/backward shift and minor rotation.",
  ),
  "A3": lambda v: (
    f"Rotate the camera mainly to the {'right' if v > 0 else 'left'} by about"
    f" {abs(v):.1f} degrees, with only minor camera translation."
  ),
  "A4": lambda v: (
    f"Tilt the camera mainly {'upward' if v > 0 else 'downward'} by about"
    f" {abs(v):.1f} degrees, with only minor camera translation and minor yaw"
    " rotation."
  ),
}  # fmt: skip
# Component, family, long name, (positive, negative) action, atom.
_ATOMS = {
  "A1": ("tz", "translation", "A1_forward_backward", ("forward", "backward"),
         "FB"),
  "A2": ("tx", "translation", "A2_lateral_strafe", ("right", "left"), "LR"),
  "A3": ("yaw", "rotation", "A3_yaw_rotation", ("yaw_right", "yaw_left"),
         "YAW"),
  "A4": ("pitch", "rotation", "A4_pitch_rotation", ("pitch_up", "pitch_down"),
         "PITCH"),
}  # fmt: skip
_SUBTYPES = {
  "A1_forward_backward": ("A1",),
  "A2_lateral_strafe": ("A2",),
  "A3_yaw_rotation": ("A3",),
  "A4_pitch_rotation": ("A4",),
  "C1_translation_chain": ("A2", "A2", "A2"),
  "C2_rotation_chain": ("A4", "A4", "A4"),
  "C3_mixed_chain": ("A3", "A4", "A3"),
  "Y1_translation_cycle": ("A1", "-A1"),
  "Y2_rotation_cycle": ("A3", "-A3"),
}
_SOURCES = {
  "hypersim": ("ai_001_002/cam_00", "HYPERSIM_ROOT"),
  "matterport3d": ("1mp3d_0004_region12", "MATTERPORT3D_ROOT"),
  "scannet": ("scene0000_00", "SCANNET_ROOT"),
  "scannetpp": ("0a5c013435abc", "SCANNETPP_ROOT"),
}
_RULE = "replace current image with previous generated image for chain/cycle"
# Exact halves round to even, as printf does; float32 values print as doubles.
_SIZES = {"A1": 0.625, "A2": 1.2000000476837158, "A3": 8.25, "A4": 24.95}


def _row(dataset, subtype, inputs, sign):
  scene, root = _SOURCES[dataset]
  steps = _SUBTYPES[subtype]
  protocol = {"A": "atomic", "C": "chain", "Y": "cycle"}[subtype[0]]
  frames = [str(5 * i) for i in range(len(steps) + 1)]
  if protocol == "cycle":
    frames[-1] = frames[0]

  def image(role, frame):
    path = f"${{{root}}}/{scene}/images/{frame}.jpg"
    return {"role": role, "image_path": path, "frame_id": frame}

  entries, poses = [], []
  for number, name in enumerate(steps, 1):
    key = name.removeprefix("-")
    value = _SIZES[key] * sign * (-1 if name.startswith("-") else 1)
    component, family, atomic, words, atom = _ATOMS[key]
    clause = _CLAUSES[key](value)
    text = f"{clause} {_KEEP}"
    if inputs > 1:
      text = f"{_BEFORE}{clause} {_KEEP}{_AFTER}"
    meta = {
      "dominant_action": words[value < 0],
      "action_family": family,
      "atomic_subtype": atomic,
    }
    entries.append({"step": number, "text": text, **meta})
    numbers = dict.fromkeys(("tx", "ty", "tz", "yaw", "pitch", "roll"), 0.01)
    numbers[component] = value
    poses.append(
      {
        "step": number,
        **numbers,
        **meta,
        "action_atom": atom + ("+" if value > 0 else "-"),
        "overlap": 0.6,
        "residual_motion": numbers,
      }
    )
  context = "single1" if inputs == 1 else f"multi{inputs}"
  stem = "__".join(
    (dataset, scene.replace("/", "_"), protocol, subtype, "_".join(frames))
  )
  return {
    "sample_id": f"{stem}__{context}",
    "root_sample_id": f"{stem}__root0",
    "dataset": dataset,
    "scene_id": scene,
    "context_type": "single" if inputs == 1 else "multi",
    "num_context_images": inputs,
    "instruction_type": protocol,
    "subtype": subtype,
    "input_images": [
      image("current", frames[0]),
      *(
        image("auxiliary_context", str(900 + 5 * i)) for i in range(inputs - 1)
      ),
    ],
    "target_images": [
      image(f"target_step_{m}", frame) for m, frame in enumerate(frames[1:], 1)
    ],
    "instructions": entries,
    "evaluation_protocol": {
      "call_mode": {
        "atomic": "single_step",
        "chain": "autoregressive_chain",
        "cycle": "two_step_inverse_cycle",
      }[protocol],
      "num_model_calls": len(steps),
      "use_teacher_forcing": False,
      "current_view_update_rule": (
        "single-step target is generated from Image 1"
        if protocol == "atomic"
        else _RULE
      ),
    },
    "pose_metadata": {
      "depth_layers": {"has_near": True, "has_mid": True, "has_far": True},
      "target_relation_to_context": None if inputs == 1 else "near_boundary",
      "relative_poses": poses,
    },
  }


def _parse(row):
  return manifest.parse(row, source="m.jsonl", field="line 1")


class EveryRowTest(parameterized.TestCase):
  @parameterized.parameters(*itertools.product(_SOURCES, _SUBTYPES))
  def test_row(self, dataset, subtype):
    for inputs, sign in itertools.product((1, 2, 3, 4), (1, -1)):
      row = _row(dataset, subtype, inputs, sign)
      case = _parse(json.loads(formats.dump(row)))
      self.assertEqual(
        manifest.expected_texts(case), [step.text for step in case.steps]
      )
      self.assertLen(case.inputs, inputs)
      for step, name in zip(case.steps, _SUBTYPES[subtype], strict=True):
        component = actions.component_of({**step.meta, "subtype": subtype})
        self.assertTrue(
          component.name.startswith(_ATOMS[name.removeprefix("-")][0])
        )
      self.assertEqual(case.physical_source(1).path, case.inputs[0].path)

  def test_exact_halves_print_like_printf(self):
    text = _row("scannet", "A1_forward_backward", 1, 1)["instructions"][0][
      "text"
    ]
    self.assertIn("by about 0.62 meters", text)
    text = _row("scannet", "A2_lateral_strafe", 1, -1)["instructions"][0][
      "text"
    ]
    self.assertIn("to the left by about 1.20 meters", text)
    text = _row("scannet", "A3_yaw_rotation", 1, 1)["instructions"][0]["text"]
    self.assertIn("by about 8.2 degrees", text)

  def test_what_may_be_left_out_or_null(self):
    row = _row("scannetpp", "A1_forward_backward", 1, 1)
    row["pose_metadata"] = {}
    del row["evaluation_protocol"]["current_view_update_rule"]
    for name in ("dominant_action", "action_family", "atomic_subtype"):
      del row["instructions"][0][name]
    for image in (*row["input_images"], *row["target_images"]):
      image["frame_id"] = int(image["frame_id"])
    case = _parse(row)
    # Without a label the subtype names the component (3.2).
    component = actions.component_of({"subtype": case.subtype})
    self.assertEqual(component.name, "tz_forward_m")
    row["evaluation_protocol"]["current_view_update_rule"] = None
    _parse(row)

  @parameterized.parameters(
    ("C2_rotation_chain", "target_images", 2, "role", "target_step_2"),
    ("Y2_rotation_cycle", "target_images", 1, "frame_id", "7"),
    ("Y1_translation_cycle", "target_images", 1, "image_path", "${R}/a.png"),
    ("C3_mixed_chain", "instructions", 0, "step", 0),
    ("A4_pitch_rotation", "input_images", 1, "role", "current"),
  )
  def test_a_broken_rule_is_refused(self, subtype, part, index, key, value):
    row = copy.deepcopy(_row("scannet", subtype, 2, 1))
    row[part][index][key] = value
    with self.assertRaisesRegex(InputError, "m.jsonl: line 1"):
      _parse(row)

  def test_context_that_is_a_target_is_refused_in_a_cycle_too(self):
    row = _row("scannet", "Y1_translation_cycle", 2, 1)
    row["input_images"][1]["image_path"] = row["target_images"][0]["image_path"]
    with self.assertRaisesRegex(InputError, "input_images that are targets"):
      _parse(row)


if __name__ == "__main__":
  absltest.main()
