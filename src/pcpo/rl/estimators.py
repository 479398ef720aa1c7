"""The two kinds of critics behind one set of functions: networks, and linear functions of features."""

from typing import TypeAlias

from jaxtyping import Array, Bool, Float, Int, Key

from pcpo.rl import critics as networks
from pcpo.rl import linear_features
from pcpo.rl.critics import Critics, FitOptions
from pcpo.rl.linear_features import LinearCritics, LinearOptions
from pcpo.rl.networks import Network

AnyCritics: TypeAlias = Critics | LinearCritics
AnyOptions: TypeAlias = FitOptions | LinearOptions


def initial(
    network: Network, key: Key[Array, ""], count: int, observation_size: int, options: AnyOptions
) -> AnyCritics:
    """Untrained critics of the kind that the options are for; linear ones need no network."""
    if isinstance(options, LinearOptions):
        return linear_features.initial(count, observation_size)
    return networks.initial(network, key, count, observation_size)


def predict(
    network: Network, critics: AnyCritics, observations: Float[Array, "N o"], times: Int[Array, " N"]
) -> Float[Array, "k N"]:
    """The estimates of all critics for all observations, made at these time steps of their episodes."""
    if isinstance(critics, LinearCritics):
        return linear_features.predict(critics, observations, times)
    return networks.predict(network, critics, observations)


def fit(
    network: Network,
    critics: AnyCritics,
    observations: Float[Array, "T E o"],
    targets: Float[Array, "k T E"],
    mask: Bool[Array, "T E"],
    radius: Float[Array, ""],
    damping: Float[Array, ""],
    key: Key[Array, ""],
    options: AnyOptions,
    times: Int[Array, "T E"] | None = None,
) -> AnyCritics:
    """Critics that know a batch: networks by natural gradient steps from where they are, linear ones anew.

    All arrays are by rows (see `pcpo.rl.rollout`); ``times`` are those of the rows where there is more than one episode
    in a column.
    """
    if isinstance(options, LinearOptions):
        return linear_features.fit(observations, targets, mask, options, times)
    assert isinstance(critics, Critics)
    return networks.fit(network, critics, observations, targets, mask, radius, damping, key, options)
