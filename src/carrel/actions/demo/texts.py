"""The words of the demo: a small company that answers, looks things up and tells what is new."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from carrel.core.access import Role

TENANT: Final = "Meridian Support"


class DemoPerson(NamedTuple):
    name: str
    email: str
    role: Role
    title: str
    timezone: str
    pronouns: str


OWNER: Final = ("Mara Lindqvist", "Head of operations", "Europe/Stockholm", "she/her")
PEOPLE: Final[Mapping[str, DemoPerson]] = {
    "tomas": DemoPerson(
        *("Tomas Vega", "tomas@meridian.example", Role.ADMIN),
        *("Support lead", "Europe/Madrid", "he/him"),
    ),
    "lena": DemoPerson(
        *("Lena Okafor", "lena@meridian.example", Role.MEMBER),
        *("Onboarding specialist", "Africa/Lagos", "she/her"),
    ),
    "jonas": DemoPerson(
        *("Jonas Brandt", "jonas@meridian.example", Role.MEMBER),
        *("Product researcher", "Europe/Berlin", "he/him"),
    ),
    "amara": DemoPerson(
        *("Amara Chen", "amara@meridian.example", Role.ADMIN),
        *("Release manager", "America/Vancouver", "they/them"),
    ),
}


class DemoAgent(NamedTuple):
    slug: str
    name: str
    template: str | None
    human: str | None = None
    owner: str | None = None
    shared: bool = False


WORKERS: Final = (
    DemoAgent("iris", "Iris", "support", shared=True),
    DemoAgent("otto", "Otto", "support", human="tomas"),
    DemoAgent("wren", "Wren", "support", human="lena"),
    DemoAgent("pixel", "Pixel", "support", shared=True),
    DemoAgent("cleo", "Cleo", "support", owner="lena"),
    DemoAgent("sage", "Sage", "research", human="jonas"),
    DemoAgent("quill", "Quill", "research", owner="jonas"),
    DemoAgent("atlas", "Atlas", "research", shared=True),
    DemoAgent("fern", "Fern", "research", human="amara"),
    DemoAgent("ember", "Ember", "releases", human="mara", owner="mara"),
    DemoAgent("page", "Page", "releases", shared=True),
    DemoAgent("tally", "Tally", "releases", owner="tomas"),
    DemoAgent("scout", "Scout", None, owner="mara"),
)

TEMPLATES: Final = {"support": "Support desk", "research": "Research", "releases": "Release notes"}

_SUPPORT_RULES: Final = """# Guardrails

- Never ask a customer for a password or a full card number.
- Refunds of up to 50 are yours to give. Anything above goes to a person first.
- Do not promise a date that engineering has not confirmed.
- Say that you are an agent of {{TENANT_NAME}} when somebody asks.
"""

STRICTER: Final = (
    _SUPPORT_RULES
    + """- Never read an address back to a caller: let them say it, and compare.
- If somebody mentions a lawyer or a regulator, stop and hand over to the support lead.
"""
)
STRICTER_WHY: Final = "Two calls last week gave away an address; agreed in Monday's review"

FILES: Final[Mapping[str, Mapping[str, str]]] = {
    "support": {
        "GUARDRAILS.md": _SUPPORT_RULES,
        "SOUL.md": """# Soul

{{AGENT_NAME}} is calm and exact. It answers the question that was asked, then says what happens
next and when. It would rather say "I do not know yet" than guess, and it never sounds like a form.
""",
        "docs/refunds.md": """# Refunds

1. Find the order by its number, never by a name alone.
2. Up to 50: give it, and note why in the ticket.
3. Above: write down the case in three lines and ask the support lead.
4. A second refund for the same customer within a month is always a case for a person.
""",
        "docs/tone.md": """# How we write

- Short sentences, plain words. No exclamation marks.
- Begin with the answer. Explanations come after it.
- Sign with your own name, {{AGENT_NAME}}, and nothing else.
""",
    },
    "research": {
        "SOUL.md": """# Soul

{{AGENT_NAME}} reads before it writes. Every claim has a source, and a claim without one is called
a guess. Findings that contradict what {{HUMAN_NAME}} hoped for come first, not last.
""",
        "docs/sources.md": """# Which sources count

- Interviews and logs of our own, with their date.
- Changelogs and documentation of other vendors, as they stand today.
- Forum posts only as a hint where to look, never as evidence.
""",
    },
    "releases": {
        "SOUL.md": """# Soul

{{AGENT_NAME}} tells customers what changed for them, in the order in which they will notice it.
It leaves out what only engineers see, and it names every breaking change in the first paragraph.
""",
        "docs/checklist.md": """# Before notes go out

- [ ] Every entry names who notices it.
- [ ] Breaking changes come first, each with what to do.
- [ ] The support desk has read it a day before.
""",
    },
}

OWN: Final[Mapping[str, Mapping[str, str]]] = {
    "otto": {
        "docs/refunds.md": """# Refunds, for billing

1. Check the invoice before the order: half of all cases are a second seat.
2. Up to 50: give it. Yearly plans are refunded by the day.
3. Above: send the case to Tomas with the invoice attached.
""",
        "notes/handover.md": "# Handover\n\n- Invoices go out on the 3rd: expect questions.\n",
    },
    "pixel": {
        "SOUL.md": """# Soul

{{AGENT_NAME}} keeps the night queue. It is brief, because people write at night from a phone, and
it tells them honestly when somebody will be awake to help.
""",
    },
    "sage": {
        "notes/interviews.md": """# Interviews so far

- Six of nine found the export by accident.
- Nobody used the word "workspace" on their own; they say "folder".
""",
    },
    "ember": {
        "AGENTS.md": "# Peers\n\n- `page` publishes.\n- `sage` knows what people complain of.\n",
    },
}
PINNED_OVERRIDE: Final = (
    "otto",
    _SUPPORT_RULES + "- Never change a tax number, whoever asks: that is for the accountants.\n",
)

SHARED_FILES: Final[Mapping[str, Mapping[str, str]]] = {
    "Knowledge base": {
        "MEMORY.md": "Articles are in `articles/`. Keep each to one question.\n",
        "articles/export.md": "# How do I export my data?\n\nSettings, then Data, then Export.\n",
        "articles/seats.md": "# Why was I billed for two seats?\n\nAn invitation counts at once.\n",
    },
    "Release drafts": {
        "2.14/notes.md": "# 2.14\n\n- Exports keep their column order.\n- Faster sign-in.\n",
        "2.14/questions.md": "# Open\n\n- Is the old export still there for a month?\n",
    },
}
