"""Compiled kernels: arrays and scalars in, arrays out; see ``runtime.compiled``."""
