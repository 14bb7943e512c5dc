"""Ablations: plans that compare design choices, runs that carry them out, results that say what stays unknown."""
