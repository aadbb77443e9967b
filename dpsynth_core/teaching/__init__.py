"""What epsilon costs and buys, for teaching: public or simulated tables only."""
