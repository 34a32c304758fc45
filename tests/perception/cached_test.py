# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Every role's results are kept by content and taken from there again."""

import dataclasses
import pathlib
from unittest import mock

import numpy as np
from absl.testing import absltest, parameterized

from perception import cached, errors, observation, registry, roles, video
from perception.degenerate import DegenerateError
from tests.perception import media, records


class _Backend:
  """Every role at once; counts how often it runs."""

  def __init__(self, role, **changes):
    self.info = dataclasses.replace(
      roles.BackendInfo(role, "counting", "1", "none", False), **changes
    )
    self.calls = 0
    self.higher_is_better = True

  def _count(self):
    self.calls += 1
    return self.calls

  def reconstruct(self, frames, *, cameras=None):
    self._count()
    return dataclasses.replace(
      records.geometry(),
      frame_indices=np.arange(3),
      provenance=self.info.provenance(frames.sha256),
    )

  def segment(self, frames, prompts):
    self._count()
    return records.masks()

  def track(self, frames, queries):
    self._count()
    return records.tracks()

  def extract(self, frames):
    self._count()
    return records.features()

  def detect(self, image, phrases):
    self._count()
    return records.detections()

  def answer(self, request):
    return roles.ChatAnswer(
      f"answer {self._count()}", "stop", self.info.provenance(request.sha256())
    )

  def distance(self, images_a, images_b):
    self._count()
    return np.full(len(images_a), 1 / 3, np.float32)

  def score(self, images, *, text=None):
    self._count()
    return np.full(len(images), 0.1, np.float32)

  def render(self, frames, geometry, *, intrinsics, c2w, size):
    self._count()
    pictures = np.stack([media.texture(*size, seed=k) for k in range(len(c2w))])
    return pictures, pictures[..., 0] > 100


def _clip(seed=0):
  frames = np.stack([media.texture(4, 6, seed=seed + k) for k in range(3)])
  return video.clip_from_frames(frames, fps=10)


def _queries(x):
  return roles.Queries(
    np.array([[x, 1]], np.float32), np.zeros(1, np.int32), np.ones(1, np.int32)
  )


def _question(text):
  return roles.ChatRequest((roles.ChatMessage("user", (text,)),))


def _render(backend, shift):
  camera = np.eye(4)[None] + 0.0
  camera[0, 0, 3] = shift
  return backend.render(
    _clip(),
    records.geometry(),
    intrinsics=np.eye(3)[None],
    c2w=camera,
    size=(4, 6),
  )


# Role -> the call, with something that must enter the key.
_CALLS = {
  "geometry": lambda b, k: b.reconstruct(_clip(k)),
  "masks": lambda b, k: b.segment(
    _clip(), [roles.ObjectPrompt(1, box=(k, 0, 4, 3))]
  ),
  "tracks": lambda b, k: b.track(_clip(), _queries(k)),
  "features": lambda b, k: b.extract(_clip(k)),
  "detections": lambda b, k: b.detect(_clip().frames[0], [f"word {k}"]),
  "vision_language": lambda b, k: b.answer(_question(f"word {k}")),
  "perceptual_distance": lambda b, k: b.distance(
    _clip().frames, _clip(k).frames
  ),
  "quality": lambda b, k: b.score(_clip().frames, text=f"word {k}"),
  "novel_view": _render,
}


def _leaves(result):
  if isinstance(result, observation.Record):
    return {**result.to_arrays()}
  if isinstance(result, roles.ChatAnswer):
    return {"text": np.asarray(str(dataclasses.asdict(result)))}
  return dict(enumerate(result if isinstance(result, tuple) else [result]))


class CachedTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = pathlib.Path(self.create_tempdir().full_path)

  def test_every_role_has_a_call(self):
    self.assertEqual(set(_CALLS), set(roles.ROLES))

  @parameterized.parameters(*roles.ROLES)
  def test_runs_once_for_the_same_input(self, role):
    call, backend = _CALLS[role], _Backend(role)
    first = call(cached.wrap(backend, self.folder), 0)
    again = call(cached.wrap(backend, self.folder), 0)  # as another process
    self.assertEqual(backend.calls, 1)
    first, again = _leaves(first), _leaves(again)
    self.assertEqual(first.keys(), again.keys())
    for name, value in first.items():
      np.testing.assert_array_equal(again[name], value)
      self.assertEqual(again[name].dtype, value.dtype)
    call(cached.wrap(backend, self.folder), 1)
    self.assertEqual(backend.calls, 2)

  @parameterized.product(
    role=roles.ROLES,
    change=(
      {"name": "other"},
      {"version": "2"},
      {"weights_sha256": "ab"},
      {"settings": {"side": 3}},
    ),
  )
  def test_another_backend_runs_itself(self, role, change):
    call, other = _CALLS[role], _Backend(role, **change)
    call(cached.wrap(_Backend(role), self.folder), 0)
    call(cached.wrap(other, self.folder), 0)
    self.assertEqual(other.calls, 1)

  def test_known_cameras_are_another_result(self):
    backend = _Backend("geometry")
    kept = cached.wrap(backend, self.folder)
    kept.reconstruct(_clip())
    cameras = roles.Cameras(np.eye(3)[None], np.eye(4)[None])
    kept.reconstruct(_clip(), cameras=cameras)
    kept.reconstruct(_clip(), cameras=cameras)
    self.assertEqual(backend.calls, 2)

  def test_a_refusal_is_a_result_and_a_failure_is_not(self):
    clip = _clip()
    backend = _Backend("geometry")
    for error, calls in ((DegenerateError, 1), (errors.InputError, 3)):

      def refuse(frames, *, cameras=None, error=error):
        del cameras
        backend.calls += 1
        raise error(frames.name, "parallax", found="none", expected="some")

      with mock.patch.object(backend, "reconstruct", refuse):
        for name in ("here", "there"):
          frames = dataclasses.replace(
            clip, name=name, sha256=f"{clip.sha256} {error.__name__}"
          )
          kept = cached.wrap(backend, self.folder)
          with self.assertRaisesRegex(error, f"^{name}: parallax: found none"):
            kept.reconstruct(frames)
      self.assertEqual(backend.calls, calls)

  def test_a_question_asked_again_gets_another_answer(self):
    backend = _Backend("vision_language")
    question = _question("what is it?")
    for _ in range(2):  # the second time both come from the folder
      kept = cached.wrap(backend, self.folder)
      texts = [kept.answer(question).text for _ in range(2)]
      self.assertEqual(texts, ["answer 1", "answer 2"])
    self.assertEqual(backend.calls, 2)

  def test_what_is_beyond_the_role_is_the_backends_own(self):
    kept = cached.wrap(_Backend("quality"), self.folder)
    self.assertTrue(kept.higher_is_better)
    self.assertIsInstance(kept, roles.Backend)
    with self.assertRaises(AttributeError):
      _ = kept.nothing

  def test_get(self):
    plain = cached.get("tracks", "lucas_kanade", folder=None, window=15)
    self.assertIs(
      type(plain), type(registry.get("tracks", "lucas_kanade", window=15))
    )
    kept = cached.get("tracks", "lucas_kanade", folder=self.folder, window=15)
    self.assertIsInstance(kept, roles.TracksBackend)
    self.assertEqual(kept.info, plain.info)
    found = kept.track(_clip(), _queries(2))
    np.testing.assert_array_equal(
      found.xy, plain.track(_clip(), _queries(2)).xy
    )
    self.assertLen(list(self.folder.rglob("*.npz")), 1)

  def test_results_are_given_out_where_the_backend_cannot_be_made(self):
    def get(**settings):
      return cached.get(
        "tracks", "lucas_kanade", folder=self.folder, **settings
      )

    here = get(window=15)
    found = here.track(_clip(), _queries(2))
    absent = registry.Availability(False, "not installed: opencv")
    with mock.patch.object(registry, "availability", return_value=absent):
      there = get(window=15)
      self.assertEqual(there.info, here.info)
      self.assertIsInstance(there, roles.Backend)
      np.testing.assert_array_equal(
        there.track(_clip(), _queries(2)).xy, found.xy
      )
      with self.assertRaisesRegex(errors.InputError, "no kept.*installed: ope"):
        there.track(_clip(), _queries(3))
      with self.assertRaisesRegex(errors.InputError, "registry.*installed"):
        get(window=17)  # these settings never ran

  def test_an_unreadable_identity_is_named(self):
    cached.get("tracks", "lucas_kanade", folder=self.folder)
    (path,) = self.folder.glob("backends/*.json")
    path.write_text('{"role": "tracks"}')
    with (
      mock.patch.object(
        registry,
        "availability",
        return_value=registry.Availability(False, "gone"),
      ),
      self.assertRaisesRegex(errors.InputError, path.name),
    ):
      cached.get("tracks", "lucas_kanade", folder=self.folder)
    cached.get("tracks", "lucas_kanade", folder=self.folder)
    self.assertIn('"version"', path.read_text())


if __name__ == "__main__":
  absltest.main()
