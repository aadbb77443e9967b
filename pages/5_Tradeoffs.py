"""See what epsilon costs and what it buys."""

from __future__ import annotations

from pages.shared.heading import heading

heading("Trade-offs")

from pages.shared.layout import lay_out, next_step
from pages.shared.tradeoffs.groups_view import show_groups
from pages.shared.tradeoffs.lessons_view import show_lessons
from pages.shared.tradeoffs.needs_view import show_needs
from pages.shared.tradeoffs.noise_view import show_noise
from pages.shared.tradeoffs.person_view import show_neighbours
from pages.shared.tradeoffs.sweep_view import show_sweep
from pages.shared.tradeoffs.view import ask_section, follow_link, show_section

SHOWN = {
    "lessons": show_lessons,
    "sweep": show_sweep,
    "needs": show_needs,
    "person": show_neighbours,
    "noise": show_noise,
    "groups": show_groups,
}

session = lay_out("pages/5_Tradeoffs.py")
follow_link(session)
show_section(session, SHOWN[ask_section(session)])

next_step("pages/6_Release.py", "Next: review and decide", [])
