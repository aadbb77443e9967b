"""Linear and logistic regression on mixed columns, ordinary and private."""
