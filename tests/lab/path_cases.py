# SPDX-License-Identifier: MIT
"""Links, places that lie elsewhere than usual, what earlier sessions left, and the files of other users."""
