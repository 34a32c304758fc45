# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The weights that the adapters know: hub ids, files, licences.

Data only. `status()` is what a doctor prints.
"""

from __future__ import annotations

from collections.abc import Iterator

from perception.neural.weights import Checkpoint, is_present

_NC = "CC-BY-NC-4.0"
_APACHE = "Apache-2.0"
_SAFE = "model.safetensors"
_CONFIG = ("config.json",)


def _transformers(hub_id: str, licence: str, **extra: bool) -> Checkpoint:
  return Checkpoint(hub_id, _SAFE, licence, _CONFIG, **extra)  # type: ignore[arg-type]


DA3 = {
  name: Checkpoint(f"depth-anything/{hub}", _SAFE, licence)
  for name, hub, licence in (
    ("da3-small", "DA3-SMALL", _APACHE),
    ("da3-base", "DA3-BASE", _APACHE),
    ("da3-large", "DA3-LARGE-1.1", _NC),
    ("da3-giant", "DA3-GIANT-1.1", _NC),
    ("da3metric-large", "DA3METRIC-LARGE", _APACHE),
    ("da3mono-large", "DA3MONO-LARGE", _APACHE),
    ("da3nested-giant-large", "DA3NESTED-GIANT-LARGE", _NC),
  )
}
SAM2 = {
  name: _transformers(f"facebook/{name}", _APACHE)
  for name in (
    "sam2-hiera-large",
    "sam2.1-hiera-tiny",
    "sam2.1-hiera-small",
    "sam2.1-hiera-base-plus",
    "sam2.1-hiera-large",
  )
}
DINO = {
  "dinov2-small": _transformers("facebook/dinov2-small", _APACHE),
  "dinov2-base": _transformers("facebook/dinov2-base", _APACHE),
  "dinov2-large": _transformers("facebook/dinov2-large", _APACHE),
  "dinov2-with-registers-small": _transformers(
    "facebook/dinov2-with-registers-small", _APACHE
  ),
  "dinov3-vits16": _transformers(
    "facebook/dinov3-vits16-pretrain-lvd1689m", "DINOv3 License", gated=True
  ),
  "dinov3-vitb16": _transformers(
    "facebook/dinov3-vitb16-pretrain-lvd1689m", "DINOv3 License", gated=True
  ),
  "dinov3-vitl16": _transformers(
    "facebook/dinov3-vitl16-pretrain-lvd1689m", "DINOv3 License", gated=True
  ),
}
GROUNDING_DINO = {
  "tiny": _transformers("IDEA-Research/grounding-dino-tiny", _APACHE),
  "base": _transformers("IDEA-Research/grounding-dino-base", _APACHE),
}
FLORENCE2 = {
  "base": _transformers("florence-community/Florence-2-base", "MIT"),
  "large": _transformers("florence-community/Florence-2-large", "MIT"),
}
QWEN3_VL = {
  "30b-a3b-instruct": _transformers("Qwen/Qwen3-VL-30B-A3B-Instruct", _APACHE),
  "8b-instruct": _transformers("Qwen/Qwen3-VL-8B-Instruct", _APACHE),
}
COTRACKER3 = Checkpoint(
  "facebook/cotracker3", "scaled_offline.pth", _NC, torch_hub=True
)
ALEXNET = Checkpoint(
  "torchvision/alexnet",
  "alexnet-owt-7be5be79.pth",
  "BSD-3-Clause",
  command=(
    "python -c \"import torchvision as t; t.models.alexnet(weights='DEFAULT')\""
  ),
  torch_hub=True,
)
CLIP_L14 = _transformers("openai/clip-vit-large-patch14", "MIT")
LAION_HEAD = Checkpoint(
  "LAION-AI/aesthetic-predictor",
  "sa_0_4_vit_l_14_linear.pth",
  "MIT",
  command=(
    "curl -LO https://github.com/LAION-AI/aesthetic-predictor/raw/main/"
    "sa_0_4_vit_l_14_linear.pth and pass head_weights=FILE"
  ),
)

AMT_S = Checkpoint("lalala125/AMT", "amt-s.pth", _NC)
HPSV3 = Checkpoint("MizzenAI/HPSv3", "HPSv3.safetensors", "MIT")

ALL: dict[str, Checkpoint] = {
  **{f"geometry {name}": entry for name, entry in DA3.items()},
  **{f"masks {name}": entry for name, entry in SAM2.items()},
  **{f"features {name}": entry for name, entry in DINO.items()},
  **{f"grounding_dino {name}": e for name, e in GROUNDING_DINO.items()},
  **{f"florence2 {name}": entry for name, entry in FLORENCE2.items()},
  **{f"qwen3_vl {name}": entry for name, entry in QWEN3_VL.items()},
  "tracks cotracker3": COTRACKER3,
  "perceptual_distance alexnet": ALEXNET,
  "quality clip": CLIP_L14,
  "quality laion_aesthetic": LAION_HEAD,
  "quality amt_s": AMT_S,
  "quality hpsv3": HPSV3,
}


def status() -> Iterator[tuple[str, bool, str]]:
  """For every checkpoint: what it serves, whether it is here, a remark.

  The remark names the licence and, where absent, the command to get it.
  """
  for name, checkpoint in ALL.items():
    present = is_present(checkpoint)
    remark = f"{checkpoint.hub_id} ({checkpoint.licence})"
    if not present:
      remark += f"; get it: {checkpoint.how_to_get}"
    yield name, present, remark
