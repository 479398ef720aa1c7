"""Two limits at once, each with its own number, and one of them discounted.

In Point-Square the robot pays under one name beside the band in x, and under another beside the band in y.
"""

from pcpo import PCPO, Constraint

UPDATES = 100
BATCH = 20_000

limits = [Constraint("cost_x", 5.0), Constraint("cost_y", 2.0, discount=0.99)]

agent = PCPO("point-square", cost_limit=limits, several="dykstra", batch_size=BATCH)
agent.learn(updates=UPDATES)

row = agent.rows[-1]
print(f"return {row['return']:.0f}")
for limit in limits:
    print(f"{limit.name}: {row['costs'][limit.name]:.2f}, at most {limit.limit}")
