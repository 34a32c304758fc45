# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Picture audits: what is shown, what is asked, how replies are read."""

import numpy as np
from absl.testing import absltest, parameterized

from protocols.pdi import audits

_FRAMES = np.full((7, 20, 30, 3), 90, np.uint8)
_MASKS = np.zeros((7, 20, 30), bool)
_MASKS[:, 5:10, 6:16] = True


class AuditsTest(parameterized.TestCase):
  @parameterized.parameters(
    ('{"accept": true, "reason": "fits"}', audits.PASSED, "fits"),
    ('Sure:\n```json\n{"accept": false}\n```', audits.REJECTED, ""),
    ('{"accept": "yes"}', audits.UNREADABLE, '{"accept": "yes"}'),
    ('{"accept": 1}', audits.UNREADABLE, '{"accept": 1}'),
    ("It looks good.", audits.UNREADABLE, "It looks good."),
    ("[true]", audits.UNREADABLE, "[true]"),
    ("{broken", audits.UNREADABLE, "{broken"),
    ("", audits.UNREADABLE, ""),
  )
  def test_only_a_boolean_is_a_verdict(self, text, outcome, reason):
    self.assertEqual(audits.parse(text), audits.Verdict(outcome, reason))

  def test_mask_request_shows_overlay_and_mask_of_spread_frames(self):
    request = audits.mask_request(list(_FRAMES), _MASKS, "red car")
    text, *pictures = request.messages[0].parts
    self.assertIn("'red car'", text)
    self.assertLen(pictures, 4)
    self.assertEqual(pictures[0].shape, (20, 64, 3))
    overlay, binary = pictures[0][:, :30], pictures[0][:, 34:]
    np.testing.assert_array_equal(binary[..., 0] == 255, _MASKS[0])
    # 60 % green over grey 90 inside, untouched outside.
    self.assertEqual(overlay[7, 10].tolist(), [36, 156, 84])
    self.assertEqual(overlay[0, 0].tolist(), [90, 90, 90])

  def test_track_request_draws_only_what_was_visible(self):
    xy = np.tile(np.float32([[5, 5], [20, 12]]), (7, 1, 1))
    xy[:, 0, 0] += np.arange(7)
    visible = np.ones((7, 2), bool)
    visible[:, 1] = False
    request = audits.track_request(list(_FRAMES), xy, visible, "ball")
    last = request.messages[0].parts[-1]
    # Cyan, with a soft edge, over grey 90.
    np.testing.assert_allclose(last[5, 8], [0, 255, 255], atol=25)
    self.assertEqual(last[12, 20].tolist(), [90, 90, 90])

  def test_one_frame_gives_one_picture(self):
    request = audits.mask_request(list(_FRAMES[:1]), _MASKS[:1], "x")
    self.assertLen(request.messages[0].parts, 2)


if __name__ == "__main__":
  absltest.main()
