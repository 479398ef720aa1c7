"""A network of flax in place of the usual one, for the policy and for the critics."""

from flax import nnx

from pcpo import PCPO, Network, Networks

UPDATES = 50
BATCH = 10_000


class Normed(nnx.Module):
    """One layer, normalised before its tanh."""

    def __init__(self, inputs: int, outputs: int, rngs: nnx.Rngs) -> None:
        self.first = nnx.Linear(inputs, 32, rngs=rngs)
        self.norm = nnx.LayerNorm(32, rngs=rngs)
        self.last = nnx.Linear(32, outputs, rngs=rngs)

    def __call__(self, x):
        return self.last(nnx.tanh(self.norm(self.first(x))))


def network(inputs: int, outputs: int) -> Network:
    """A network is two pure functions: parameters from a key, outputs from parameters and inputs."""
    graph, _ = nnx.split(Normed(inputs, outputs, nnx.Rngs(0)))
    return Network(
        init=lambda key: nnx.state(Normed(inputs, outputs, nnx.Rngs(key))),
        apply=lambda params, inputs: nnx.merge(graph, params)(inputs),
    )


# Point-Circle has 9 observations and 2 actions. A critic has one output.
networks = Networks(policy=network(9, 2), critic=network(9, 1))

agent = PCPO("point-circle", cost_limit=5.0, networks=networks, batch_size=BATCH)
agent.learn(updates=UPDATES)
print(agent.rows[-1]["return"], agent.rows[-1]["costs"])

# No file holds code, so whoever loads the agent gives the networks again.
agent.save("normed.safetensors")
again = PCPO.load("normed.safetensors", networks=networks)
print("loaded after", again.updates, "updates")
