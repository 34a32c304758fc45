# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Backends by name, lazily, and what each role demands of them."""

import importlib
import inspect
import subprocess
import sys
from unittest import mock

import numpy as np
from absl.testing import absltest, parameterized

from perception import backends, errors, registry, roles

_PROTOCOLS = {
  "geometry": roles.GeometryBackend,
  "masks": roles.MasksBackend,
  "tracks": roles.TracksBackend,
  "features": roles.FeaturesBackend,
  "detections": roles.DetectionsBackend,
  "vision_language": roles.VisionLanguageBackend,
  "perceptual_distance": roles.PerceptualDistanceBackend,
  "quality": roles.QualityBackend,
  "novel_view": roles.NovelViewBackend,
}
_CORE_TARGETS = ("perception.offline_", "perception.replay")
_CORE = [
  (spec.role, spec.name)
  for spec in backends.SPECS
  if spec.target.startswith(_CORE_TARGETS)
]


class RegistryTest(parameterized.TestCase):
  """Look-up, probing and refusal."""

  def test_every_role_has_a_protocol(self):
    self.assertCountEqual(_PROTOCOLS, roles.ROLES)

  def test_each_light_role_has_an_offline_backend(self):
    for role in ("geometry", "masks", "tracks", "features", "detections"):
      self.assertIn("recorded", registry.names(role))
    self.assertIn("grabcut_flow", registry.names("masks"))
    self.assertIn("lucas_kanade", registry.names("tracks"))

  @parameterized.parameters(*_CORE)
  def test_class_offers_what_its_role_demands(self, role, name):
    module, _, class_name = registry.spec(role, name).target.partition(":")
    backend = getattr(importlib.import_module(module), class_name)
    protocol = _PROTOCOLS[role]
    for attribute in filter(lambda a: not a.startswith("_"), dir(protocol)):
      if attribute in ("higher_is_better", "value_range", "scores_clip"):
        continue  # set by the constructor
      self.assertTrue(hasattr(backend, attribute), attribute)
      wanted = getattr(protocol, attribute)
      if inspect.isfunction(wanted):
        self.assertEqual(
          list(inspect.signature(wanted).parameters),
          list(inspect.signature(getattr(backend, attribute)).parameters),
        )

  @parameterized.parameters(
    ("masks", "grabcut_flow"),
    ("tracks", "lucas_kanade"),
    ("features", "gradient_orientation"),
  )
  def test_made_with_settings(self, role, name):
    backend = registry.get(role, name)
    self.assertIsInstance(backend, _PROTOCOLS[role])
    info = backend.info
    self.assertEqual((info.role, info.name), (role, name))
    self.assertFalse(info.comparable_to_published)
    self.assertNotEmpty(info.settings)
    provenance = info.provenance("ab")
    self.assertEqual(provenance.backend, name)
    self.assertEqual(provenance.settings, info.settings)

  def test_settings_reach_the_backend(self):
    backend = registry.get("tracks", "lucas_kanade", window=15)
    self.assertEqual(backend.info.settings["window"], 15)

  @parameterized.parameters(
    ("masks", "nothing", {}, "grabcut_flow"),
    ("eyes", "nothing", {}, "one of"),
    ("tracks", "lucas_kanade", {"windows": 3}, "windows"),
    ("masks", "recorded", {}, "path"),
  )
  def test_refused(self, role, name, settings, words):
    with self.assertRaisesRegex(errors.InputError, words):
      registry.get(role, name, **settings)

  def test_probe_names_what_is_absent(self):
    spec = backends.Spec(
      role="masks",
      name="dream",
      target="no.such:Thing",
      licence="none",
      comparable_to_published=True,
      summary="",
      requires=("numpy", "no_such_module"),
      environment=("NO_SUCH_VARIABLE",),
      install="pip install dream",
    )
    with mock.patch.dict(registry._SPECS, clear=False):
      registry.register(spec)
      state = registry.availability("masks", "dream")
      self.assertFalse(state.available)
      self.assertIn("no_such_module (pip install dream)", state.reason)
      self.assertIn("NO_SUCH_VARIABLE", state.reason)
      with self.assertRaisesRegex(errors.InputError, "no_such_module"):
        registry.get("masks", "dream")
      with self.assertRaisesRegex(ValueError, "twice"):
        registry.register(spec)
    self.assertNotIn("dream", registry.names("masks"))

  def test_extra_probe(self):
    spec = backends.Spec(
      role="masks",
      name="dream",
      target="no.such:Thing",
      licence="none",
      comparable_to_published=True,
      summary="",
      probe="tests.perception.registry_test:weights_are_absent",
    )
    with mock.patch.dict(registry._SPECS, clear=False):
      registry.register(spec)
      state = registry.availability("masks", "dream")
    self.assertEqual(state, registry.Availability(False, "no weights"))

  def test_listing_and_probing_import_nothing_heavy(self):
    code = (
      "import sys; from perception import registry, roles, observation\n"
      "for spec in registry.specs():\n"
      "  registry.availability(spec.role, spec.name)\n"
      "heavy = {'torch', 'transformers', 'av', 'jax', 'kernels', 'protocols',"
      " 'perception.offline_masks', 'perception.replay'}\n"
      "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def weights_are_absent() -> str:
  """A probe for the test above."""
  return "no weights"


class PromptTest(parameterized.TestCase):
  """Prompts are checked before any work."""

  @parameterized.named_parameters(
    ("no_hint", {}, "no hint"),
    ("negative_size", {"box": (10, 5, 5, 10)}, "box"),
    ("no_height", {"box": (1, 5, 5, 5)}, "box"),
    ("left_of_picture", {"box": (-3, 0, 5, 5)}, "box"),
    ("beyond_picture", {"box": (0, 0, 31, 5)}, "inside 30x20"),
    ("below_picture", {"box": (0, 0, 5, 21)}, "inside 30x20"),
    ("nan", {"box": (0, 0, np.nan, 5)}, "box"),
    ("three_numbers", {"box": (0, 0, 5)}, "box"),
    ("words", {"box": ("a", "b", "c", "d")}, "box"),
    ("frame", {"box": (0, 0, 5, 5), "frame_row": 4}, r"0\.\.3"),
    ("negative_frame", {"box": (0, 0, 5, 5), "frame_row": -1}, "frame_row"),
    (
      "point_outside",
      {"points": np.array([[30.0, 0]]), "labels": np.array([True])},
      "points",
    ),
    (
      "label_count",
      {"points": np.array([[3.0, 0]]), "labels": np.array([True, False])},
      "one label each",
    ),
    ("no_labels", {"points": np.array([[3.0, 0]])}, "one label each"),
    ("empty_mask", {"mask": np.zeros((20, 30), bool)}, "at least one pixel"),
    ("mask_size", {"mask": np.ones((20, 31), bool)}, "20, 30"),
    ("mask_type", {"mask": np.ones((20, 30), np.uint8)}, "uint8"),
  )
  def test_refused(self, hints, words):
    prompt = roles.ObjectPrompt(7, **hints)
    with self.assertRaisesRegex(errors.InputError, words) as caught:
      prompt.validate(size=(20, 30), frames=4)
    self.assertIn("object 7", str(caught.exception))

  @parameterized.parameters(
    {"box": (-0.5, -0.5, 29.5, 19.5)},
    {"box": (0, 0, 30, 20)},
    {"points": np.array([[29.4, 0.0]]), "labels": np.array([True])},
    {"mask": np.ones((20, 30), bool), "frame_row": 3},
  )
  def test_accepted(self, **hints):
    roles.ObjectPrompt(7, **hints).validate(size=(20, 30), frames=4)


class ChatRequestTest(absltest.TestCase):
  """The digest covers all that the model sees."""

  def test_digest(self):
    image = media_image = np.zeros((2, 3, 3), np.uint8)
    message = roles.ChatMessage("user", ("What is it?", image))
    base = roles.ChatRequest((message,))
    self.assertEqual(
      base.sha256(),
      roles.ChatRequest(
        (roles.ChatMessage("user", ("What is it?", image.copy())),)
      ).sha256(),
    )
    changed = media_image.copy()
    changed[0, 0, 0] = 1
    others = [
      roles.ChatRequest((message,), max_tokens=5),
      roles.ChatRequest((message,), temperature=0.1),
      roles.ChatRequest((message,), seed=1),
      roles.ChatRequest((message, message)),
      roles.ChatRequest((roles.ChatMessage("system", message.parts),)),
      roles.ChatRequest((roles.ChatMessage("user", ("What is it?", changed)),)),
      roles.ChatRequest((roles.ChatMessage("user", message.parts[::-1]),)),
      roles.ChatRequest((message,), response_schema={"type": "object"}),
    ]
    self.assertLen({base.sha256(), *(r.sha256() for r in others)}, 9)


if __name__ == "__main__":
  absltest.main()
