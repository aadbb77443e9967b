"""How reliable a p-value is: the Mann-Whitney family (ordinary, private, calibrated) and how often each is wrong."""
