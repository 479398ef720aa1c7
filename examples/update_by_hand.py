"""One update of PCPO by hand, on a problem of your own: no environment, no policy, only vectors.

A rule needs the gradients g and a, the violation b = J_C - h, and products with the Fisher matrix H. All of them count
per episode.
"""

import jax
import jax.numpy as jnp

from pcpo import rules
from pcpo.core import LocalModel, Status

key = jax.random.key(0)
root, reward, costs = (jax.random.normal(k, shape) for k, shape in zip(
    jax.random.split(key, 3), [(50, 50), (50,), (2, 50)], strict=True))  # fmt: skip
H = root @ root.T / 50 + 0.1 * jnp.eye(50)

model = LocalModel(
    g=reward,  # where the reward grows
    a=costs,  # where each of two costs grows
    b=jnp.array([0.3, -1.0]),  # the first limit is violated by 0.3; the second has 1.0 left
    fvp=lambda v: H @ v,
)

for projection in ("kl", "l2"):
    rule = rules.pcpo(delta=0.01, projection=projection, cg_iterations=50)
    step, _, info = jax.jit(rule.update)(model, rule.init(2))
    print(f"{projection}: {Status(int(info.status)).name}")
    print(f"  reward by {reward @ step:+.3f}, costs by {costs @ step} (the first was to fall by 0.3)")
    print(f"  KL divergence {0.5 * step @ H @ step:.4f}; a reward step alone would have taken 0.01")
