"""Small problems in which the numbers can be worked out by hand, and exact steps in the space of policies.

In all of them each action has a "pay bit": reward +1 or -1 by the bit, or the other way round, so that under a fair
bit every value is zero and the advantages are the rewards. A new policy that prefers the bit by y has expected
advantage +2y or -2y, whichever sign the state has. The state distribution is moved by the other half of the action.
"""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.optimize import brentq

from pcpo.experiments.tabular import CMDP


def fork() -> CMDP:
    """From state 0 a coin leads to state 1 or 2, both for ever. Actions are (coin, bit), bit last.

    Everything that a policy can do to the distribution of states, it does at t = 0.
    """
    moves = np.zeros((3, 4, 3))
    moves[0, :2, 1] = moves[0, 2:, 2] = 1.0
    moves[1, :, 1] = moves[2, :, 2] = 1.0
    bit = np.array([1.0, -1.0, 1.0, -1.0])
    pay = np.stack([np.zeros(4), bit, -bit])
    return CMDP(jnp.asarray(moves), jnp.asarray(pay), jnp.asarray(-pay), jnp.array([1.0, 0.0, 0.0]))


def fork_policies(x: float, y: float) -> tuple[Array, Array]:
    """A fair policy, and one that prefers state 1 by x (probability 1/2 + x) and the bit by y."""
    return jnp.zeros((3, 4)), jnp.stack([coins(0.5 + x, 0.5), coins(0.5, 0.5 + y), coins(0.5, 0.5 + y)])


def chain() -> CMDP:
    """State 0 ("on") lasts as long as the coin says; state 1 ("off") for ever. Actions are (coin, bit)."""
    moves = np.zeros((2, 4, 2))
    moves[0, :2, 0] = moves[0, 2:, 1] = 1.0
    moves[1, :, 1] = 1.0
    bit = np.array([1.0, -1.0, 1.0, -1.0])
    pay = np.stack([bit, -bit])
    return CMDP(jnp.asarray(moves), jnp.asarray(pay), jnp.asarray(-pay), jnp.array([1.0, 0.0]))


def chain_policies(y: float, stop: float = 1e-9) -> tuple[Array, Array]:
    """A fair policy, and one that stays on (all but surely) and prefers the bit by y."""
    return jnp.zeros((2, 4)), jnp.stack([coins(1.0 - stop, 0.5 + y), coins(0.5, 0.5 + y)])


def coins(coin: float, bit: float) -> Array:
    """Logits of two independent coins, as four actions."""
    return jnp.log(jnp.array([coin * bit, coin * (1.0 - bit), (1.0 - coin) * bit, (1.0 - coin) * (1.0 - bit)]))


def bandit(reward: list[float], cost: list[float]) -> CMDP:
    """One state, in which everything repeats."""
    arms = len(reward)
    return CMDP(jnp.ones((1, arms, 1)), jnp.array([reward]), jnp.array([cost]), jnp.ones(1))


def kl(p: np.ndarray, q: np.ndarray) -> float:
    return float(np.sum(p * (np.log(p) - np.log(q))))


def root(function: Callable[[float], float], high: float) -> float:
    return float(np.asarray(brentq(function, 0.0, high, xtol=1e-14)))


def exact_steps(
    policy: np.ndarray, reward: np.ndarray, cost: np.ndarray, delta: float, b: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Both steps of PCPO on a bandit without any approximation: over all policies, with the KL divergence itself.

    Eq. PCPO_firstStep: the best policy with KL(new || old) <= delta is a tilt of the old one by the reward. Eq.
    PCPO_secondStep: the policy nearest to it, KL(. || half), with E[A_C] + b <= 0 is a tilt of that by the cost.
    """
    A_R, A_C = reward - policy @ reward, cost - policy @ cost

    def tilted(x: float, y: float) -> np.ndarray:
        logits = np.log(policy) + x * A_R - y * A_C
        weights = np.exp(logits - logits.max())
        return weights / weights.sum()

    x = root(lambda x: kl(tilted(x, 0.0), policy) - delta, 60.0)
    half = tilted(x, 0.0)
    if half @ A_C + b <= 0.0:
        return half, half
    return half, tilted(x, root(lambda y: float(tilted(x, y) @ A_C) + b, 200.0))
