# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Shared surface by hand: a wall, and a board that hides part of it."""

import numpy as np
from absl.testing import absltest, parameterized

from protocols.orbia.dataset import ReferenceFrame
from protocols.orbia.shared_surface import reference_of, shared_surface

# Ten columns that are 0.1 wide at depth 1, 1 wide at depth 10.
_K = np.array([[10.0, 0, 5.0], [0, 10.0, 2.0], [0, 0, 1]])


def _view(depth, x=0.0, valid=None):
  depth = np.tile(np.asarray(depth, np.float32), (4, 1))
  pose = np.eye(4)
  pose[0, 3] = x
  return ReferenceFrame(
    rgb=np.zeros((*depth.shape, 3), np.uint8),
    depth=depth,
    valid=np.ones(depth.shape, bool) if valid is None else valid,
    pose=pose,
    k_rgb=_K,
    k_depth=_K,
  )


class SharedSurfaceTest(parameterized.TestCase):
  @parameterized.parameters("query_to_input", "input_to_query")
  def test_a_step_aside_shifts_the_wall(self, direction):
    first, query = _view(np.full(10, 10.0)), _view(np.full(10, 10.0), x=3.0)
    found = shared_surface(query, first, direction=direction)
    # Query column c shows what input column c + 3 shows.
    np.testing.assert_array_equal(found.supported[0], np.arange(10) < 7)
    np.testing.assert_array_equal(found.input_column[1, :7], np.arange(3, 10))
    np.testing.assert_array_equal(found.input_row[3, :7], 3)
    self.assertTrue(np.all(found.input_column[:, 7:] == -1))

  def test_what_a_board_hides(self):
    # In the input a board at depth 5 stands before columns 4 and 5. Moved by
    # 3 it lies at columns -2 and -1 of the query: out of its picture.
    board = np.full(10, 10.0)
    board[4:6] = 5.0
    first, query = _view(board), _view(np.full(10, 10.0), x=3.0)
    released = shared_surface(query, first).supported[0]
    paper = shared_surface(query, first, direction="input_to_query")
    # The wall behind the board, query columns 1 and 2, was not seen.
    expected = [True, False, False, True, True, True, True, *[False] * 3]
    np.testing.assert_array_equal(released, expected)
    np.testing.assert_array_equal(paper.supported[0], expected)

  def test_the_nearest_sample_wins(self):
    # Seen from the query, board and wall of the input fall on one column.
    board = np.full(10, 10.0)
    board[8] = 5.0
    first, query = _view(board), _view(np.full(10, 10.0), x=1.0)
    found = shared_surface(query, first, direction="input_to_query")
    # Board: column 8 at depth 5 moves by 2 to 6; wall column 7 moves by 1 to 6.
    self.assertEqual(found.input_column[0, 6], 8)
    # The released rule: the query's wall there was seen, at input column 7.
    released = shared_surface(query, first)
    self.assertEqual(released.input_column[0, 6], 7)
    self.assertTrue(released.supported[0, 6])

  def test_invalid_depth_supports_nothing(self):
    hole = np.ones((4, 10), bool)
    hole[:, 5] = False
    first = _view(np.full(10, 10.0), valid=hole)
    query = _view(np.full(10, 10.0), x=3.0)
    for direction in ("query_to_input", "input_to_query"):
      found = shared_surface(query, first, direction=direction)
      self.assertFalse(found.supported[0, 2])
      self.assertTrue(found.supported[0, 1])

  def test_regions_follow_the_direction(self):
    board = np.full(10, 10.0)
    board[8] = 5.0
    first, query = _view(board), _view(np.full(10, 10.0), x=1.0)
    whole = np.ones((4, 10), bool)
    on_board = np.zeros((4, 10), bool)
    on_board[:, 8] = True
    for direction, expected in (("query_to_input", 0), ("input_to_query", 4)):
      found = reference_of(
        first,
        query,
        {"A1": (on_board, whole)},
        source="self-recorded",
        native_to_input=np.eye(3),
        depth_unit="metre",
        direction=direction,
      )
      self.assertEqual(found.anchors[0].region.sum(), expected)


if __name__ == "__main__":
  absltest.main()
