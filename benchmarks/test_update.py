"""One whole update of Point-Circle at the paper's scale against one gradient of its reward surrogate, and its parts."""

import jax

from benchmarks import _timing, parts

LIMIT = 15.0
"""An update may take so many times as long as one gradient of the surrogate over the same batch."""
FLOOR = 1.5
"""That gradient in turn may take so many times as long as one pass forward and one backward of the network alone."""
REFERENCE, BARE, WHOLE = "gradient of the reward surrogate", "network forward and backward", "whole update"


def test_update_of_point_circle(seconds: float) -> None:
    """The target: rollout, gradients, conjugate gradient, critics, audit and metrics in 15 gradients or less."""
    update = parts.update_of("point-circle")
    due = update._replace(state=update.state._replace(iteration=update.state.iteration * 0))
    reference, arguments = parts.reference_gradient(update)
    with jax.default_matmul_precision("highest"):
        race = _timing.race(
            _timing.compiled(REFERENCE, reference, *arguments),
            *(
                _timing.compiled(name, function, *given)
                for name, (function, given) in {
                    BARE: parts.bare_passes(update),
                    WHOLE: parts.whole(update),
                    "the same with H's spectrum (every tenth)": parts.whole(due),
                    **parts.parts(update),
                }.items()
            ),
            seconds=seconds,
            min_rounds=10,
        )
    steps = update.batch.mask.size
    _timing.print_table(
        f"One update of Point-Circle with PCPO-KL, {steps} steps ({race.rounds} rounds)",
        _timing.ROW,
        [race.row(name, REFERENCE) for name in race.contenders],
    )
    floor, ratio = race.ratio(REFERENCE, BARE).median, race.ratio(WHOLE, REFERENCE).median
    assert floor <= FLOOR, f"the reference gradient takes {floor:.2f} times a bare pass; it should take {FLOOR} or less"
    assert ratio <= LIMIT, f"an update takes {ratio:.1f} gradients of the reward surrogate; the target is {LIMIT:g}"


if __name__ == "__main__":
    _timing.run_directly("A whole update against one gradient.", test_update_of_point_circle)
