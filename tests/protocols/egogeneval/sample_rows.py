# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Invented manifest rows and evidence rows for the tests of this folder."""

from protocols.egogeneval import constants, instructions, manifest

SUBTYPE = {
  "atomic": "A1_forward_backward",
  "chain": "C1_translation_chain",
  "cycle": "Y1_translation_cycle",
}


def manifest_row(protocol, *, inputs=1, scene="s1", value=0.4):
  """A valid row of a protocol; cycles return with the opposite number."""
  subtype = SUBTYPE[protocol]
  steps = constants.STEPS_OF_PROTOCOL[protocol]
  frames = [str(10 * i) for i in range(steps + 1)]
  if protocol == "cycle":
    frames[-1] = frames[0]
  values = [value] * steps
  if protocol == "cycle":
    values[1] = -value
  names = ("synthetic", scene, subtype, frames)
  context = "single1" if inputs == 1 else f"multi{inputs}"

  def image(role, frame):
    path = f"${{SYNTHETIC_ROOT}}/{scene}/{frame}.png"
    return {"role": role, "image_path": path, "frame_id": frame}

  entries, poses = [], []
  for number, v in enumerate(values, 1):
    action = instructions.action_for("A1_forward_backward", v)
    meta = {
      "dominant_action": action.dominant_action,
      "action_family": action.family,
      "atomic_subtype": action.subtype,
    }
    text = instructions.text(action.subtype, v, inputs=inputs)
    entries.append({"step": number, "text": text, **meta})
    poses.append({"step": number, "tz": v, "action_atom": action.atom, **meta})
  return {
    "sample_id": manifest.case_id(*names, context),
    "root_sample_id": manifest.case_id(*names, "root0"),
    "dataset": "synthetic",
    "scene_id": scene,
    "context_type": "single" if inputs == 1 else "multi",
    "num_context_images": inputs,
    "instruction_type": protocol,
    "subtype": subtype,
    "input_images": [
      image("current", frames[0]),
      *(image("auxiliary_context", f"9{i}") for i in range(inputs - 1)),
    ],
    "target_images": [
      image(f"target_step_{n}", frame) for n, frame in enumerate(frames[1:], 1)
    ],
    "instructions": entries,
    "evaluation_protocol": {
      "call_mode": manifest.CALL_MODES[protocol],
      "num_model_calls": steps,
      "use_teacher_forcing": False,
      "current_view_update_rule": manifest.UPDATE_RULES[protocol],
    },
    "pose_metadata": {"relative_poses": poses},
  }


def case_id(protocol, scene="s1"):
  """A case id of a protocol."""
  return f"synthetic__{scene}__{protocol}__{SUBTYPE[protocol]}__0_1__single1"


def cmg_row(record_id, *, expected=0.4, estimate=0.3):
  """A camera row."""
  return {
    "id": record_id,
    "action_component": "tz_forward_m",
    "action_expected": expected,
    "action_pred": estimate,
    "action_abs_err": abs(estimate - expected),
    "action_sign_correct": float(expected * estimate > 0),
    "action_unit": "m",
  }


def ssp_row(record_id, *, targets=1, matches=1, candidates=None):
  """A scene row with boxes side by side."""

  def box(i, shift=0.0):
    return [40.0 * i + shift, 10.0, 40.0 * i + 20.0 + shift, 30.0]

  found = range(matches)
  return {
    "id": record_id,
    "num_gt_objects": targets,
    "num_pred_all": matches if candidates is None else candidates,
    "num_matched": matches,
    "center_error_norm": 0.1 if matches else None,
    "object_integrity": 0.8 if matches else None,
    "objects": [
      {
        "gt_idx": i,
        "pred_idx": i if i in found else None,
        "status": "match" if i in found else "missing",
        "gt_box": box(i),
        "pred_box": box(i, 2.0) if i in found else None,
      }
      for i in range(targets)
    ],
    "object_depths": [
      {
        "gt_idx": i,
        "pred_idx": i if i in found else None,
        "gt_median_depth": 1.0 + i,
        "pred_median_depth": 2.0 + i if i in found else None,
      }
      for i in range(targets)
    ],
  }
