"""The ant itself: the model is the original's, a transition is MuJoCo's, and nobody's numbers depend on the others."""

import math

import numpy as np
import pytest

from pcpo.tasks.ant import robot
from pcpo.tasks.ant.centre import centre_of_mass
from pcpo.tasks.ant.robot import Ants
from tests.tasks.ants import Alone, mujoco, standing


def drawn(n, seed=0):
    """States, some of them twisted and far from the start, with quaternions of any length."""
    rng = np.random.default_rng(seed)
    qpos = np.concatenate(
        [
            rng.normal(0, 5, (n, 2)),
            rng.uniform(0.4, 0.9, (n, 1)),
            rng.normal(size=(n, 4)),
            rng.normal(0, 1, (n, 8)),
        ],
        axis=1,
    )
    return qpos, rng.normal(0, 3, (n, 14))


# --- the model


def test_the_model_has_the_originals_numbers():
    model = robot.model()
    assert model.opt.timestep == 0.02
    assert model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4
    assert (model.nq, model.nv, model.nu) == (15, 14, 8)
    assert sum(model.body_mass) == pytest.approx(0.911, abs=5e-4)
    assert model.body("torso").mass[0] == pytest.approx(0.327, abs=5e-4)
    assert model.geom("torso").size[0] == 0.25
    assert model.dof_armature.tolist() == [0.0] * 6 + [1.0] * 8
    assert model.dof_damping.tolist() == [0.0] * 6 + [1.0] * 8
    for leg, (low, high) in {1: (30, 70), 2: (-70, -30), 3: (-70, -30), 4: (30, 70)}.items():
        np.testing.assert_allclose(model.joint(f"hip_{leg}").range, np.radians([-30, 30]))
        np.testing.assert_allclose(model.joint(f"ankle_{leg}").range, np.radians([low, high]))
    axes = [model.joint(f"ankle_{leg}").axis * math.sqrt(2) for leg in (1, 2, 3, 4)]
    np.testing.assert_allclose(axes, [(-1, 1, 0), (1, 1, 0), (-1, 1, 0), (1, 1, 0)], atol=1e-15)
    lengths = {name: 2 * model.geom(f"{name}_3").size[1] / math.sqrt(2) for name in ("thigh", "shin", "foot")}
    assert lengths == pytest.approx({"thigh": 0.2, "shin": 0.2, "foot": 0.4})


def test_contacts_are_the_originals_and_bodies_never_touch_each_other():
    for walls in (False, True):
        model = robot.model(walls)
        assert set(model.geom_contype.tolist()) == {1}
        still = model.geom_bodyid == 0
        assert set(model.geom_conaffinity[still].tolist()) == {1}
        assert set(model.geom_conaffinity[~still].tolist()) == {0}
        assert set(model.geom_condim.tolist()) == {3}
        assert model.geom_friction.tolist() == [[1.0, 0.5, 0.5]] * model.ngeom
        assert model.geom_margin.tolist() == [0.01] * model.ngeom
        assert model.geom_solref.tolist() == [[0.02, 1.0]] * model.ngeom
        assert model.geom_solimp[:, :3].tolist() == [[0.8, 0.8, 0.01]] * model.ngeom


def test_actions_are_torques_in_the_originals_order():
    model = robot.model()
    order = [model.joint(model.actuator_trnid[i, 0]).name for i in range(model.nu)]
    assert order == ["hip_4", "ankle_4", "hip_1", "ankle_1", "hip_2", "ankle_2", "hip_3", "ankle_3"]
    assert model.actuator_ctrlrange.tolist() == [[-150.0, 150.0]] * 8
    assert model.actuator_gear[:, 0].tolist() == [1.0] * 8


def test_it_starts_feet_down_at_the_origin():
    assert robot.model().key("start").qpos.tolist() == [0, 0, 0.55, 1, 0, 0, 0, 0, 1, 0, -1, 0, -1, 0, 1]


# --- transitions


@pytest.mark.parametrize("walls", [False, True])
def test_a_transition_is_mj_steps_to_the_last_bit(walls):
    """Whole ways, from states of a start and from states far from it; some fall, touch the ground or a wall."""
    n, steps = 12, 60
    rng = np.random.default_rng(3)
    ants = Ants(n, walls)
    which = np.arange(n)
    ants.reset(which, robot.generators(which))
    far = standing(6.2, 0.3, 0.5, yaw=0.4, velocity=(3.0, -1.0, 0.0))
    ants.place(np.array([n - 1]), far[0][None], far[1][None])
    alone = [Alone(*states, walls) for states in zip(*ants.states(which), strict=True)]
    touched = 0
    for _ in range(steps):
        actions = 1.5 * rng.normal(size=(n, 8))
        ants.move(which, actions)
        for i, single in enumerate(alone):
            qpos, qvel = single.step(actions[i])
            np.testing.assert_array_equal(ants.qpos[i], qpos)
            np.testing.assert_array_equal(ants.qvel[i], qvel)
            touched += single.data.ncon
    assert touched > steps


def test_a_robot_that_is_placed_goes_on_as_a_fresh_one_does():
    """Nothing is left of what it did before, also not in the solver's first guess."""
    ants, one = Ants(1), np.array([0])
    rng = np.random.default_rng(0)
    ants.reset(one, robot.generators(one))
    for _ in range(40):
        ants.move(one, rng.normal(size=(1, 8)))
    qpos, qvel = ants.states(one)
    ants.place(one, qpos, qvel)
    action = rng.normal(size=8)
    ants.move(one, action[None])
    expected = Alone(qpos[0], qvel[0]).step(action)
    np.testing.assert_array_equal(ants.qpos[0], expected[0])
    np.testing.assert_array_equal(ants.qvel[0], expected[1])


def test_threads_company_and_order_change_nothing():
    n, rng = 7, np.random.default_rng(1)
    actions = rng.normal(size=(30, n, 8))
    ends = []
    for threads in (1, 2, 3):
        ants = Ants(n, threads=threads)
        ants.reset(np.arange(n), robot.generators(np.arange(n)))
        for t in range(30):
            ants.move(np.arange(n), actions[t])
        ends.append(ants.qpos.copy())
    apart = Ants(2 * n, threads=2)
    places = rng.permutation(2 * n)[:n]  # each in some other row, stepped in two groups, backwards
    apart.reset(places, robot.generators(np.arange(n)))
    for t in range(30):
        for group in (slice(3, None), slice(3)):
            apart.move(places[group][::-1], actions[t, group][::-1])
    ends.append(apart.qpos[places])
    for end in ends[1:]:
        np.testing.assert_array_equal(ends[0], end)


def test_actions_are_clipped_and_times_150():
    ants = Ants(4)
    states = [standing()] * 4
    ants.place(np.arange(4), *map(np.array, zip(*states, strict=True)))
    actions = np.zeros((4, 8))
    actions[:, 2] = 1.0, 7.0, 0.5, np.inf
    ants.move(np.arange(4), actions)
    np.testing.assert_array_equal(ants.qpos[0], ants.qpos[1])
    np.testing.assert_array_equal(ants.qpos[0], ants.qpos[3])
    assert not np.array_equal(ants.qpos[0], ants.qpos[2])
    # Hip 1 alone: 150 N m against an inertia of 1 (the links add a few grams) and a damping of 1, for 0.02 s.
    assert ants.qvel[0, 6] == pytest.approx(150 * (1 - math.exp(-0.02)), rel=0.01)


def test_an_action_that_is_no_number_loses_its_robot_and_no_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ants, which = Ants(3), np.arange(3)
    ants.reset(which, robot.generators(which))
    others = Ants(3)
    others.reset(which, robot.generators(which))
    actions = np.full((3, 8), 0.3)
    others.move(which, actions)
    actions[1, 4] = np.nan
    ants.move(which, actions)
    assert np.isnan(ants.qpos[1]).all()
    np.testing.assert_array_equal(ants.qpos[[0, 2]], others.qpos[[0, 2]])
    qpos, qvel = ants.states(which)
    assert robot.fallen(qpos[:, 2], centre_of_mass(qpos, qvel)).tolist() == [False, True, False]
    ants.reset(np.array([1]), robot.generators(np.array([1])))
    ants.move(np.array([1]), np.full((1, 8), 0.3))
    np.testing.assert_array_equal(ants.qpos[1], others.qpos[1])
    assert not list(tmp_path.iterdir())  # MuJoCo would write its complaints into a file here


# --- starting and falling


def test_starts_have_the_noise_of_the_specification_and_are_decided_by_seeds():
    n = 3000
    ants, which = Ants(n), np.arange(n)
    ants.reset(which, robot.generators(which + 5))
    start = robot.model().key("start").qpos
    for values, centre, spread in ((ants.qpos, start, 0.01), (ants.qvel, np.zeros(14), 0.1)):
        error = spread / math.sqrt(n)
        np.testing.assert_allclose(values.mean(0), centre, atol=4.5 * error)
        np.testing.assert_allclose(values.std(0), spread, atol=4.5 * error / math.sqrt(2))
    one = Ants(1)
    one.reset(np.array([0]), robot.generators(np.array([5 + 17])))
    np.testing.assert_array_equal(one.qpos[0], ants.qpos[17])
    np.testing.assert_array_equal(one.qvel[0], ants.qvel[17])


@pytest.mark.parametrize(
    ("z", "fallen"), [(0.2, False), (0.1999, True), (0.55, False), (1.0, False), (1.0001, True), (np.nan, True)]
)
def test_it_has_fallen_when_the_torso_is_not_between_02_and_1(z, fallen):
    qpos, qvel = standing(z=z)
    centre = centre_of_mass(qpos[None], qvel[None])
    assert robot.fallen(qpos[None, 2], centre).tolist() == [fallen]


@pytest.mark.parametrize("part", ["qpos", "qvel"])
@pytest.mark.parametrize("strange", [np.nan, np.inf, -np.inf])
def test_it_has_fallen_when_any_number_of_the_state_is_not_finite(part, strange):
    good = standing()
    for i in range(15 if part == "qpos" else 14):
        qpos, qvel = (x.copy() for x in good)
        (qpos if part == "qpos" else qvel)[i] = strange
        centre = centre_of_mass(qpos[None], qvel[None])
        assert robot.fallen(qpos[None, 2], centre).tolist() == [True], i


# --- where the centre of mass is


def test_the_centre_of_mass_is_mujocos():
    qpos, qvel = drawn(200)
    centre = centre_of_mass(qpos, qvel)
    for i, state in enumerate(zip(qpos, qvel, strict=True)):
        place, velocity = Alone(*state).centre()
        np.testing.assert_allclose(centre.place[:, i], place, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(centre.velocity[:, i], velocity, rtol=1e-12, atol=1e-12)


def test_the_centre_of_mass_of_a_symmetric_robot_is_below_its_torso():
    """By hand: shins as thighs, feet 0.4 sqrt 2 long and bent by 1 radian; see the masses in `centre`."""
    qpos, qvel = standing(1.0, 2.0, 0.9, yaw=0.7, velocity=(0.1, 0.2, 0.3))
    centre = centre_of_mass(qpos[None], qvel[None])
    radius, ball, link = 0.08, 0.25, 0.2 * math.sqrt(2)
    short, long = (5 * math.pi * radius**2 * (length + 4 / 3 * radius) for length in (link, 2 * link))
    mass = 5 * 4 / 3 * math.pi * ball**3 + 4 * (2 * short + long)
    drop = 4 * long * link * math.sin(1.0) / mass
    np.testing.assert_allclose(centre.place[:, 0], [1.0, 2.0, 0.9 - drop], atol=1e-14)
    np.testing.assert_allclose(centre.velocity[:, 0], [0.1, 0.2, 0.3], atol=1e-14)


def test_the_centre_of_mass_does_not_depend_on_company():
    qpos, qvel = drawn(65, seed=2)
    together = centre_of_mass(qpos, qvel)
    for rows in ([0], [3, 64], [40, 7, 12, 1, 2], list(range(64))):
        apart = centre_of_mass(qpos[rows], qvel[rows])
        np.testing.assert_array_equal(apart.place, together.place[:, rows])
        np.testing.assert_array_equal(apart.velocity, together.velocity[:, rows])


@pytest.mark.parametrize("yaw", [0.0, 1.0, math.pi / 2, 3.0, -2.0])
def test_the_heading_is_the_yaw(yaw):
    qpos, _ = standing(yaw=yaw)
    assert robot.heading(qpos[None])[0] == pytest.approx(yaw, abs=1e-14)
    pitch = np.array([math.cos(0.2), 0.0, math.sin(0.2), 0.0])  # nose down by 0.4, then the yaw
    turned = np.zeros(4)
    mujoco.mju_mulQuat(turned, qpos[3:7], pitch)
    qpos[3:7] = 1.3 * turned
    assert robot.heading(qpos[None])[0] == pytest.approx(yaw, abs=1e-14)
