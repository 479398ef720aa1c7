"""Loops, files, clocks and processes: the only room that is not pure."""
