"""What the tests of the ant share: states by hand, and MuJoCo asked for one robot by itself."""

import math

import numpy as np
import pytest

from pcpo.tasks.ant import robot

mujoco = pytest.importorskip("mujoco", reason="MuJoCo is not installed: pip install 'pcpo[mujoco]'")


def standing(x=0.0, y=0.0, z=0.9, yaw=0.0, velocity=(0.0, 0.0, 0.0)):
    """Feet down and at rest but for that velocity; at 0.9 it touches nothing, so that one step is a free fall.

    The legs are as at the start: by their symmetry the centre of mass is on the vertical through the torso's middle.
    """
    qpos = np.array(robot.model().key("start").qpos)
    qpos[:7] = x, y, z, math.cos(yaw / 2), 0.0, 0.0, math.sin(yaw / 2)
    qvel = np.zeros(14)
    qvel[:3] = velocity
    return qpos, qvel


class Alone:
    """One robot in an MjData, stepped by mj_step: what everything else has to agree with."""

    def __init__(self, qpos, qvel, walls=False):
        self.model = robot.model(walls)
        self.data = mujoco.MjData(self.model)
        self.data.qpos[:], self.data.qvel[:] = qpos, qvel

    def step(self, action):
        self.data.ctrl[:] = 150 * np.clip(action, -1, 1)
        mujoco.mj_step(self.model, self.data)
        return self.data.qpos.copy(), self.data.qvel.copy()

    def centre(self):
        """Place and velocity of the centre of mass of the state as it is, by MuJoCo."""
        fresh = mujoco.MjData(self.model)
        fresh.qpos[:], fresh.qvel[:] = self.data.qpos, self.data.qvel
        mujoco.mj_forward(self.model, fresh)
        mujoco.mj_subtreeVel(self.model, fresh)
        torso = self.model.body("torso").id
        return fresh.subtree_com[torso].copy(), fresh.subtree_linvel[torso].copy()


def put(worlds, *states):
    """Robots 0, 1, ... of some worlds in these states; their observations."""
    qpos, qvel = (np.array(part) for part in zip(*states, strict=True))
    return worlds.place(np.arange(len(states)), qpos, qvel)
