# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""DLPack both ways between real torch and JAX, trap by trap."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from absl.testing import absltest, parameterized

from perception import errors
from perception.neural import handoff

torch = pytest.importorskip(
  "torch", reason="needs the perception extra: pip install torch"
)
pytestmark = pytest.mark.perception


class MemoryTest(parameterized.TestCase):
  def test_sets_growth_and_limit(self):
    environment = {}
    handoff.share_device_memory(0.25, environment)
    self.assertEqual(
      environment,
      {
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "XLA_PYTHON_CLIENT_MEM_FRACTION": "0.25",
      },
    )

  def test_the_users_choice_stays(self):
    environment = {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.9"}
    handoff.share_device_memory(0.25, environment)
    self.assertEqual(environment, {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.9"})

  def test_too_late_is_an_error(self):
    with pytest.MonkeyPatch.context() as patch:
      patch.delenv("XLA_PYTHON_CLIENT_PREALLOCATE", raising=False)
      patch.delenv("XLA_PYTHON_CLIENT_MEM_FRACTION", raising=False)
      with self.assertRaisesRegex(errors.InputError, "order of imports"):
        handoff.share_device_memory()

  @parameterized.parameters(0.0, 1.0, -1.0, float("nan"))
  def test_fraction(self, fraction):
    with self.assertRaises(errors.InputError):
      handoff.share_device_memory(fraction, {})


class ToJaxTest(parameterized.TestCase):
  @parameterized.parameters(
    "float32",
    "float16",
    "bfloat16",
    "int8",
    "int16",
    "int32",
    "uint8",
    "bool",
    "complex64",
  )
  def test_dtype_and_values_are_kept_without_a_copy(self, name):
    tensor = torch.arange(64).reshape(4, 16).to(getattr(torch, name))
    array = handoff.to_jax(tensor)
    self.assertEqual(array.dtype.name, name)
    self.assertEqual(array.unsafe_buffer_pointer(), tensor.data_ptr())
    np.testing.assert_array_equal(
      np.asarray(array.astype(jnp.complex64)),
      tensor.to(torch.complex64).numpy(),
    )

  def test_int64_is_narrowed_in_the_open(self):
    array = handoff.to_jax(torch.tensor([-5, 2**31 - 1]))
    self.assertEqual(array.dtype, jnp.int32)
    np.testing.assert_array_equal(array, [-5, 2**31 - 1])

  @parameterized.parameters(2**40, 2**31, -(2**31) - 1)
  def test_int64_that_does_not_fit_is_refused(self, value):
    with self.assertRaisesRegex(errors.InputError, "int64"):
      handoff.to_jax(torch.tensor([0, value]))

  def test_float64(self):
    array = handoff.to_jax(torch.tensor([1.0, 2.5], dtype=torch.float64))
    self.assertEqual(array.dtype, jnp.float32)
    np.testing.assert_array_equal(array, [1.0, 2.5])

  def test_64_bits_stay_under_x64(self):
    with jax.enable_x64(True):
      array = handoff.to_jax(torch.tensor([2**40]))
      self.assertEqual(int(array[0]), 2**40)
      double = handoff.to_jax(torch.tensor([0.1], dtype=torch.float64))
      self.assertEqual(double.dtype, jnp.float64)

  @parameterized.named_parameters(
    ("strided", lambda x: x[::2]),
    ("expanded", lambda x: x[:1].expand(8, 6)),
    ("transposed", lambda x: x.T),
    ("unaligned", lambda x: x[1:]),
    ("scalar", lambda x: x[0, 0]),
    ("empty", lambda x: x[:0]),
    ("gradient", lambda x: x.clone().requires_grad_()),
  )
  def test_views_and_gradients(self, view):
    tensor = view(torch.arange(48.0).reshape(8, 6))
    np.testing.assert_array_equal(
      handoff.to_jax(tensor), tensor.detach().numpy()
    )

  def test_inference_tensor(self):
    with torch.inference_mode():
      tensor = torch.arange(16.0) * 2
    np.testing.assert_array_equal(handoff.to_jax(tensor), np.arange(16.0) * 2)

  def test_conjugate_view(self):
    tensor = torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex64).conj()
    np.testing.assert_array_equal(
      handoff.to_jax(tensor), np.array([1 - 2j, 3 + 1j], np.complex64)
    )

  @parameterized.named_parameters(
    ("sparse", lambda: torch.eye(3).to_sparse()),
    ("meta", lambda: torch.empty(3, device="meta")),
  )
  def test_refused(self, make):
    with self.assertRaisesRegex(errors.InputError, "dense"):
      handoff.to_jax(make())

  def test_sharing_aliases_and_owning_does_not(self):
    tensor = torch.zeros(64)
    shared, owned = handoff.to_jax(tensor), handoff.to_jax(tensor, own=True)
    jax.block_until_ready(owned)
    tensor += 1
    self.assertEqual(float(shared.sum()), 64.0)
    self.assertEqual(float(owned.sum()), 0.0)

  def test_the_array_outlives_the_tensor(self):
    array = handoff.to_jax(torch.full((4096,), 7.0))
    _ = [torch.zeros(4096) for _ in range(8)]
    np.testing.assert_array_equal(array, np.full(4096, 7.0))

  @parameterized.parameters("float16", "bfloat16")
  def test_half_is_upcast_once(self, name):
    tensor = torch.tensor([0.1, 3.0]).to(getattr(torch, name))
    array = handoff.to_jax(tensor, upcast=True)
    self.assertEqual(array.dtype, jnp.float32)
    np.testing.assert_array_equal(array, tensor.float().numpy())


class PlatformTest(absltest.TestCase):
  def test_a_gpu_that_jax_lacks(self):
    handoff.require_platform("cpu")
    if all(device.platform != "gpu" for device in jax.devices()):
      with self.assertRaisesRegex(errors.InputError, "cuda13"):
        handoff.require_platform("cuda")


class BackTest(absltest.TestCase):
  def test_to_torch_owns_by_default(self):
    array = jnp.arange(8.0)
    tensor = handoff.to_torch(array)
    tensor += 1
    np.testing.assert_array_equal(array, np.arange(8.0))

  def test_to_torch_shares_on_request(self):
    array = jnp.arange(32.0)
    tensor = handoff.to_torch(array, own=False)
    self.assertEqual(tensor.data_ptr(), array.unsafe_buffer_pointer())

  def test_there_and_back(self):
    for dtype in ("bfloat16", "bool", "int32"):
      tensor = torch.tensor([[0, 1, 1]]).to(getattr(torch, dtype))
      back = handoff.to_torch(handoff.to_jax(tensor))
      self.assertEqual(back.dtype, tensor.dtype)
      self.assertTrue(bool((back == tensor).all()))

  def test_to_numpy_owns(self):
    tensor = torch.tensor([1.5, 2.0], dtype=torch.bfloat16).requires_grad_()
    array = handoff.to_numpy(tensor)
    self.assertEqual(array.dtype, np.float32)
    plain = torch.zeros(4)
    copy = handoff.to_numpy(plain)
    plain += 1
    np.testing.assert_array_equal(copy, np.zeros(4))


if __name__ == "__main__":
  absltest.main()
