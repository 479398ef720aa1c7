"""Runs the tests tier by tier, prints what each took, and ends with one summary. `make test` calls it.

Tiers go from what everything rests on to what rests on everything. A failing tier fails the run, but the others
still run; a tier whose folder does not exist yet is named as such.
"""

import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORKERS = 2
LIMIT_MINUTES = 20
PLATFORM = os.environ.setdefault("JAX_PLATFORMS", "cpu")

# name, what pytest is given (patterns from the root), further options
TIERS: list[tuple[str, list[str], list[str]]] = [
    ("core and rules", ["tests/core", "tests/rules"], []),
    ("rl", ["tests/rl"], []),
    ("theory", ["tests/theory"], []),
    ("tasks", ["tests/tasks"], []),
    ("training and its command line", ["tests/training", "tests/cli"], []),
    ("experiments and command line", ["tests/experiments", "tests/test_*.py"], []),
    # As a user types them: without the settings of tests/conftest.py.
    ("examples in docstrings", ["src"], ["--doctest-modules"]),
]


@dataclass
class Result:
    """What one tier did."""

    name: str
    seconds: float = 0.0
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    ok: bool = True
    note: str = ""


def run_tier(name: str, patterns: list[str], options: list[str], skips: Counter[str]) -> Result:
    paths = sorted(str(path.relative_to(ROOT)) for pattern in patterns for path in ROOT.glob(pattern))
    print(f"\n=== {name}: {' '.join(paths) or ' '.join(patterns)}", flush=True)
    if not paths:
        print("nothing there yet", flush=True)
        return Result(name, note="nothing there yet")
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-n", str(WORKERS), "--durations=5"]
        command += ["--durations-min=5", f"--junitxml={report}", *options, *paths]
        start = time.perf_counter()
        code = subprocess.run(command, cwd=ROOT, check=False).returncode
        result = Result(name, seconds=time.perf_counter() - start, ok=code == 0)
        if code == 5:  # pytest's code for "collected nothing": a folder that is still empty
            result.ok, result.note = True, "no tests yet"
        elif report.exists():
            count(report, result, skips)
    print(f"=== {name}: {result.seconds:.0f} s", flush=True)
    if not result.ok and not result.failed:
        result.failed, result.note = 1, f"pytest stopped with code {code}"
    return result


def count(report: Path, result: Result, skips: Counter[str]) -> None:
    """Adds what the report of one pytest run holds. An error in set-up or collection counts as a failure."""
    for case in ET.parse(report).iter("testcase"):
        outcomes = {child.tag for child in case}
        if outcomes & {"failure", "error"}:
            result.failed += 1
        elif "skipped" in outcomes:
            # An expected failure arrives as "skipped" too; it is a test that ran and did what was said of it.
            skipped = case.find("skipped")
            if skipped is not None and skipped.get("type") == "pytest.xfail":
                result.passed += 1
            else:
                result.skipped += 1
                skips[(skipped.get("message") if skipped is not None else None) or "no reason given"] += 1
        else:
            result.passed += 1


def main() -> int:
    skips: Counter[str] = Counter()
    start = time.perf_counter()
    results = [run_tier(name, patterns, options, skips) for name, patterns, options in TIERS]
    minutes = (time.perf_counter() - start) / 60

    print("\n=== summary")
    for r in results:
        counts = r.note or f"{r.passed} passed, {r.failed} failed, {r.skipped} skipped"
        print(f"{r.name:<30} {r.seconds:6.0f} s   {counts}")
    print(f"{'all tiers':<30} {minutes * 60:6.0f} s   ({os.cpu_count()} cores, {WORKERS} workers)")
    if minutes > LIMIT_MINUTES:
        print(f"slower than the {LIMIT_MINUTES} minutes that the suite may take: mark or speed up the slowest tests")
    missing = [f"{reason} ({n} tests)" for reason, n in skips.items()]
    if "cuda" not in PLATFORM:
        missing.insert(0, f"anything on a GPU (jax ran on: {PLATFORM}; JAX_PLATFORMS=cuda runs the tests on one)")
    print("not run on this machine: " + ("; ".join(missing) or "nothing was left out"))

    passed, failed, skipped = (sum(getattr(r, key) for r in results) for key in ("passed", "failed", "skipped"))
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""), flush=True)
    if not passed + failed:
        print("no test ran", file=sys.stderr)
        return 1
    return 0 if all(r.ok for r in results) else 1


if __name__ == "__main__":
    sys.exit(main())
