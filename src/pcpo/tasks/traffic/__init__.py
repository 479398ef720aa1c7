"""Traffic: lights that may not stay red for long, and a fleet that may not keep others slow. SUMO moves the cars.

`pcpo.tasks.traffic.sumo` is the only door to SUMO; importing anything else here does not need it.
"""
