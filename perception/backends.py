# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The table of backends. Adding one is adding a line here.

Nothing is imported from the backends' own modules: see `perception.registry`.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Spec:
  """A registered backend.

  Attributes:
    role: one of `roles.ROLES`.
    name: unique within the role.
    target: `module:Class`; the class takes the settings as keywords.
    licence: of the code and, after a slash, of the weights.
    comparable_to_published: whether scores that rest on it may be set beside
      the published tables.
    summary: one line for people.
    requires: top-level modules that must be installed.
    environment: environment variables that must be set.
    install: what to type when a module is absent.
    probe: `module:function` of an extra test that imports nothing heavy, for
      example of weights on disk; it returns the reason why the backend cannot
      run, or an empty string. Empty: no extra test.
  """

  role: str
  name: str
  target: str
  licence: str
  comparable_to_published: bool
  summary: str
  requires: tuple[str, ...] = ()
  environment: tuple[str, ...] = ()
  install: str = ""
  probe: str = ""


_OURS = "Apache-2.0"
_TRANSFORMERS_MODULES = ("torch", "torchvision", "transformers")
_EXTRA_INSTALL = "pip install 'worldgauge[perception]'"
_DA3_MODULES = (
  "torch",
  "safetensors",
  "addict",
  "einops",
  "omegaconf",
  "evo",
  "depth_anything_3",
)
_DA3_INSTALL = (
  f"{_EXTRA_INSTALL} e3nn evo && pip install --no-deps depth-anything-3==0.1.1"
)

SPECS: tuple[Spec, ...] = (
  Spec(
    role="geometry",
    name="recorded",
    target="perception.replay:RecordedGeometry",
    licence=_OURS,
    comparable_to_published=False,
    summary="depth and poses read from an RGB-D folder or an .npz",
  ),
  Spec(
    role="geometry",
    name="opencv",
    target="perception.offline_geometry:OpenCvGeometry",
    licence=_OURS,
    comparable_to_published=False,
    summary="static scenes: SIFT, bundle adjustment, plane sweep; CPU",
    requires=("cv2",),
  ),
  Spec(
    role="geometry",
    name="megasam",
    target="perception.megasam:MegaSamGeometry",
    licence="Apache-2.0 / results of MegaSaM, made elsewhere",
    comparable_to_published=True,
    summary="depth and poses from the .npz files of MegaSaM, PDI's backbone",
  ),
  Spec(
    role="masks",
    name="grabcut_flow",
    target="perception.offline_masks:GrabCutFlowMasks",
    licence=_OURS,
    comparable_to_published=False,
    summary="box -> GrabCut, carried by dense optical flow; CPU",
    requires=("cv2",),
  ),
  Spec(
    role="masks",
    name="recorded",
    target="perception.replay:RecordedMasks",
    licence=_OURS,
    comparable_to_published=False,
    summary="masks read from an .npz",
  ),
  Spec(
    role="tracks",
    name="lucas_kanade",
    target="perception.offline_tracks:LucasKanadeTracks",
    licence=_OURS,
    comparable_to_published=False,
    summary="pyramidal Lucas-Kanade, forward-backward visibility; CPU",
    requires=("cv2",),
  ),
  Spec(
    role="tracks",
    name="recorded",
    target="perception.replay:RecordedTracks",
    licence=_OURS,
    comparable_to_published=False,
    summary="tracks read from an .npz",
  ),
  Spec(
    role="features",
    name="gradient_orientation",
    target="perception.offline_features:GradientOrientationFeatures",
    licence=_OURS,
    comparable_to_published=False,
    summary="dense gradient-orientation histograms; CPU",
    requires=("cv2",),
  ),
  Spec(
    role="features",
    name="recorded",
    target="perception.replay:RecordedFeatures",
    licence=_OURS,
    comparable_to_published=False,
    summary="descriptors read from an .npz",
  ),
  Spec(
    role="detections",
    name="recorded",
    target="perception.replay:RecordedDetections",
    licence=_OURS,
    comparable_to_published=False,
    summary="boxes read from an .npz",
  ),
  Spec(
    role="vision_language",
    name="recorded",
    target="perception.replay:RecordedAnswers",
    licence=_OURS,
    comparable_to_published=False,
    summary="answers read from a JSONL transcript by request digest",
  ),
  Spec(
    role="perceptual_distance",
    name="recorded",
    target="perception.replay:RecordedDistances",
    licence=_OURS,
    comparable_to_published=False,
    summary="distances read from a JSONL file by image digests",
  ),
  Spec(
    role="quality",
    name="recorded",
    target="perception.replay:RecordedQuality",
    licence=_OURS,
    comparable_to_published=False,
    summary="scores read from a JSONL file by image digest",
  ),
  Spec(
    role="geometry",
    name="depth_anything3",
    target="perception.neural.depth_anything3:DepthAnything3",
    licence="Apache-2.0 / CC-BY-NC-4.0",
    comparable_to_published=False,
    summary="joint or streamed multi-view geometry (DA3-GIANT); GPU",
    requires=_DA3_MODULES,
    install=_DA3_INSTALL,
  ),
  Spec(
    role="geometry",
    name="depth_anything3_pair",
    target="perception.neural.depth_anything3:DepthAnything3Pair",
    licence="Apache-2.0 / CC-BY-NC-4.0",
    comparable_to_published=True,
    summary="camera motion between two frames, EgoGenEval's settings; GPU",
    requires=_DA3_MODULES,
    install=_DA3_INSTALL,
  ),
  Spec(
    role="geometry",
    name="depth_anything3_single",
    target="perception.neural.depth_anything3:DepthAnything3Single",
    licence="Apache-2.0 / CC-BY-NC-4.0",
    comparable_to_published=True,
    summary="metric depth of one frame, EgoGenEval's settings; GPU",
    requires=_DA3_MODULES,
    install=_DA3_INSTALL,
  ),
  Spec(
    role="masks",
    name="sam2",
    target="perception.neural.sam2_masks:Sam2Masks",
    licence="Apache-2.0 / Apache-2.0",
    comparable_to_published=True,
    summary="SAM 2 video from boxes, points or masks; GPU",
    requires=_TRANSFORMERS_MODULES,
    install=_EXTRA_INSTALL,
  ),
  Spec(
    role="tracks",
    name="cotracker3",
    target="perception.neural.cotracker3:CoTracker3Tracks",
    licence="CC-BY-NC-4.0 / CC-BY-NC-4.0",
    comparable_to_published=True,
    summary="CoTracker3 offline, installed by the user; GPU",
    requires=("torch",),
    install=_EXTRA_INSTALL,
    probe="perception.neural.cotracker3:why_absent",
  ),
  Spec(
    role="features",
    name="dinov2",
    target="perception.neural.dino:Dinov2Features",
    licence="Apache-2.0 / Apache-2.0",
    comparable_to_published=True,
    summary="DINOv2 tokens, Orbia's settings",
    requires=_TRANSFORMERS_MODULES,
    install=_EXTRA_INSTALL,
  ),
  Spec(
    role="features",
    name="dinov3",
    target="perception.neural.dino:Dinov3Features",
    licence="Apache-2.0 / DINOv3 License",
    comparable_to_published=True,
    summary="DINOv3 tokens, EgoGenEval's settings",
    requires=_TRANSFORMERS_MODULES,
    install=_EXTRA_INSTALL,
  ),
  Spec(
    role="detections",
    name="grounding_dino",
    target="perception.neural.grounding_dino:GroundingDinoDetections",
    licence="Apache-2.0 / Apache-2.0",
    comparable_to_published=True,
    summary="boxes of phrases, EgoGenEval's detector",
    requires=_TRANSFORMERS_MODULES,
    install=_EXTRA_INSTALL,
  ),
  Spec(
    role="perceptual_distance",
    name="lpips",
    target="perception.neural.lpips_distance:LpipsDistance",
    licence="BSD-2-Clause / BSD-3-Clause",
    comparable_to_published=True,
    summary="LPIPS v0.1 with AlexNet",
    requires=("torch", "torchvision", "lpips"),
    install=_EXTRA_INSTALL,
  ),
  Spec(
    role="vision_language",
    name="openai_endpoint",
    target="perception.neural.openai_endpoint:OpenAiEndpoint",
    licence="Apache-2.0 / the served model's",
    comparable_to_published=False,
    summary="any OpenAI-compatible server; the key stays in the environment",
    requires=("cv2",),
  ),
  Spec(
    role="quality",
    name="laion_aesthetic",
    target="perception.neural.aesthetic:LaionAesthetic",
    licence="Apache-2.0 / MIT",
    comparable_to_published=True,
    summary="LAION aesthetic head on CLIP ViT-L/14",
    requires=_TRANSFORMERS_MODULES,
    install=_EXTRA_INSTALL,
  ),
  Spec(
    role="quality",
    name="musiq_spaq",
    target="perception.neural.pyiqa_quality:MusiqSpaq",
    licence="PolyForm-Noncommercial-1.0.0 / the metric's",
    comparable_to_published=True,
    summary="MUSIQ trained on SPAQ through pyiqa, installed by the user",
    requires=("torch", "pyiqa"),
    install="pip install pyiqa, in an environment of its own",
  ),
  Spec(
    role="quality",
    name="clipiqa",
    target="perception.neural.pyiqa_quality:ClipIqa",
    licence="PolyForm-Noncommercial-1.0.0 / the metric's",
    comparable_to_published=True,
    summary="CLIP-IQA through pyiqa, installed by the user",
    requires=("torch", "pyiqa"),
    install="pip install pyiqa, in an environment of its own",
  ),
  Spec(
    role="quality",
    name="niqe",
    target="perception.neural.pyiqa_quality:Niqe",
    licence="PolyForm-Noncommercial-1.0.0 / the metric's",
    comparable_to_published=True,
    summary="NIQE through pyiqa, installed by the user",
    requires=("torch", "pyiqa"),
    install="pip install pyiqa, in an environment of its own",
  ),
  Spec(
    role="quality",
    name="amt_s",
    target="perception.neural.amt_smoothness:AmtSmoothness",
    licence="CC-BY-NC-4.0 / CC-BY-NC-4.0",
    comparable_to_published=True,
    summary="motion smoothness by AMT-S from the user's checkout",
    requires=("torch",),
    install=_EXTRA_INSTALL,
    probe="perception.neural.amt_smoothness:why_absent",
  ),
  Spec(
    role="quality",
    name="hpsv3",
    target="perception.neural.hpsv3_quality:Hpsv3Quality",
    licence="MIT / MIT",
    comparable_to_published=True,
    summary="human preference reward, installed by the user",
    requires=("torch", "hpsv3"),
    install="pip install hpsv3, in an environment of its own",
  ),
  Spec(
    role="detections",
    name="florence2",
    target="perception.neural.florence2:Florence2Detections",
    licence="Apache-2.0 / MIT",
    comparable_to_published=True,
    summary="phrase grounding, PDI-Bench's detector",
    requires=_TRANSFORMERS_MODULES,
    install=_EXTRA_INSTALL,
  ),
  Spec(
    role="vision_language",
    name="qwen3_vl",
    target="perception.neural.qwen_vl:Qwen3Vl",
    licence="Apache-2.0 / Apache-2.0",
    comparable_to_published=True,
    summary="Qwen3-VL in this process; GPU",
    requires=_TRANSFORMERS_MODULES,
    install=_EXTRA_INSTALL,
  ),
  Spec(
    role="novel_view",
    name="da3_gaussians",
    target="perception.neural.gaussian_view:Da3GaussianViews",
    licence="Apache-2.0 / CC-BY-NC-4.0",
    comparable_to_published=False,
    summary="Depth Anything 3's Gaussians drawn by gsplat; GPU only",
    requires=(*_DA3_MODULES, "gsplat"),
    install=f"{_DA3_INSTALL} && pip install gsplat==1.5.3",
  ),
)
