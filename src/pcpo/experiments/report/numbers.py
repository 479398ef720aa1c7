"""Numbers as people read them."""

import math

from pcpo.experiments.comparison import Estimate

MINUS = "\N{MINUS SIGN}"


def short(value: float | int, digits: int = 4) -> str:
    """A number with so many significant digits, and no more zeros than needed.

    Example:
        >>> [short(x) for x in (12345.6, 0.1 + 0.2, 1e-4 / 3, float("nan"))]
        ['12,346', '0.3', '3.333e-5', 'not known']
    """
    if not math.isfinite(value):
        return "not known"
    if value != 0.0 and not 1e-4 <= abs(value) < 1e7:
        mantissa, _, power = f"{value:.{digits - 1}e}".partition("e")
        return _signed(f"{_trimmed(mantissa)}e{int(power)}")
    whole = len(str(int(abs(value)))) if abs(value) >= 1.0 else 1 - math.ceil(-math.log10(abs(value) or 1.0))
    return _signed(_trimmed(f"{value:,.{max(0, digits - whole)}f}"))


def estimate(value: Estimate) -> str:
    """A mean over seeds with half the width of its 95 % interval, where there is one; no digit that this leaves open.

    Example:
        >>> from pcpo.training.statistics import Interval
        >>> estimate(Estimate(4.97134, Interval(4.8803, 5.0623)))
        '4.971 ± 0.091'
    """
    reach = (value.interval.high - value.interval.low) / 2
    if not math.isfinite(reach):
        return short(value.mean)
    if not 1e-4 <= reach < 1e7:
        return f"{short(value.mean)} ± {short(reach, 2)}"
    decimals = max(0, 1 - math.floor(math.log10(reach)))
    return f"{_signed(f'{value.mean:,.{decimals}f}')} ± {reach:,.{decimals}f}"


def share(part: float | int) -> str:
    """A part of all, in percent; never rounded to none or all.

    Example:
        >>> [share(x) for x in (0.0, 0.0004, 0.5, 0.9996, 1.0)]
        ['0 %', '< 1 %', '50 %', '> 99 %', '100 %']
    """
    if not math.isfinite(part):
        return "not known"
    if 0.0 < part < 0.01:
        return "< 1 %"
    return "> 99 %" if 0.99 < part < 1.0 else f"{part:.0%}".replace("%", " %")


def duration(seconds: float | int) -> str:
    """Time in the two largest units.

    Example:
        >>> [duration(x) for x in (3.24, 125, 7300, 200000)]
        ['3.2 s', '2 min 5 s', '2 h 1 min', '2 d 7 h']
    """
    if not math.isfinite(seconds):
        return "not known"
    if seconds < 60.0:
        return f"{seconds:.1f} s"
    units = [("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)]
    whole = round(seconds)
    first = next(i for i, (_, size) in enumerate(units) if whole >= size)
    (big, size), (small, part) = units[first], units[first + 1]
    rest = whole % size // part
    return f"{whole // size} {big}" + (f" {rest} {small}" if rest else "")


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _signed(text: str) -> str:
    """With a minus as long as a plus, before the number; that of an exponent stays short."""
    return MINUS + text[1:] if text.startswith("-") else text
