"""Settings of all tests."""

import os

from hypothesis import settings

# Random programs on shared machines: a slow example is no failure, and examples are few.
settings.register_profile("default", max_examples=60, deadline=None, derandomize=True)
settings.register_profile("thorough", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
