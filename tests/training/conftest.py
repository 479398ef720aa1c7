"""Training compiles large programs; here each is compiled once, for all tests and for the processes that they start."""

import jax
import pytest

CACHE = {
    "jax_compilation_cache_dir": "",
    "jax_persistent_cache_min_compile_time_secs": 0.5,
    "jax_persistent_cache_min_entry_size_bytes": -1,
}


@pytest.fixture(scope="session")
def compilation_cache(tmp_path_factory):
    """A directory that all workers share."""
    directory = tmp_path_factory.getbasetemp().parent / "pcpo-compiled"
    directory.mkdir(exist_ok=True)
    return directory


@pytest.fixture(scope="package", autouse=True)
def compiled_once(compilation_cache):
    """Switches jax's cache on, and off again for whoever comes after."""
    before = {name: getattr(jax.config, name) for name in CACHE}
    for name, value in {**CACHE, "jax_compilation_cache_dir": str(compilation_cache)}.items():
        jax.config.update(name, value)
    yield
    for name, value in before.items():
        jax.config.update(name, value)
