"""Normalizers beyond those of `ops.normalizers`, one file each, which defines `NORMALIZER`."""
