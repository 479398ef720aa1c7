"""A callback sees every update and may stop the training; then the limit is tightened, and the training goes on.

An agent that begins with a generous limit learns what to do before it learns what not to do.
"""

from pcpo import PCPO

UPDATES = 100
BATCH = 10_000


class UntilKept:
    """Stops once the limit has been kept in so many updates in a row."""

    def __init__(self, updates: int) -> None:
        self.updates, self.kept = updates, 0

    def __call__(self, row) -> bool:
        self.kept = 0 if any(row["violations"].values()) else self.kept + 1
        return self.kept < self.updates  # False stops


agent = PCPO("point-circle", cost_limit=20.0, batch_size=BATCH)
for limit in (20.0, 10.0, 5.0):
    agent.learn(updates=UPDATES, callback=UntilKept(5), limits={"cost": limit})
    row = agent.rows[-1]
    print(f"limit {limit:g}: {agent.updates} updates, return {row['return']:.1f}, cost {row['costs']['cost']:.2f}")
