"""Compiled kernels: arrays and scalars in, arrays out; see ``compiled`` for where they are kept."""
