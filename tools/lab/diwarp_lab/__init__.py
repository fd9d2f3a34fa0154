# SPDX-License-Identifier: Apache-2.0
"""Experiments with diwarp: networks, programs in them, figures of what they measure."""
