# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""What every binary does around its `main`: JAX flags, logging, exit codes.

Exit codes: 0 finished; 2 bad input, said in one line; 3 finished, but totals
were refused because cases have no score.
"""

from __future__ import annotations

import logging as standard_logging
import os
import pathlib
import sys
from collections.abc import Callable, Sequence

from absl import app, flags, logging

from perception.errors import InputError
from perception.neural import handoff

OK = 0
BAD_INPUT = 2
TOTALS_REFUSED = 3


def run(main: Callable[[Sequence[str]], int]) -> None:
  """Parses flags (JAX's own among them), runs `main`, exits with its code.

  Args:
    main: receives the positional arguments; returns an exit code.
  """
  # Read when JAX first touches a device: torch needs room beside it.
  handoff.share_device_memory(environment=os.environ)
  import jax

  jax.config.config_with_absl()
  app.run(lambda argv: sys.exit(_guarded(main, argv)))


def _keep_compilations() -> None:
  """Lets later runs and worker processes reuse compiled code.

  A start takes a third of the time then. The user's own setting, by flag or
  by environment, wins.
  """
  import jax

  if jax.config.jax_compilation_cache_dir is None:  # type: ignore[attr-defined]
    home = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    folder = pathlib.Path(home) / "worldgauge" / "jax"
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
    # Workers are new processes and read the environment.
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder)
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.1"


def _guarded(main: Callable[[Sequence[str]], int], argv: Sequence[str]) -> int:
  if not flags.FLAGS["verbosity"].present:
    logging.set_verbosity(logging.INFO)
    # JAX reports every accelerator that it does not find.
    standard_logging.getLogger("jax").setLevel(standard_logging.WARNING)
  if len(argv) > 1:
    print(
      f"error: unexpected argument {argv[1]!r}; see --help", file=sys.stderr
    )
    return BAD_INPUT
  _keep_compilations()
  try:
    return main(argv)
  except InputError as error:
    print(f"error: {error}", file=sys.stderr)
    return BAD_INPUT
  except KeyboardInterrupt:
    print("interrupted; the same command resumes", file=sys.stderr)
    return 130
