"""From trajectories to one update: rollouts, advantages, policies, critics, surrogates, the pure learner."""
