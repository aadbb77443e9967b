"""Means, variances and ties between columns: what they cost, the posterior they give, and rows drawn from it."""
