"""Random linear-quadratic problems with everything dense, and independent dense solutions to compare with.

Nothing here calls the library's mathematics: solutions are written again, in numpy, by other means.
"""

import itertools
from collections.abc import Iterator
from dataclasses import astuple, dataclass

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import Partial

from pcpo.core import LocalModel, Surrogates


@dataclass(frozen=True)
class Problem:
    """One dense problem, or a batch of them along the first axis of every array."""

    H: np.ndarray
    g: np.ndarray
    a: np.ndarray
    b: np.ndarray

    def each(self) -> Iterator["Problem"]:
        """The problems of a batch, one by one."""
        return (Problem(*one) for one in zip(self.H, self.g, self.a, self.b, strict=True))


def random_problems(seed: int, count: int, n: int, m: int, condition: float = 50.0, violation: float = 0.3) -> Problem:
    """Problems with cond(H) = ``condition``, correlated gradients and violations of both signs."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(count, n, n)))[0]
    eigenvalues = np.exp(rng.uniform(0.0, np.log(condition), size=(count, n)))
    eigenvalues[:, 0], eigenvalues[:, -1] = 1.0, condition
    H = np.einsum("kij,kj,klj->kil", basis, eigenvalues, basis)
    g = rng.normal(size=(count, n))
    a = rng.normal(size=(count, m, n)) + 0.5 * g[:, None, :]
    return Problem(H, g, a, violation * rng.normal(size=(count, m)))


def multiply(H: Array, v: Array) -> Array:
    return H @ v


def quadratic(H: Array, g: Array, a: Array, d: Array) -> Surrogates:
    """Surrogates that the linear-quadratic model describes exactly."""
    return Surrogates(g @ d, a @ d, 0.5 * d @ (H @ d))


def model(H: Array, g: Array, a: Array, b: Array, surrogates: bool = True) -> LocalModel:
    """The model of one dense problem; its functions are the same objects every time, so that nothing is retraced."""
    evaluate = Partial(quadratic, H, g, a) if surrogates else None
    return LocalModel(g=g, a=a, b=b, fvp=Partial(multiply, H), evaluate=evaluate)


def random_problem(seed: int, n: int, m: int) -> Problem:
    return next(random_problems(seed, 1, n, m).each())


def as_arrays(problem: Problem, dtype=jnp.float64) -> tuple[Array, Array, Array, Array]:
    H, g, a, b = (jnp.asarray(x, dtype) for x in astuple(problem))
    return H, g, a, b


def natural_step(p: Problem, delta: float) -> np.ndarray:
    v = np.linalg.solve(p.H, p.g)
    return np.sqrt(2 * delta / (p.g @ v)) * v


def nearest_in_intersection(d: np.ndarray, a: np.ndarray, b: np.ndarray, L: np.ndarray) -> np.ndarray:
    """The projection onto an intersection of half-spaces by trying every set of active constraints."""
    best, best_distance = None, np.inf
    for size in range(len(b) + 1):
        for active in itertools.combinations(range(len(b)), size):
            A = a[list(active)]
            w = np.linalg.solve(L, A.T)
            nu = np.linalg.solve(A @ w, A @ d + b[list(active)]) if size else np.zeros(0)
            point = d - w @ nu
            distance = (point - d) @ L @ (point - d)
            if np.all(a @ point + b <= 1e-9) and distance < best_distance:
                best, best_distance = point, distance
    assert best is not None
    return best


def alternating_projections(
    d: np.ndarray, a: np.ndarray, b: np.ndarray, L: np.ndarray, sweeps: int = 5000
) -> np.ndarray:
    """Literally: project the vector onto one half-space after the other."""
    w = np.linalg.solve(L, a.T).T
    for _ in range(sweeps):
        before = d
        for a_i, b_i, w_i in zip(a, b, w, strict=True):
            d = d - max(0.0, (a_i @ d + b_i) / (a_i @ w_i)) * w_i
        if np.array_equal(d, before):
            break
    return d


def dense_pcpo(p: Problem, delta: float, projection: str, several: str) -> np.ndarray:
    """Eq. PCPO_final with inverted matrices."""
    L = p.H if projection == "kl" else np.eye(len(p.g))
    project = nearest_in_intersection if several == "dykstra" else alternating_projections
    return project(natural_step(p, delta), p.a, p.b, L)
