"""Every claim of the paper about experiments, with a verdict that is computed from the results.

`quotes` has the claims in the paper's words, `main_section` and `appendix` the functions that judge them, put together
from pieces in `judges`, `evidence` and `verdicts`; `ours` asks what the paper does not; `page` makes the tables of
docs/results.md. Change the data, and the verdicts change.
"""

import logging
from pathlib import Path

from pcpo.experiments import numbers
from pcpo.experiments.claims import page as pages
from pcpo.experiments.claims.evidence import Data
from pcpo.training.files import RunError, write_whole

_log = logging.getLogger(__name__)


def reproduce(directory: Path, *, results: Path = Path("results"), page: Path | None = None) -> list[Path]:
    """Judges every claim.

    Args:
        directory: Where ``claims.json`` goes; created if missing.
        results: Where a directory for each experiment is.
        page: A page whose tables are made anew, such as docs/results.md.

    Returns:
        The files written.

    Raises:
        RunError: If there are no results, they are damaged, or the page has no place for the tables.
    """
    if not results.is_dir():
        raise RunError(f"{results} is no directory; give the one with the results of the experiments: --results DIR")
    _log.info("judging")
    written: list[Path] = []
    if page is not None:
        text = page.read_text(encoding="utf-8") if page.is_file() else ""
        write_whole(page, pages.filled(text, pages.tables(results)).encode())
        written.append(page)
    directory.mkdir(parents=True, exist_ok=True)
    answers = pages.judge(Data(results))
    return [*written, numbers.write(directory / "claims.json", pages.as_json(answers))]
