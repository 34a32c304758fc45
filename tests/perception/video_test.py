# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Reading odd but healthy clips exactly, and refusing damaged ones."""

import fractions
import hashlib
import pathlib

import av
import numpy as np
from absl.testing import absltest, parameterized

from perception import errors, images, video
from tests.perception import media


class HealthyClipsTest(parameterized.TestCase):
  """Odd files whose frames must come back right."""

  def setUp(self):
    super().setUp()
    self.folder = pathlib.Path(self.create_tempdir().full_path)

  @parameterized.named_parameters(
    ("h264", "a.mp4", {}),
    ("b_frames", "a.mkv", {"options": {"bf": "3", "g": "12"}}),
    (
      "vp9_webm",
      "a.webm",
      {"codec": "libvpx-vp9", "options": media.VP9_FAST},
    ),
    (
      "ten_bit",
      "a.mp4",
      {"pixel_format": "yuv420p10le"},
    ),
    (
      "alpha_webm",
      "a.webm",
      {
        "codec": "libvpx-vp9",
        "pixel_format": "yuva420p",
        "options": media.VP9_FAST,
      },
    ),
    (
      "sound_outlasts_picture",
      "a.webm",
      {
        "codec": "libvpx-vp9",
        "options": media.VP9_FAST,
        "sound_seconds": 3.0,
      },
    ),
    ("no_timestamps_avi", "a.avi", {"codec": "mpeg4", "rate": 25}),
    ("start_offset", "a.mkv", {"ticks": 3000 + 40 * np.arange(40)}),
  )
  def test_every_frame_in_order(self, name, options):
    frames = media.numbered_frames(40, 64, 96)
    path = media.encode(self.folder / name, frames, **options)
    clip = video.read_clip(path)
    self.assertEqual(media.read_numbers(clip.frames), list(range(40)))
    self.assertEqual(clip.timestamps[0], 0.0)
    np.testing.assert_array_equal(clip.frame_indices, np.arange(40))
    self.assertEqual(clip.sha256, hashlib.sha256(path.read_bytes()).hexdigest())
    self.assertLessEqual(
      int(np.abs(clip.frames.astype(int) - frames)[:, 8:-8, 3:9].max()), 12
    )

  def test_alpha_is_ignored_and_colour_kept(self):
    frames = media.numbered_frames(5, 32, 64)
    alpha = np.full((*frames.shape[:3], 1), 128, np.uint8)
    path = media.encode(
      self.folder / "a.mov",
      np.concatenate([frames, alpha], axis=-1),
      codec="qtrle",
      pixel_format="argb",
      source_format="rgba",
    )
    np.testing.assert_array_equal(video.read_clip(path).frames, frames)

  @parameterized.parameters((90, (64, 32)), (180, (32, 64)), (270, (64, 32)))
  def test_rotation_is_applied(self, rotation, size):
    frames = media.numbered_frames(3, 32, 64)
    frames[:, :16, :8] = 255  # marks the top left corner
    path = media.encode(self.folder / "a.mp4", frames, rotation=rotation)
    clip = video.read_clip(path)
    self.assertEqual(clip.size, size)
    self.assertEqual(video.open_video(path).size, size)
    expected = np.rot90(frames, rotation // 90, axes=(1, 2))
    error = np.abs(clip.frames.astype(int) - expected)
    self.assertLess(float(error.mean()), 6.0)

  def test_variable_rate_keeps_timestamps(self):
    ticks = np.cumsum([0, 20, 80, 40, 20, 160, 20, 33])
    frames = media.numbered_frames(8, 32, 64)
    path = media.encode(self.folder / "a.mp4", frames, ticks=ticks)
    clip = video.read_clip(path)
    self.assertEqual(media.read_numbers(clip.frames), list(range(8)))
    np.testing.assert_allclose(clip.timestamps, ticks / 1000, atol=1e-9)

  @parameterized.parameters(5, 0, 41)
  def test_a_wrong_count_in_the_header_is_only_a_hint(self, count):
    frames = media.numbered_frames(40, 64, 96)
    path = media.encode(self.folder / "a.avi", frames, codec="mpeg4", rate=25)
    media.write_avi_count(path, count)
    for clip in (video.read_clip(path), video.open_video(path)):
      self.assertEqual(
        media.read_numbers(np.stack(list(clip))), list(range(40))
      )

  def test_one_frame(self):
    path = media.encode(self.folder / "a.mp4", media.numbered_frames(1, 32, 64))
    clip = video.read_clip(path)
    self.assertLen(clip, 1)
    self.assertEqual(clip.fps, 24)

  def test_streaming_equals_reading_and_can_be_repeated(self):
    frames = media.numbered_frames(12, 32, 64)
    path = media.encode(self.folder / "a.mp4", frames)
    clip, stream = video.read_clip(path), video.open_video(path)
    self.assertLen(stream, 12)
    for _ in range(2):
      np.testing.assert_array_equal(np.stack(list(stream)), clip.frames)
    for field in ("fps", "sha256", "size", "name"):
      self.assertEqual(getattr(stream, field), getattr(clip, field))
    np.testing.assert_array_equal(stream.timestamps, clip.timestamps)

  @parameterized.named_parameters(
    ("some", lambda clip: clip.select([1, 4, 11])),
    ("first", lambda clip: clip.select(slice(0, 1))),
    ("twice", lambda clip: clip.select([2, 5, 9]).select([0, 2])),
    ("faster", lambda clip: clip.resample(60)),
    ("slower", lambda clip: clip.resample(7).select(slice(1, 3))),
  )
  def test_parts_of_a_stream_are_those_of_the_clip(self, part):
    frames = media.numbered_frames(12, 32, 64)
    path = media.encode(self.folder / "a.mp4", frames)
    pictures = self.folder / "pictures"
    pictures.mkdir()
    for number, image in enumerate(frames):
      media.write_picture(pictures / f"{number}.png", image)
    for source, rate in ((path, None), (pictures, 24)):
      clip = part(video.read_clip(source, fps=rate))
      stream = part(video.open_video(source, fps=rate))
      self.assertLen(stream, len(clip))
      for copy in (stream.read(), stream.read()):
        np.testing.assert_array_equal(copy.frames, clip.frames)
      for field in ("fps", "sha256", "size", "name"):
        self.assertEqual(getattr(stream, field), getattr(clip, field))
      for field in ("timestamps", "frame_indices"):
        np.testing.assert_array_equal(
          getattr(stream, field), getattr(clip, field)
        )
    self.assertIs(clip.read(), clip)

  @parameterized.parameters((32, 64), (33, 64), (32, 63), (33, 63), (1, 1))
  def test_lossless_writing_is_exact_at_any_size(self, height, width):
    frames = np.stack([media.texture(height, width, seed=k) for k in range(3)])
    path = self.folder / "a.mp4"
    rate = fractions.Fraction(30000, 1001)
    self.assertEqual(video.write_video(path, frames, rate, lossless=True), 3)
    clip = video.read_clip(path)
    np.testing.assert_array_equal(clip.frames, frames)
    self.assertEqual(clip.fps, rate)

  @parameterized.parameters((32, 64), (33, 63))
  def test_lossy_writing_keeps_size_and_is_close(self, height, width):
    gray = [media.texture(height, width, seed=k)[..., :1] for k in range(3)]
    frames = np.repeat(np.stack(gray), 3, axis=-1)
    path = self.folder / "a.mp4"
    video.write_video(path, iter(frames), 24)
    clip = video.read_clip(path)
    self.assertEqual(clip.frames.shape, frames.shape)
    error = np.abs(clip.frames.astype(int) - frames).mean()
    self.assertBetween(float(error), 0.0, 4.0)
    self.assertEqual([p.name for p in self.folder.iterdir()], ["a.mp4"])


class DamagedClipsTest(parameterized.TestCase):
  """Files that must end in one line."""

  def setUp(self):
    super().setUp()
    self.folder = pathlib.Path(self.create_tempdir().full_path)

  def assert_refused(self, path, *words):
    for read in (video.read_clip, video.open_video):
      with self.assertRaises(errors.InputError) as caught:
        read(path)
      text = str(caught.exception)
      self.assertNotIn("\n", text)
      self.assertIn(str(path), text)
      for word in words:
        self.assertIn(word, text)

  def _cut(self, name, share, **options):
    frames = np.stack([media.texture(64, 96, seed=k) for k in range(60)])
    path = media.encode(self.folder / name, frames, **options)
    self.assertLen(video.open_video(path), 60)
    data = path.read_bytes()
    cut = path.with_stem("cut")
    cut.write_bytes(data[: int(len(data) * share)])
    return cut

  @parameterized.parameters(0.1, 0.5, 0.9)
  def test_cut_mp4_with_index_in_front(self, share):
    options = {"movflags": "faststart"}
    self.assert_refused(
      self._cut("a.mp4", share, container_options=options), "cut"
    )

  def test_cut_mp4_with_index_behind(self):
    self.assert_refused(self._cut("a.mp4", 0.6), "undamaged")

  @parameterized.parameters(0.3, 0.6, 0.85)
  def test_cut_webm(self, share):
    path = self._cut(
      "a.webm", share, codec="libvpx-vp9", options=media.VP9_FAST
    )
    self.assert_refused(path, "duration", "cut off")

  def test_a_header_that_promises_far_more_frames(self):
    frames = media.numbered_frames(40, 64, 96)
    path = media.encode(self.folder / "a.avi", frames, codec="mpeg4", rate=25)
    media.write_avi_count(path, 400)
    self.assert_refused(path, "duration", "40 frames", "cut off")

  def test_damaged_middle(self):
    """Random bytes where a frame's data begins.

    Damage inside a frame can be valid data of another picture; only the
    structure around it is sure to break.
    """
    path = self._cut("a.mp4", 1.0)
    with av.open(str(path)) as container:
      position = [packet.pos for packet in container.demux()][30]
    data = bytearray(path.read_bytes())
    data[position : position + 400] = np.random.default_rng(0).bytes(400)
    path.write_bytes(data)
    self.assert_refused(path, "undamaged")

  def test_sound_only(self):
    path = media.encode_sound(self.folder / "a.m4a")
    self.assert_refused(path, "audio", "a video stream")

  def test_empty_file(self):
    path = self.folder / "a.mp4"
    path.touch()
    self.assert_refused(path, "after 0 frames")

  def test_garbage(self):
    path = self.folder / "a.mp4"
    path.write_bytes(np.random.default_rng(0).bytes(5000))
    self.assert_refused(path, "after 0 frames")

  def test_no_frames(self):
    path = media.encode_nothing(self.folder / "a.avi")
    self.assert_refused(path, "at least one frame")

  def test_cut_before_the_first_frame(self):
    full = media.encode(self.folder / "a.mkv", media.numbered_frames(2, 32, 64))
    data = full.read_bytes()
    full.write_bytes(data[: data.index(b"\x1f\x43\xb6\x75")])
    self.assert_refused(full, "after 0 frames")

  @parameterized.parameters(
    ("a.txt", "a film of letters\n" * 50),
    ("a.ffconcat", "ffconcat version 1.0\nfile 'real.mp4'\n"),
    (
      "a.m3u8",
      "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nreal.mp4\n"
      "#EXT-X-ENDLIST\n",
    ),
  )
  def test_text_and_playlists_are_no_videos(self, name, text):
    frames = media.numbered_frames(24, 32, 64)
    media.encode(self.folder / "real.mp4", frames)
    path = self.folder / name
    path.write_text(text)
    self.assert_refused(path, "no video container")

  def test_picture_is_no_video(self):
    path = media.write_picture(
      self.folder / "a.png", media.numbered_frames(1, 32, 64)[0]
    )
    self.assert_refused(path, "no video container")

  def test_file_changed_after_opening(self):
    path = media.encode(self.folder / "a.mp4", media.numbered_frames(9, 32, 64))
    stream = video.open_video(path)
    media.encode(path, media.numbered_frames(8, 32, 64))
    with self.assertRaisesRegex(errors.InputError, "as when it was opened"):
      list(stream)
    with self.assertRaisesRegex(errors.InputError, "as when it was opened"):
      list(stream.select([8]))

  def test_missing_file(self):
    self.assert_refused(self.folder / "none.mp4", "no file")

  def test_more_pixels_than_allowed(self):
    path = media.encode(self.folder / "a.mp4", media.numbered_frames(9, 32, 64))
    with self.assertRaisesRegex(errors.InputError, "open_video"):
      video.read_clip(path, max_bytes=8 * 32 * 64 * 3)
    self.assertLen(video.read_clip(path, max_bytes=9 * 32 * 64 * 3), 9)

  @parameterized.named_parameters(
    ("none", [], 24),
    ("floats", [np.zeros((4, 4, 3))], 24),
    ("gray", [np.zeros((4, 4), np.uint8)], 24),
    ("rate", [np.zeros((4, 4, 3), np.uint8)], 0),
    (
      "sizes",
      [np.zeros((4, 4, 3), np.uint8), np.zeros((4, 6, 3), np.uint8)],
      24,
    ),
  )
  def test_writing_bad_frames_leaves_nothing(self, frames, rate):
    with self.assertRaises(errors.InputError):
      video.write_video(self.folder / "a.mp4", frames, rate)
    self.assertEmpty(list(self.folder.iterdir()))

  def test_writing_where_no_file_can_be(self):
    blocked = self.folder / "file"
    blocked.touch()
    frames = media.numbered_frames(1, 32, 64)
    with self.assertRaisesRegex(errors.InputError, "can be written"):
      video.write_video(blocked / "a.mp4", frames, 24)


class PictureFolderTest(parameterized.TestCase):
  """Folders of pictures as clips."""

  def setUp(self):
    super().setUp()
    self.folder = pathlib.Path(self.create_tempdir().full_path)
    self.frames = media.numbered_frames(11, 32, 64)
    for number, image in enumerate(self.frames):
      media.write_picture(self.folder / f"view{number}.png", image)
    (self.folder / "notes.txt").write_text("not a picture")

  def test_natural_order_and_times(self):
    clip = video.read_clip(self.folder, fps=12)
    np.testing.assert_array_equal(clip.frames, self.frames)
    np.testing.assert_allclose(clip.timestamps, np.arange(11) / 12)
    stream = video.open_video(self.folder, fps=12)
    np.testing.assert_array_equal(np.stack(list(stream)), self.frames)
    self.assertEqual(stream.sha256, clip.sha256)

  def test_digest_ignores_names_but_not_order(self):
    before = video.read_clip(self.folder)
    for path in list(self.folder.glob("*.png")):
      path.rename(path.with_name(f"x{path.name}"))
    self.assertEqual(video.read_clip(self.folder).sha256, before.sha256)
    (self.folder / "xview0.png").rename(self.folder / "xview99.png")
    self.assertNotEqual(video.read_clip(self.folder).sha256, before.sha256)

  def test_unknown_rate_cannot_be_resampled(self):
    clip = video.read_clip(self.folder)
    self.assertEqual(clip.fps, 0)
    with self.assertRaisesRegex(errors.InputError, "no frame rate"):
      clip.resample(24)

  @parameterized.parameters("cut", "flipped", "text")
  def test_damaged_png(self, damage):
    path = self.folder / "view5.png"
    data = bytearray(path.read_bytes())
    if damage == "cut":
      data = data[: len(data) // 2]
    elif damage == "flipped":
      data[len(data) // 2] ^= 0xFF
    else:
      data = bytearray(b"no picture")
    path.write_bytes(data)
    with self.assertRaisesRegex(errors.InputError, "view5.png"):
      video.read_clip(self.folder)

  def test_cut_jpeg(self):
    path = media.write_picture(self.folder / "a.jpg", self.frames[3])
    np.testing.assert_allclose(
      images.read_rgb(path).mean(), self.frames[3].mean(), atol=3
    )
    path.write_bytes(path.read_bytes()[:-40])
    with self.assertRaisesRegex(errors.InputError, "end marker"):
      images.read_rgb(path)

  def test_pictures_of_two_sizes(self):
    media.write_picture(self.folder / "view4.png", self.frames[0, :16])
    with self.assertRaisesRegex(errors.InputError, "as before"):
      video.read_clip(self.folder)

  def test_folder_without_pictures(self):
    empty = self.folder / "empty"
    empty.mkdir()
    with self.assertRaisesRegex(errors.InputError, "none of them a picture"):
      video.read_clip(empty)


class ClipTest(parameterized.TestCase):
  """Clips as values."""

  def test_select_keeps_source_indices(self):
    clip = video.clip_from_frames(media.numbered_frames(9, 8, 16), fps=10)
    part = clip.select([2, 5])
    self.assertEqual(media.read_numbers(part.frames), [2, 5])
    np.testing.assert_array_equal(part.frame_indices, [2, 5])
    np.testing.assert_allclose(part.timestamps, [0.2, 0.5])
    self.assertEqual(part.sha256, clip.sha256)

  def test_resample_is_a_new_source(self):
    clip = video.clip_from_frames(media.numbered_frames(9, 8, 16), fps=12)
    same = clip.resample(12)
    double = clip.resample(24)
    self.assertEqual(media.read_numbers(same.frames), list(range(9)))
    # 17 times 0, 1/24, ..., 16/24; between two frames the earlier one.
    expected = [k // 2 for k in range(17)]
    self.assertEqual(media.read_numbers(double.frames), expected)
    np.testing.assert_array_equal(double.frame_indices, np.arange(17))
    self.assertLen({clip.sha256, same.sha256, double.sha256}, 3)

  def test_digest_is_of_pixels(self):
    frames = media.numbered_frames(2, 8, 16)
    first = video.clip_from_frames(frames, fps=1)
    self.assertEqual(
      first.sha256, video.clip_from_frames(frames.copy(), fps=1).sha256
    )
    frames[0, 0, 0, 0] ^= 1
    self.assertNotEqual(
      first.sha256, video.clip_from_frames(frames, fps=1).sha256
    )

  @parameterized.named_parameters(
    ("floats", np.zeros((2, 4, 4, 3))),
    ("no_frame", np.zeros((0, 4, 4, 3), np.uint8)),
    ("rgba", np.zeros((2, 4, 4, 4), np.uint8)),
    ("one_image", np.zeros((4, 4, 3), np.uint8)),
  )
  def test_wrong_frames(self, frames):
    with self.assertRaisesRegex(errors.InputError, "uint8"):
      video.clip_from_frames(frames, fps=1)


if __name__ == "__main__":
  absltest.main()
