"""The ant: a robot with four legs and eight motors, simulated by MuJoCo, many at once."""

from pcpo.tasks.ant.circle import ant_circle as ant_circle
from pcpo.tasks.ant.gather import ant_gather as ant_gather
