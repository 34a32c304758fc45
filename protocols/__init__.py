# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Cases in, records and scores out: one package per benchmark."""
