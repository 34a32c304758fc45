# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
