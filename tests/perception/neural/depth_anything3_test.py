# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The real Depth Anything 3 package with random weights, small sizes, CPU.

Values mean nothing; shapes, conventions and equality with the package's own
route are facts.
"""

import pathlib

import numpy as np
import pytest
from absl.testing import absltest, parameterized

from perception import errors, registry, roles
from perception.degenerate import DegenerateError
from perception.neural import conventions, da3_input, runtime
from tests.perception.neural import neural_test_utils as utils

_WHY = "needs the perception extra and depth-anything-3"
torch = pytest.importorskip("torch", reason=_WHY)
pytest.importorskip("depth_anything_3.cfg", reason=_WHY)
pytestmark = [
  pytest.mark.perception,
  # The package builds its attention with a deprecated torch context.
  pytest.mark.filterwarnings("ignore::DeprecationWarning"),
  pytest.mark.filterwarnings("ignore::FutureWarning"),
  pytest.mark.filterwarnings("ignore::UserWarning"),
]

_SETTINGS = {
  "model": "da3-small",
  "weights": "random",
  "device": "cpu",
  "process_res": 56,
  "ref_view_strategy": "first",
}
_BACKENDS = {}


def _backend(name="depth_anything3", **settings):
  """One instance per setting: building costs a second."""
  key = (name, tuple(sorted(settings.items())))
  if key not in _BACKENDS:
    _BACKENDS[key] = registry.get("geometry", name, **_SETTINGS | settings)
  return _BACKENDS[key]


class InputTest(parameterized.TestCase):
  @parameterized.parameters(
    ((480, 640), (378, 504), (504, 672)),
    ((720, 1280), (280, 504), (504, 896)),
    ((1920, 1080), (504, 280), (896, 504)),
    ((436, 1024), (210, 504), (504, 1190)),
    ((375, 1242), (154, 504), (504, 1666)),
    ((480, 832), (294, 504), (504, 868)),
    ((384, 640), (308, 504), (504, 840)),
  )
  def test_documented_sizes(self, size, upper, lower):
    for method, expected in (
      ("upper_bound_resize", upper),
      ("lower_bound_resize", lower),
    ):
      self.assertEqual(
        da3_input.processed_size(size, process_res=504, method=method),
        expected,
      )

  @parameterized.product(
    size=((48, 80), (81, 47), (30, 30), (56, 56)),
    method=da3_input.METHODS,
  )
  def test_equals_the_package_bit_by_bit(self, size, method):
    from depth_anything_3.utils.io.input_processor import InputProcessor

    rng = np.random.default_rng(0)
    frame = rng.integers(0, 256, (*size, 3), dtype=np.uint8)
    theirs, _, _ = InputProcessor()(
      [frame], None, None, 56, method, num_workers=1, sequential=True
    )
    ours = da3_input.normalise(
      da3_input.resize(frame, process_res=56, method=method)[None]
    )
    np.testing.assert_array_equal(ours, theirs.numpy())

  def test_mixed_sizes_are_cut_as_the_package_does(self):
    from depth_anything_3.utils.io.input_processor import InputProcessor

    rng = np.random.default_rng(0)
    pictures = [
      rng.integers(0, 256, (*size, 3), dtype=np.uint8)
      for size in ((84, 112), (112, 84))
    ]
    rule = {"process_res": 112, "method": "upper_bound_resize"}
    theirs, _, _ = InputProcessor()(
      pictures,
      None,
      None,
      112,
      rule["method"],
      num_workers=1,
      sequential=True,
    )
    ours = [
      da3_input.centre_crop(da3_input.resize(p, **rule), (84, 84))
      for p in pictures
    ]
    np.testing.assert_array_equal(
      da3_input.normalise(np.stack(ours)), theirs.numpy()
    )

  def test_float_pictures_are_refused(self):
    with self.assertRaisesRegex(errors.InputError, "uint8"):
      da3_input.resize(
        np.zeros((4, 4, 3), np.float32),
        process_res=56,
        method="upper_bound_resize",
      )


class JointTest(parameterized.TestCase):
  def test_shapes_and_conventions_of_a_wide_clip(self):
    clip = utils.clip(utils.moving_square(4))
    backend = _backend()
    geometry = backend.reconstruct(clip)
    self.assertIsInstance(backend, roles.GeometryBackend)
    self.assertEqual(geometry.depth.shape, (4, 28, 56))
    self.assertEqual(geometry.video_size, (48, 80))
    self.assertEqual(geometry.unit, "arbitrary")
    np.testing.assert_array_equal(geometry.c2w[0], np.eye(4))
    # The principal point is the middle of the picture: (w - 1)/2, (h - 1)/2.
    np.testing.assert_allclose(geometry.intrinsics[:, 0, 2], 27.5, atol=1e-5)
    np.testing.assert_allclose(geometry.intrinsics[:, 1, 2], 13.5, atol=1e-5)
    self.assertTrue((geometry.confidence >= 0).all())
    self.assertEqual(geometry.provenance.weights_sha256, "random")
    self.assertFalse(backend.info.comparable_to_published)
    self.assertEqual(backend.info.settings["loop_closure"], "")

  def test_equals_the_packages_own_inference(self):
    from depth_anything_3.api import DepthAnything3

    frames = utils.moving_square(3)
    ours = _backend()
    api = DepthAnything3(model_name="da3-small")
    api.model.load_state_dict(ours._network.net.state_dict())
    theirs = api.inference(
      list(frames), process_res=56, ref_view_strategy="first"
    )
    geometry = ours.reconstruct(utils.clip(frames))
    # The package runs under float16 autocast on a CPU.
    np.testing.assert_allclose(geometry.depth, theirs.depth, rtol=2e-2)
    their_c2w = np.linalg.inv(conventions.homogeneous(theirs.extrinsics))
    np.testing.assert_allclose(
      geometry.c2w, np.linalg.inv(their_c2w[:1]) @ their_c2w, atol=2e-2
    )
    np.testing.assert_allclose(
      geometry.intrinsics[:, :2, 2] + 0.5,
      theirs.intrinsics[:, :2, 2],
      atol=1e-4,
    )
    np.testing.assert_allclose(geometry.confidence + 1, theirs.conf, rtol=5e-2)

  def test_deterministic(self):
    clip = utils.clip(utils.moving_square(3))
    a, b = _backend().reconstruct(clip), _backend().reconstruct(clip)
    np.testing.assert_array_equal(a.depth, b.depth)
    np.testing.assert_array_equal(a.c2w, b.c2w)

  def test_ray_pose_is_deterministic_under_a_seed(self):
    clip = utils.clip(utils.moving_square(2))
    backend = _backend(use_ray_pose=True)
    state = torch.random.get_rng_state()
    a, b = backend.reconstruct(clip), backend.reconstruct(clip)
    np.testing.assert_array_equal(a.c2w, b.c2w)
    self.assertTrue(torch.equal(state, torch.random.get_rng_state()))

  def test_saved_weights_load_strictly(self):
    from depth_anything_3.api import DepthAnything3

    folder = self.create_tempdir().full_path
    api = runtime.random_model(
      lambda: DepthAnything3(model_name="da3-small"), seed=7
    )
    api.save_pretrained(folder)
    loaded = registry.get(
      "geometry", "depth_anything3", **_SETTINGS | {"weights": folder}
    )
    self.assertRegex(loaded.info.weights_sha256, "^[0-9a-f]{64}$")
    # Real weights, but neither the published model nor its size.
    self.assertFalse(loaded.info.comparable_to_published)
    for name, value in api.model.state_dict().items():
      self.assertTrue(
        torch.equal(value, loaded._network.net.state_dict()[name]), name
      )

  def test_damaged_weights(self):
    folder = pathlib.Path(self.create_tempdir().full_path)
    (folder / "model.safetensors").write_bytes(b"not weights")
    with self.assertRaisesRegex(errors.InputError, "every tensor"):
      registry.get(
        "geometry", "depth_anything3", **_SETTINGS | {"weights": str(folder)}
      )

  def test_missing_weights(self):
    with self.assertRaisesRegex(
      errors.InputError, "CC-BY-NC-4.0.*hf download depth-anything/DA3-GIANT"
    ):
      registry.get(
        "geometry",
        "depth_anything3",
        device="cpu",
        weights="depth-anything/DA3-GIANT-1.1",
      )

  @parameterized.named_parameters(
    ("model", {"model": "da4"}),
    ("strategy", {"ref_view_strategy": "last"}),
    ("method", {"process_res_method": "upper_bound_crop"}),
    ("overlap", {"chunk": 4, "overlap": 4}),
    ("precision", {"precision": "int8"}),
    ("device", {"device": "cuda:7"}),
  )
  def test_bad_settings(self, settings):
    with self.assertRaises(errors.InputError):
      registry.get("geometry", "depth_anything3", **_SETTINGS | settings)


class ChunkedTest(absltest.TestCase):
  def test_long_clips_are_streamed(self):
    clip = utils.clip(utils.moving_square(7))
    backend = _backend(joint_limit=4, chunk=4, overlap=2)
    geometry = backend.reconstruct(clip)
    self.assertEqual(geometry.depth.shape, (7, 28, 56))
    np.testing.assert_array_equal(geometry.c2w[0], np.eye(4))
    # The first chunk supplies what it does not share, unscaled.
    first = _backend().reconstruct(utils.clip(clip.frames[:4]))
    np.testing.assert_allclose(geometry.depth[:2], first.depth[:2], rtol=1e-5)

  def test_loops_between_chunks(self):
    # There and back: the last frames show what the first did.
    frames = utils.moving_square(5)
    clip = utils.clip(np.concatenate([frames, frames[::-1]]))
    backend = _backend(
      joint_limit=4, chunk=4, overlap=2, loop_features="gradient_orientation"
    )
    with absltest.mock.patch.object(
      backend, "_loop", wraps=backend._loop
    ) as loop:
      geometry = backend.reconstruct(clip)
    self.assertGreater(loop.call_count, 0)
    self.assertEqual(geometry.depth.shape, (10, 28, 56))
    np.testing.assert_array_equal(geometry.c2w[0], np.eye(4))
    self.assertEqual(
      backend.info.settings["loop_closure"], "gradient_orientation"
    )


class CamerasTest(absltest.TestCase):
  def _cameras(self, count, step=0.5):
    intrinsics = np.tile(
      np.array([[90.0, 0, 33], [0, 88, 20], [0, 0, 1]]), (count, 1, 1)
    )
    c2w = np.tile(np.eye(4), (count, 1, 1))
    c2w[:, 0, 3] = 3.0 + step * np.arange(count)
    c2w[:, 1, 3] = step * 0.1 * np.arange(count) ** 2
    return roles.Cameras(intrinsics, c2w)

  def test_known_cameras_are_returned_and_depth_follows_their_unit(self):
    clip = utils.clip(utils.moving_square(3))
    backend = _backend()
    cameras = self._cameras(3)
    geometry = backend.reconstruct(clip, cameras=cameras)
    np.testing.assert_array_equal(geometry.c2w, cameras.c2w)
    # 48x80 -> 28x56: cx' = (33 + .5) .7 - .5, cy' = (20 + .5) 28/48 - .5.
    np.testing.assert_allclose(
      geometry.intrinsics[0],
      [[63, 0, 22.95], [0, 88 * 28 / 48, 20.5 * 28 / 48 - 0.5], [0, 0, 1]],
      rtol=1e-6,
    )

  def test_equals_the_packages_conditioning(self):
    from depth_anything_3.api import DepthAnything3

    frames = utils.moving_square(3)
    ours = _backend()
    cameras = self._cameras(3)
    api = DepthAnything3(model_name="da3-small")
    api.model.load_state_dict(ours._network.net.state_dict())
    theirs = api.inference(
      list(frames),
      extrinsics=np.linalg.inv(cameras.c2w),
      intrinsics=conventions.intrinsics_to_corner(cameras.intrinsics),
      process_res=56,
      ref_view_strategy="first",
    )
    geometry = ours.reconstruct(utils.clip(frames), cameras=cameras)
    np.testing.assert_allclose(geometry.depth, theirs.depth, rtol=5e-2)
    np.testing.assert_allclose(
      conventions.intrinsics_to_corner(geometry.intrinsics),
      theirs.intrinsics,
      rtol=1e-5,
    )

  def test_cameras_that_stand_still_fix_no_scale(self):
    clip = utils.clip(utils.moving_square(3))
    with self.assertRaises(DegenerateError):
      _backend().reconstruct(clip, cameras=self._cameras(3, step=0.0))

  def test_wrong_count(self):
    clip = utils.clip(utils.moving_square(3))
    with self.assertRaisesRegex(errors.InputError, "cameras"):
      _backend().reconstruct(clip, cameras=self._cameras(2))


class PairAndSingleTest(absltest.TestCase):
  def test_pair(self):
    backend = _backend("depth_anything3_pair")
    frames = utils.moving_square(2)
    geometry = backend.reconstruct(utils.clip(frames))
    poses = backend.pair_poses(frames[0], frames[1])
    np.testing.assert_array_equal(poses, geometry.c2w)
    with self.assertRaisesRegex(errors.InputError, "expected 2"):
      backend.reconstruct(utils.clip(utils.moving_square(3)))

  def test_order_of_the_pair_matters(self):
    backend = _backend("depth_anything3_pair")
    frames = utils.moving_square(2)
    there = backend.pair_poses(frames[0], frames[1])
    self.assertEqual(there.shape, (2, 4, 4))
    np.testing.assert_array_equal(there[0], np.eye(4))

  def test_pair_of_two_sizes(self):
    backend = _backend("depth_anything3_pair")
    a = utils.moving_square(1)[0]
    b = utils.moving_square(1, height=60, width=80)[0]
    poses = backend.pair_poses(a, b)
    self.assertTrue(np.isfinite(poses).all())

  def test_published_settings_are_the_defaults(self):
    backend = _backend("depth_anything3_pair")
    self.assertEqual(backend.info.name, "depth_anything3_pair")
    self.assertEqual(
      backend.info.settings["process_res_method"], "upper_bound_resize"
    )
    self.assertFalse(backend.info.settings["use_ray_pose"])

  def test_single(self):
    backend = _backend("depth_anything3_single")
    geometry = backend.reconstruct(utils.clip(utils.moving_square(1)))
    self.assertEqual(geometry.depth.shape, (1, 28, 56))
    with self.assertRaisesRegex(errors.InputError, "expected 1"):
      backend.reconstruct(utils.clip(utils.moving_square(2)))


class GaussiansTest(absltest.TestCase):
  def _config(self):
    """da3-small with the Gaussian branch of the large model, narrowed."""
    import depth_anything_3
    from omegaconf import OmegaConf

    folder = pathlib.Path(depth_anything_3.__path__[0]) / "configs"
    config = OmegaConf.load(folder / "da3-small.yaml")
    large = OmegaConf.load(folder / "da3-giant.yaml")
    config.gs_adapter = large.gs_adapter
    config.gs_head = OmegaConf.merge(
      large.gs_head,
      {
        "dim_in": config.head.dim_in,
        "features": config.head.features,
        "out_channels": config.head.out_channels,
      },
    )
    path = pathlib.Path(self.create_tempdir().full_path) / "small_gs.yaml"
    OmegaConf.save(config, path, resolve=True)
    return str(path)

  def test_splats(self):
    pytest.importorskip("e3nn", reason="Gaussians need e3nn")
    backend = registry.get(
      "geometry", "depth_anything3", **_SETTINGS | {"model": self._config()}
    )
    clip = utils.clip(utils.moving_square(3))
    geometry, splats = backend.reconstruct_gaussians(clip)
    count = 3 * 28 * 56
    self.assertEqual(splats.means.shape, (count, 3))
    self.assertEqual(splats.scales.shape, (count, 3))
    self.assertEqual(splats.harmonics.shape, (count, 3, 9))
    self.assertEqual(splats.opacities.shape, (count,))
    np.testing.assert_allclose(
      np.linalg.norm(splats.rotations, axis=1), 1.0, atol=1e-3
    )
    self.assertEqual(geometry.depth.shape, (3, 28, 56))
    cameras = CamerasTest._cameras(self, 3)
    posed, _ = backend.reconstruct_gaussians(clip, cameras=cameras)
    w2c, _, scale = conventions.normalise_cameras(cameras.c2w)
    np.testing.assert_allclose(
      posed.c2w, conventions.c2w_from_w2c(w2c), atol=1e-9
    )
    plain = backend.reconstruct(clip, cameras=cameras)
    np.testing.assert_allclose(posed.depth * scale, plain.depth, rtol=1e-4)

  def test_refused_without_the_branch(self):
    with self.assertRaisesRegex(errors.InputError, "Gaussian"):
      _backend().reconstruct_gaussians(utils.clip(utils.moving_square(2)))


class DeviceTest(absltest.TestCase):
  def test_tensors_can_go_on_to_jax(self):
    from perception.neural import handoff

    raw = _backend().infer(utils.clip(utils.moving_square(2)))
    depth = handoff.to_jax(raw.depth)
    np.testing.assert_array_equal(depth, raw.depth.numpy())


if __name__ == "__main__":
  absltest.main()
