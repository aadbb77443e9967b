"""Mistakes made in the source itself: planted by hand or generated, one at a time, and whether the audit notices.

General mutation testers (mutmut, cosmic-ray) turn every operator and constant of a file into another one and run the
tests on it. Most of what they would make of this package is about usefulness and not about privacy, and each of their
mutants would cost a fresh process and a whole audit. So the generator is made for the audit: its edits are those that
break guarantees (a sensitivity, a charge, noise, a raw value, a depth, a clip, a fact read from the rows), a child is
forked from a process with all libraries loaded, and only what concerns the edited file is asked, cheapest first.
"""
