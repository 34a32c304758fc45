# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Florence-2 and Qwen3-VL: real classes, tiny models saved to disk and loaded.

Tokenizers spell letter by letter; the answers of untrained models are noise,
so parsing is tested on prepared replies.
"""

import numpy as np
import pytest
from absl.testing import absltest, parameterized

from perception import errors, registry, roles
from perception.neural import florence2, qwen_vl
from tests.perception.neural import neural_test_utils as utils

torch = pytest.importorskip("torch", reason="needs the perception extra")
transformers = pytest.importorskip(
  "transformers", reason="needs the perception extra"
)
tokenizers = pytest.importorskip("tokenizers", reason="comes with transformers")
pytestmark = pytest.mark.perception

_TASK = "<CAPTION_TO_PHRASE_GROUNDING>"
_TEMPLATE = (
  "{% for m in messages %}{{ m.role }}: {% for p in m.content %}"
  "{% if p.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
  "{% else %}{{ p.text }}{% endif %}{% endfor %}\n{% endfor %}assistant: "
)


def _tokenizer(special, plain=()):
  characters = [chr(code) for code in range(32, 127)] + ["\n"]
  words = [*special, *plain, *characters]
  model = tokenizers.models.BPE(
    vocab={word: row for row, word in enumerate(words)},
    merges=[],
    unk_token="<unk>",
  )
  inner = tokenizers.Tokenizer(model)
  inner.decoder = tokenizers.decoders.Fuse()
  return inner


def _save_florence(folder):
  places = [f"<loc_{row}>" for row in range(1000)]
  tokenizer = transformers.PreTrainedTokenizerFast(
    tokenizer_object=_tokenizer(
      ["<s>", "<pad>", "</s>", "<unk>", "<image>"], places
    ),
    bos_token="<s>",
    eos_token="</s>",
    pad_token="<pad>",
    unk_token="<unk>",
    extra_special_tokens={"image_token": "<image>"},
  )
  tokenizer.add_tokens(
    [transformers.AddedToken(place, special=False) for place in places]
  )
  config = transformers.Florence2Config(
    vision_config={
      "depths": [1, 1, 1, 1],
      "embed_dim": [16, 16, 16, 32],
      "num_heads": [1, 1, 1, 2],
      "num_groups": [1, 1, 1, 2],
      "projection_dim": 32,
    },
    text_config={
      "model_type": "bart",
      "d_model": 32,
      "encoder_layers": 2,
      "decoder_layers": 2,
      "encoder_attention_heads": 2,
      "decoder_attention_heads": 2,
      "encoder_ffn_dim": 64,
      "decoder_ffn_dim": 64,
      "vocab_size": len(tokenizer),
      "max_position_embeddings": 2048,
      "bos_token_id": 0,
      "pad_token_id": 1,
      "eos_token_id": 2,
      "decoder_start_token_id": 2,
    },
    image_token_id=tokenizer.image_token_id,
    is_encoder_decoder=True,
  )
  torch.manual_seed(0)
  transformers.Florence2ForConditionalGeneration(config).save_pretrained(folder)
  size = {"height": 768, "width": 768}
  images = transformers.CLIPImageProcessor(size=size, crop_size=size)
  images.image_seq_length = 577
  transformers.Florence2Processor(
    images, tokenizer, post_processor_config={"phrase_grounding": {}}
  ).save_pretrained(folder)


class FlorenceTest(parameterized.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.folder = absltest.get_default_test_tmpdir() + "/florence2"
    _save_florence(cls.folder)
    cls.backend = registry.get(
      "detections", "florence2", weights=cls.folder, device="cpu"
    )

  def test_runs_and_beams_are_the_published_ones(self):
    self.assertIsInstance(self.backend, roles.DetectionsBackend)
    image = utils.moving_square(1)[0]
    with (
      absltest.mock.patch.object(
        self.backend._net, "generate", wraps=self.backend._net.generate
      ) as generate,
      absltest.mock.patch("perception.neural.florence2._MAX_TOKENS", 8),
    ):
      found = self.backend.detect(image, ["red car"])
    self.assertEqual(generate.call_args.kwargs["num_beams"], 3)
    self.assertFalse(generate.call_args.kwargs["do_sample"])
    self.assertEqual(found.boxes.shape[1:], (4,))
    self.assertEqual(self.backend.info.settings["max_tokens"], 1024)

  def test_boxes_of_a_wide_image(self):
    replies = {
      "red car": "</s><s>red car<loc_500><loc_250><loc_749><loc_499>"
      "<loc_0><loc_0><loc_999><loc_999></s>",
      "cat": "</s><s>nothing</s>",
    }
    asked = []

    def reply(image, prompt):
      del image
      asked.append(prompt)
      return replies[prompt.removeprefix(_TASK)]

    image = utils.moving_square(1)[0]
    with absltest.mock.patch.object(self.backend, "_generate", reply):
      found = self.backend.detect(image, ["red car", "cat"])
    self.assertEqual(asked, [_TASK + "red car", _TASK + "cat"])
    # Bin centres: x = (bin + .5) .08 - .5, y = (bin + .5) .048 - .5.
    np.testing.assert_allclose(
      found.boxes,
      [[39.54, 11.524, 59.46, 23.476], [-0.46, -0.476, 79.46, 47.476]],
      atol=1e-4,
    )
    self.assertEqual(found.labels.tolist(), ["red car", "red car"])
    np.testing.assert_array_equal(found.scores, 1)

  @parameterized.parameters(
    ("</s><s>no box</s>", 0),
    ("<loc_1><loc_2><loc_3><loc_4>", 0),
    ("a<loc_1><loc_2><loc_3>", 0),
    ("a<loc_1><loc_2><loc_3><loc_4><loc_5>b<loc_1><loc_2><loc_3><loc_4>", 2),
    ("", 0),
  )
  def test_odd_replies(self, text, count):
    self.assertLen(florence2.parse(text, (48, 80)), count)

  @parameterized.parameters([[]], [[" "]])
  def test_refused(self, phrases):
    with self.assertRaisesRegex(errors.InputError, "phrases"):
      self.backend.detect(utils.moving_square(1)[0], phrases)

  def test_no_random_weights(self):
    with self.assertRaisesRegex(errors.InputError, "real weights"):
      registry.get("detections", "florence2", weights="random")


def _save_qwen(folder):
  special = [
    "<|endoftext|>",
    "<unk>",
    "<|im_start|>",
    "<|im_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
    "<|vision_start|>",
    "<|vision_end|>",
  ]
  tokenizer = transformers.PreTrainedTokenizerFast(
    tokenizer_object=_tokenizer(special),
    eos_token="<|im_end|>",
    pad_token="<|endoftext|>",
    unk_token="<unk>",
    additional_special_tokens=special[2:],
  )
  ids = tokenizer.convert_tokens_to_ids
  config = transformers.Qwen3VLConfig(
    text_config={
      "hidden_size": 32,
      "intermediate_size": 64,
      "num_hidden_layers": 2,
      "num_attention_heads": 2,
      "num_key_value_heads": 2,
      "head_dim": 16,
      "vocab_size": len(tokenizer),
      "max_position_embeddings": 4096,
      "rope_parameters": {
        "rope_type": "default",
        "mrope_section": [4, 2, 2],
        "mrope_interleaved": True,
        "rope_theta": 10000.0,
      },
      "eos_token_id": 3,
      "pad_token_id": 0,
    },
    vision_config={
      "depth": 2,
      "hidden_size": 32,
      "intermediate_size": 64,
      "num_heads": 2,
      "out_hidden_size": 32,
      "patch_size": 16,
      "spatial_merge_size": 2,
      "temporal_patch_size": 2,
      "deepstack_visual_indexes": [0],
      "num_position_embeddings": 64,
    },
    image_token_id=ids("<|image_pad|>"),
    video_token_id=ids("<|video_pad|>"),
    vision_start_token_id=ids("<|vision_start|>"),
    vision_end_token_id=ids("<|vision_end|>"),
  )
  torch.manual_seed(0)
  model = transformers.Qwen3VLForConditionalGeneration(config)
  model.generation_config.eos_token_id = 3
  model.save_pretrained(folder)
  size = {"shortest_edge": 32 * 32, "longest_edge": 64 * 64}
  transformers.Qwen3VLProcessor(
    transformers.Qwen2VLImageProcessor(
      patch_size=16, merge_size=2, temporal_patch_size=2, size=size
    ),
    tokenizer,
    transformers.Qwen3VLVideoProcessor(),
    chat_template=_TEMPLATE,
  ).save_pretrained(folder)


class QwenTest(absltest.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.folder = absltest.get_default_test_tmpdir() + "/qwen3_vl"
    _save_qwen(cls.folder)
    cls.backend = registry.get(
      "vision_language", "qwen3_vl", weights=cls.folder, device="cpu"
    )

  def _request(self, **options):
    message = roles.ChatMessage(
      "user", ("What is in this picture?", utils.moving_square(1)[0])
    )
    return roles.ChatRequest((message,), max_tokens=5, **options)

  def test_answers_are_greedy_and_cut_at_the_limit(self):
    self.assertIsInstance(self.backend, roles.VisionLanguageBackend)
    request = self._request()
    answer = self.backend.answer(request)
    self.assertEqual(answer, self.backend.answer(request))
    self.assertIn(answer.finish_reason, ("stop", "length"))
    self.assertEqual(answer.provenance.source_sha256, request.sha256())

  def test_sampling_follows_the_seed(self):
    hot = self._request(temperature=5.0, seed=1)
    self.assertEqual(
      self.backend.answer(hot).text, self.backend.answer(hot).text
    )

  def test_conversation(self):
    found = qwen_vl.conversation(
      self._request(response_schema={"type": "object"})
    )
    parts = found[0]["content"]
    self.assertEqual([p["type"] for p in parts], ["text", "image", "text"])
    self.assertEqual(parts[1]["image"].size, (80, 48))
    self.assertIn('{"type": "object"}', parts[2]["text"])

  def test_no_random_weights(self):
    with self.assertRaisesRegex(errors.InputError, "real weights"):
      registry.get("vision_language", "qwen3_vl", weights="random")
    with self.assertRaisesRegex(errors.InputError, "hf download Qwen/Qwen3"):
      registry.get("vision_language", "qwen3_vl", device="cpu")


if __name__ == "__main__":
  absltest.main()
