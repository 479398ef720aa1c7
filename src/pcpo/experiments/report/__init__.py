"""One self-contained HTML page about any set of runs: what `pcpo report` writes.

From directories to a page: `gather` reads runs and says of each one that cannot be shown why; `charts` turns their
measurements into what is drawn, thinned where there is much of it; `promises` counts how updates went; `settings` finds
what runs differ in; `tables` and `page` are the words and the markup around them. ``chart.js`` draws, with nothing but
what the page holds, and ``page.css`` is the look.
"""

from pcpo.experiments.report.gather import Left, Subject, gather
from pcpo.experiments.report.page import page

__all__ = ["Left", "Subject", "gather", "page"]
