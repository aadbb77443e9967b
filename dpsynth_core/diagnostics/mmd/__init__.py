"""Maximum mean discrepancy: how far apart two sets of points are through a kernel."""
