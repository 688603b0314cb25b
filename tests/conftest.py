"""Settings that every test shares."""

from hypothesis import settings

# A kernel's first call compiles it, whichever example that is.
settings.register_profile("compiling", deadline=None)
settings.load_profile("compiling")
