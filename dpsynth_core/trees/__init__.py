"""Trees that tell original from synthetic rows: the exact optimum of small ones, and greedy CART as rpart grows it."""
