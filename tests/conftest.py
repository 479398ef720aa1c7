"""What holds for every test: double precision, strict types and shapes, reproducible examples.

Nothing is set about threads: limiting each pytest-xdist worker to one (XLA's pool and BLAS) was measured on two
cores and gained nothing, since most of a test's time is tracing and compiling.
"""

import os
import sys

# The CPU is what the numbers in the tests were proven on. JAX_PLATFORMS=cuda in the environment overrides it.
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
from hypothesis import HealthCheck, settings
from jaxtyping import install_import_hook

# Every annotated function of pcpo checks its arguments' types, dtypes and shapes while the tests run. The hook
# rewrites modules as they are imported, so an earlier import of pcpo would silently escape it.
if "pcpo" in sys.modules:
    raise RuntimeError("pcpo was imported before tests/conftest.py could install jaxtyping's hook; find the import")
install_import_hook("pcpo", "beartype.beartype")

# Float64, so that exact agreement can be asked for; float32 tests make their own float32 arrays. Mixed dtypes and
# implicit rank promotion are errors here, because in pcpo they are always mistakes.
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

# The first example of a test compiles, which would break any deadline. "ci" repeats the same examples every time;
# HYPOTHESIS_PROFILE=dev looks for new ones.
_COMPILES = [HealthCheck.too_slow]
settings.register_profile("ci", derandomize=True, deadline=None, max_examples=50, suppress_health_check=_COMPILES)
settings.register_profile("dev", deadline=None, max_examples=300, suppress_health_check=_COMPILES)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
