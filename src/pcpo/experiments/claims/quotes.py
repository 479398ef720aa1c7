"""The claims in the paper's words, in its order: a short quote, and its place by labels and headings of the source.

In square brackets stands what was left out or added, and how we read words that can be read in several ways.
"""

from typing import NamedTuple


class Place(NamedTuple):
    """A place in the paper and what it claims."""

    where: str
    claims: dict[str, str]
    """Quotes by the short and unchanging names of the claims."""


PLACES = (
    Place(
        "sec:experiments, Overall Performance; fig:performance",
        {
            "improves": "PCPO is able to improve the reward [in all tasks].",
            "fastest": "[PCPO has] the fastest constraint satisfaction in all tasks.",
            "only-one": "PCPO is the only algorithm that learns constraint-satisfying policies across all the tasks.",
            "cpo-violates-more": "CPO has more constraint violation than PCPO.",
            "pdo-conservative": "PDO is too conservative in optimizing the reward.",
            "fpo-effort": "FPO requires a significant effort to select a good value of lambda. [At most 2 of the 6 "
            "that we try keep the limit and earn what PDO does.]",
            "traffic-is-harder": "In Grid and Bottleneck task, there is slightly more constraint violation than [...] "
            "point circle and point gather. [A larger part of PCPO's updates is above the limit than there.]",
            "traffic-why": "This is due to complexity of the policy behavior and non-convexity of the constraint set.",
            "equal-reward-grid": "PCPO still outperforms CPO with 85.15 % [...] less constraint violation in Grid. [A "
            "ratio of 6.73, at equal reward like the others.]",
            "equal-reward-bottleneck": "[...] and 5.42 times less constraint violation in [...] Bottleneck.",
            "few-updates": "[The] projection step in PCPO drives the agent to learn the constraint-satisfying policy "
            "within few policy updates. [10.]",
            "trpo-upper-bound": "[TRPO serves] as an upper bound baseline on the reward performance. [From the text on "
            "the baselines.]",
        },
    ),
    Place(
        "sec:experiments, Overall Performance; fig:performance_for_rewardvsCost",
        {
            "equal-reward-point-circle": "PCPO outperforms CPO significantly with 66 times [...] less constraint "
            "violation under the same reward improvement in point circle.",
            "equal-reward-point-gather": "[...] and 15 times [in] point gather.",
            "cheapest": "PCPO achieves less constraint violation under the same reward improvement compared to the "
            "other algorithms. [Caption.]",
        },
    ),
    Place(
        "sec:experiments, Comparison of PCPO with KL Divergence vs. L2 Norm Projections",
        {
            "l2-safer": "PCPO with L2 norm projection is more constraint-satisfying than PCPO with KL divergence "
            "projection. [Its final cost is lower; added up, it is judged in the appendix.]",
            "l2-fluctuates": "[L2] tends to have reward fluctuation (point circle, ant circle, and ant gather tasks).",
            "kl-steadier": "[...] while with KL divergence projection tends to have more stable reward improvement "
            "(all the tasks).",
            "not-aligned": "The gradient of the constraint is not aligned with the gradient of the reward. This "
            "reduces the reward improvement.",
            "ill-conditioned": "When the Fisher information matrix is ill-conditioned or not well-estimated [...] a "
            "bad constraint update direction may hinder constraint satisfaction.",
            "different-reward": "They converge to policies with different reward.",
            "l2-more-in-ant-circle": "PCPO with L2 norm projection has higher reward than the one with KL divergence "
            "projection around 2250 iterations in ant circle.",
            "l2-less-in-point-gather": "[...] and has less reward in point gather task.",
        },
    ),
    Place(
        "sec:experiments, Discussion of PDO and FPO",
        {
            "pdo-fluctuates": "[PDO's] constraint values fluctuate especially in the point circle task.",
            "pdo-slow": "PDO is not able to adjust the weight lambda quickly enough to meet the constraint threshold.",
            "pdo-rate": "If the learning rate beta is too big, the agent will be too conservative in improving the "
            "reward.",
            "fpo-over-pdo": "[FPO] learns near constraint-satisfying policies with slightly larger reward improvement "
            "compared to PDO. [At most twice the limit.]",
            "no-tuning": "Since PCPO requires no hyperparameter tuning, it has the advantage of robustly learning "
            "constraint-satisfying policies.",
        },
    ),
    Place(
        "abstract; Introduction; Conclusion",
        {
            "comparable": "The algorithm achieves comparable or superior performance to state-of-the-art approaches in "
            "terms of reward improvement and constraint satisfaction in all cases. [Introduction and Conclusion; "
            "neither is worse than CPO's by more than a tenth.]",
            "three-and-a-half": "Averaging more than 3.5 times less constraint violation [...] compared to "
            "state-of-the-art methods. [CPO, as we read it.]",
            "fifteen-percent": "[...] and around 15 % higher reward. [A ratio of 1.15.]",
        },
    ),
    Place(
        "appendix:additionalExperiment, Experiment Results; fig:performance_appendix",
        {
            "cumulative-cpo": "(a) CPO has more cumulative constraint violation than PCPO.",
            "cumulative-l2": "(b) PCPO with L2 norm projection has less cumulative constraint violation than KL "
            "divergence projection except for the point circle and point gather tasks.",
            "not-well-estimated": "This observation suggests that the Fisher information matrix is not well-estimated.",
            "reward-at-equal-violation": "(c) PCPO has more reward improvement compared to CPO under the same number "
            "of cumulative constraint violation in point circle, point gather, ant circle, ant gather, and bottleneck.",
        },
    ),
    Place(
        "appendix, CPO without Line Search; fig:performance_compareToLineSearch",
        {
            "search-spread": "CPO without line search tends to [...] have large reward variance especially in the "
            "point circle task.",
            "search-stabilizes": "Line search helps to stabilize the training. [Caption; the reward fluctuates less.]",
            "search-faster": "[...] and learn constraint-satisfying policies slightly faster.",
            "search-smaller": "[Line search] usually take[s] smaller steps.",
            "search-insignificant": "We conjecture that if using smaller delta, the effect of line search is not "
            "significant. [At 1e-4 the reward differs by less than a tenth.]",
        },
    ),
    Place(
        "appendix, The Tasks with Harder Constraints; fig:performance_threholds",
        {
            "harder-better": "Even with more difficult constraint, PCPO still has more reward improvement and "
            "constraint satisfaction than CPO.",
            "harder-recovery": "CPO needs more feasible recovery steps to satisfy the constraint. [Than without them.]",
            "harder-only-kl": "PCPO with KL divergence projection is the only one that can satisfy the constraint with "
            "the highest reward. [Caption.]",
            "harder-l2-spread": "PCPO with L2 norm projection has high constraint variance in point circle task. [More "
            "than KL.]",
            "harder-l2-optimum": "PCPO with L2 norm projection converges to a bad local optimum in terms of reward in "
            "point gather task.",
        },
    ),
    Place(
        "appendix, Smaller Batch Samples; fig:performance_smallerBatchSample",
        {
            "small-fluctuates": "Smaller training samples affects the performance of the algorithm, creating more "
            "reward and cost fluctuation.",
            "small-better": "Even with smaller training samples, PCPO still has more reward improvement and constraint "
            "satisfaction than CPO.",
            "small-quick": "PCPO still satisfies the constraints quickly even when the constraint set is not "
            "well-estimated. [Caption; sooner than CPO.]",
        },
    ),
    Place(
        "appendix:AnalysisoftheFisherInformationMatrix; fig:performance_Additiona_Analysis_for_Grid_Task",
        {
            "cg-reward": "In the Grid task [...] PCPO with KL divergence projection does worse in reward than TRPO.",
            "cg-constraint": "TRPO actually outperforms PCPO with KL divergence projection in terms of constraint.",
            "cg-condition": "The Fisher information matrix is ill-conditioned. [A condition number above 1000.]",
            "cg-cause": "Hence the inaccurate approximation of H^-1 a cause[s] PCPO with KL divergence projection [to] "
            "have more constraint violation than TRPO.",
            "cg-error": "The one with larger number of iteration has less error [of the constraint's direction].",
            "cg-satisfaction": "[...] and more constraint satisfaction.",
        },
    ),
    Place(
        "appendix:section_optimizationPath; fig:OptPath",
        {
            "path-infinity": "An optimal solution to this constrained optimization problem is infinity.",
            "path-different-points": "A stationary point of PCPO with KL divergence projection is different from the "
            "one of PCPO with L2 norm projection.",
            "path-kl-points": "PCPO with KL divergence projection has stationary points with g in -a in the boundary.",
            "path-three-points": "The update direction is zero for PCPO with KL divergence projection at [0.75, "
            "-1.75], [0.25, -1.25] and [-0.25, -0.75].",
            "path-no-l2-points": "PCPO with L2 norm projection does not have stationary points in the boundary.",
            "path-kl": "Starting at [0.5, -2.0], PCPO with KL divergence projection converges to a local optimum.",
            "path-l2": "[...] whereas L2 norm projection converges to infinity.",
            "path-different-solutions": "Both projections converge to different solutions. [Caption; infinity counts "
            "as one.]",
            "path-same-point": "If the gradient is zero in the constraint set or in its boundary, both may converge to "
            "the same stationary point.",
        },
    ),
)
"""Every claim about experiments."""
