"""How near releases come to their originals, beside other methods: ``python -m benchmarks.utility``."""
