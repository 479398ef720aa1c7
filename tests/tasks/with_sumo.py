"""Whether this machine can simulate traffic."""

import importlib.util

import pytest

from pcpo.tasks.host import WorldError
from pcpo.tasks.traffic.sumo import engine


def need_sumo() -> None:
    """Skips where SUMO is not installed; fails in one line, with what to install, where it is and cannot be loaded.

    For a whole file, called where it begins, or for one test.
    """
    if importlib.util.find_spec("libsumo") is None:
        pytest.skip("SUMO is not installed: pip install 'pcpo[traffic]'", allow_module_level=True)
    try:
        engine("this test")
    except WorldError as error:
        pytest.fail(str(error), pytrace=False)
