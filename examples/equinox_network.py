"""A network of equinox in place of the usual one, for the policy; the critics keep theirs."""

import equinox as eqx
import jax

from pcpo import PCPO, Network, Networks

UPDATES = 50
BATCH = 10_000


def network(make) -> Network:
    """From a function that makes a module from a key: its arrays are the parameters, the rest never changes."""
    _, rest = eqx.partition(make(jax.random.key(0)), eqx.is_inexact_array)

    def init(key):
        return eqx.filter(make(key), eqx.is_inexact_array)

    def apply(params, inputs):
        return jax.vmap(eqx.combine(params, rest))(inputs)

    return Network(init, apply)


# Point-Circle has 9 observations and 2 actions.
policy = network(lambda key: eqx.nn.MLP(9, 2, width_size=32, depth=2, activation=jax.nn.silu, key=key))

agent = PCPO("point-circle", cost_limit=5.0, networks=Networks(policy=policy), batch_size=BATCH)
agent.learn(updates=UPDATES)
print(agent.rows[-1]["return"], agent.rows[-1]["costs"])
