"""What trained policies of the traffic tasks earn and cost without their noise.

`python docs/figures/traffic_likeliest.py RUN ...` plays ten episodes of the likeliest actions with the newest policy of
each run, as `pcpo evaluate --deterministic` does, and writes the means to traffic-likeliest.json: by task, era and
algorithm, reward and cost for each seed.
"""

import json
import sys
from pathlib import Path

from pcpo.training.evaluate import evaluate
from pcpo.training.host.fleet import Hands
from pcpo.training.run import Run

EPISODES = 10


def likeliest(directories: list[str]) -> dict[str, dict[str, dict[str, float]]]:
    """By setting and seed."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for directory in directories:
        run = Run.open(Path(directory))
        config, told = run.config, evaluate(run, EPISODES, deterministic=True, hands=Hands(0)).to_json()
        name = f"{config.task} {config.task_options.get('era', 'E1')} {config.algorithm}"
        for seed, judged in told["seeds"].items():
            found.setdefault(name, {})[str(seed)] = {
                "updates": told["update"],
                "reward": round(judged["undiscounted_return"]["mean"], 2),
                "cost": round(judged["costs"]["cost"]["mean"], 2),
            }
    return found


if __name__ == "__main__":
    numbers = likeliest(sys.argv[1:])
    (Path(__file__).parent / "traffic-likeliest.json").write_text(json.dumps(numbers, indent=1, sort_keys=True) + "\n")
