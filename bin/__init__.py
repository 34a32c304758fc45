# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""absl binaries: flags, one frozen configuration, one call. No arithmetic."""
