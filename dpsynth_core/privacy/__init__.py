"""The trusted base: everything whose correctness a guarantee rests on. ``docs/trusted-base.md`` walks through it."""
