"""An agent's workspace: the tree, the editor, saving, reverting, history, and two at once."""

from __future__ import annotations

import re

from playwright.sync_api import expect
from tests.desk.browsing import NARROW, answered
from tests.desk.conftest import Office, Seating
from tests.desk.files import editor, line, opened, save, stored, type_in, write_over

SOUL = "# Soul\n\n{{AGENT_NAME}} is calm.\n\n- one\n- two\n- three\n"
HOSTILE = "<img src=x onerror=alert(1)>\u202egnp.md"


def test_soul_is_customised_for_one_agent_and_reverted(seat: Seating, office: Office) -> None:
    template = office.template(SOUL_md=SOUL)
    ada, sibling = office.agent("Ada", template), office.agent("Bob", template)
    someone = seat()
    page = opened(someone, ada)
    expect(page.get_by_text("No file is open")).to_be_visible()
    legend = page.get_by_role("list", name="What the signs mean")
    for word in ("Update available", "Overridden", "From the template", "From the defaults"):
        expect(legend.get_by_text(word)).to_be_visible()
    expect(line(page, "IDENTITY.md")).to_have_accessible_name("IDENTITY.md, From the defaults")
    line(page, "SOUL.md, From the template").click()
    expect(page).to_have_url(re.compile(r"\?file=SOUL\.md"))
    preview = page.get_by_role("region", name="Preview")
    expect(preview.get_by_text("Ada is calm.")).to_be_visible()
    expect(page.locator(".cm-placeholder-token", has_text="{{AGENT_NAME}}")).to_be_visible()
    expect(page.get_by_role("button", name="Save", exact=True)).to_be_disabled()

    write_over(page, "# Soul\n\n{{AGENT_NAME}} is **fierce**.\n")
    expect(preview.get_by_text("Ada is fierce.")).to_be_visible()
    assert stored(office, ada, "SOUL.md") == SOUL
    page.get_by_label("Reason (optional)").fill("she asked for it, ünïcode")
    page.keyboard.press("Enter")
    asked = page.get_by_role("dialog")
    expect(asked.get_by_text("siblings keep inheriting")).to_be_visible()
    asked.get_by_label(re.compile("ask again for this agent")).check()
    with answered(page, "PUT", "/files/"):
        asked.get_by_role("button", name="Override and save").click()
    expect(line(page, "SOUL.md")).to_have_accessible_name("SOUL.md, Overridden")
    expect(page.get_by_text("Saved", exact=True)).to_be_visible()
    assert "fierce" in stored(office, ada, "SOUL.md")
    assert stored(office, sibling, "SOUL.md") == SOUL

    page.get_by_role("button", name="Revert", exact=True).click()
    with answered(page, "DELETE", "/files/"):
        page.get_by_role("dialog").get_by_role("button", name="Revert").click()
    expect(line(page, "SOUL.md")).to_have_accessible_name("SOUL.md, From the template")
    expect(editor(page)).to_contain_text("is calm.")
    assert stored(office, ada, "SOUL.md") == SOUL

    editor(page).click()
    page.keyboard.press("ControlOrMeta+End")
    type_in(page, "- four\n")
    save(page)
    expect(line(page, "SOUL.md")).to_have_accessible_name("SOUL.md, Overridden")
    assert stored(office, ada, "SOUL.md") == SOUL + "- four\n"
    someone.look_for_barriers()


def test_two_who_write_at_once_get_three_ways_and_lose_nothing(
    seat: Seating, office: Office
) -> None:
    agent = office.agent("Ada", office.template(SOUL_md=SOUL))
    office.put(f"/v1/agents/{agent['id']}", "SOUL.md", SOUL)
    office.put(f"/v1/agents/{agent['id']}", "plan.md", SOUL)
    second = office.token_of(office.person("Grace Second", "admin"))
    one, other = seat(), seat(second)
    one.expected = other.expected = {409}
    mine, theirs = opened(one, agent, "plan.md"), opened(other, agent, "plan.md")
    write_over(mine, SOUL.replace("- one", "- one, said the first"))
    write_over(theirs, SOUL.replace("- three", "- three, said the second"))
    save(theirs)

    notice = mine.get_by_text("Changed by Grace Second meanwhile.")
    expect(notice).to_be_visible()
    expect(editor(mine)).to_contain_text("said the first")
    mine.keyboard.press("ControlOrMeta+s")
    dialog = mine.get_by_role("dialog", name="Two texts of plan.md")
    expect(dialog.get_by_text("Grace Second saved version 2")).to_be_visible()
    expect(dialog.get_by_text("both fit together")).to_be_visible()
    one.look_for_barriers()
    with answered(mine, "PUT", "/files/"):
        dialog.get_by_role("button", name="Save both").click()
    expect(dialog).to_be_hidden()
    both = SOUL.replace("- one", "- one, said the first").replace(
        "- three", "- three, said the second"
    )
    assert stored(office, agent, "plan.md") == both
    expect(editor(theirs)).to_contain_text("said the first")

    write_over(mine, both.replace("is calm", "is quick"))
    write_over(theirs, both.replace("is calm", "is slow"))
    save(mine)
    theirs.get_by_role("button", name="Compare").click()
    dialog = theirs.get_by_role("dialog", name="Two texts of plan.md")
    hunk = dialog.get_by_role("group", name="Conflict 1")
    for text in ("is calm.", "is slow.", "is quick."):
        expect(hunk.get_by_text(text)).to_be_visible()
    expect(dialog.get_by_role("button", name="Save both")).to_be_disabled()
    hunk.get_by_label("Both, mine first").check()
    hunk.get_by_label("By hand").check()
    hunk.get_by_label("Conflict 1 by hand").fill("{{AGENT_NAME}} is slow, then quick.")
    dialog.get_by_role("button", name="Go on editing").click()
    expect(editor(theirs)).to_contain_text("slow, then quick")
    expect(dialog).to_be_hidden()
    save(theirs)
    assert stored(office, agent, "plan.md") == both.replace("is calm", "is slow, then quick")


def test_a_pinned_file_and_a_managed_one_have_their_own_rules(
    seat: Seating, office: Office
) -> None:
    template = office.template(GUARDRAILS_md="# Rules\n\n- Never.\n")
    agent = office.agent("Ada", template)
    office.put(f"/v1/templates/{template['id']}", "GUARDRAILS.md", "# Rules\n\n- Never ever.\n")
    someone = seat()
    page = opened(someone, agent, "GUARDRAILS.md")
    name = "GUARDRAILS.md, Update available, pinned"
    expect(line(page, "GUARDRAILS.md")).to_have_accessible_name(name)
    page.get_by_role("button", name="Review", exact=True).click()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    write_over(page, "# Rules\n\n- Mostly.\n")
    page.keyboard.press("ControlOrMeta+s")
    asked = page.get_by_role("dialog", name="Override the pinned GUARDRAILS.md?")
    expect(asked.get_by_text("The pin stays beneath.")).to_be_visible()
    with answered(page, "PUT", "/files/"):
        asked.get_by_role("button", name="Override and save").click()
    name = "GUARDRAILS.md, Update available, overridden, pinned"
    expect(line(page, "GUARDRAILS.md")).to_have_accessible_name(name)
    assert stored(office, agent, "GUARDRAILS.md") == "# Rules\n\n- Mostly.\n"
    page.get_by_role("button", name="Revert to the pin").click()
    with answered(page, "DELETE", "/files/"):
        page.get_by_role("dialog").get_by_role("button", name="Revert to the pin").click()
    expect(editor(page)).to_contain_text("- Never.")
    assert stored(office, agent, "GUARDRAILS.md") == "# Rules\n\n- Never.\n"

    line(page, "USER.md").click()
    expect(page.get_by_text("Carrel writes this file from the profile")).to_be_visible()
    expect(page.get_by_role("link", name="the pairing")).to_have_attribute(
        "href", f"/agents/{agent['id']}/settings"
    )
    expect(page.get_by_role("form", name="Save")).to_be_hidden()
    editor(page).click()
    page.keyboard.insert_text("not here")
    expect(editor(page)).not_to_contain_text("not here")


def test_history_tells_who_why_and_what_and_leads_back(seat: Seating, office: Office) -> None:
    agent = office.agent("Ada", office.template(SOUL_md=SOUL))
    for text, reason in (
        ("one\n", "the first"),
        ("two\n", "a better one"),
        ("three\n", "the third"),
    ):
        office.put(f"/v1/agents/{agent['id']}", "notes/a b.md", text, reason)
    someone = seat()
    page = opened(someone, agent, "notes%2Fa%20b.md", "history")
    panel = page.get_by_role("complementary", name="History")
    versions = panel.get_by_role("listitem")
    expect(versions).to_have_count(3)
    expect(versions.first).to_contain_text("the third")
    expect(versions.first).to_contain_text("Owner")
    versions.first.get_by_role("button", name="What changed").click()
    expect(versions.first.get_by_role("region", name="Difference")).to_contain_text("+three")
    panel.get_by_label("Compare version 3").check()
    panel.get_by_label("Compare version 1").check()
    compared = panel.get_by_role("region", name="Two versions compared")
    expect(compared.get_by_text("Version 1 to 3")).to_be_visible()
    expect(compared).to_contain_text("-one")
    versions.last.get_by_role("button", name="Restore").click()
    page.get_by_role("dialog").get_by_role("button", name="Restore").click()
    expect(versions).to_have_count(4)
    expect(editor(page)).to_have_text("one")

    page = opened(someone, agent, "SOUL.md", "history")
    expect(page.get_by_text("This is the history in the template.")).to_be_visible()
    page.get_by_role("button", name="Explain").click()
    expect(page).to_have_url(re.compile("panel=explain"))
    panel = page.get_by_role("complementary", name="Where it comes from")
    expect(panel.get_by_text("Template decides, since agent says nothing of it.")).to_be_visible()
    winner = panel.get_by_role("listitem").filter(has_text="served")
    expect(winner).to_contain_text("The template")
    someone.look_for_barriers()


def test_the_keyboard_is_enough_for_tree_editor_and_dialogs(seat: Seating, office: Office) -> None:
    agent = office.agent("Ada")
    office.put(f"/v1/agents/{agent['id']}", "notes/deep/x.md", "x\n")
    someone = seat()
    page = opened(someone, agent)
    line(page, "memory").focus()
    page.keyboard.press("ArrowLeft")
    expect(line(page, "contacts.md")).to_be_hidden()
    page.keyboard.press("ArrowRight")
    expect(line(page, "contacts.md")).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(line(page, "contacts.md")).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(line(page, "memory")).to_be_focused()
    page.keyboard.press("End")
    expect(line(page, "USER.md")).to_be_focused()
    page.keyboard.press("Home")
    expect(line(page, "memory")).to_be_focused()
    page.keyboard.press("s")
    expect(line(page, "SOUL.md")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="SOUL.md")).to_be_visible()
    expect(editor(page)).to_be_visible()
    expect(line(page, "SOUL.md")).to_be_focused()
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.classList.contains('cm-content')"):
            break
    expect(editor(page)).to_be_focused()
    type_in(page, "typed by keys alone ")
    page.keyboard.press("ControlOrMeta+s")
    asked = page.get_by_role("dialog")
    expect(asked).to_be_visible()
    page.keyboard.press("Escape")
    expect(asked).to_be_hidden()
    expect(editor(page)).to_be_focused()
    page.keyboard.press("ControlOrMeta+s")
    asked.get_by_role("button", name="Override and save").focus()
    with answered(page, "PUT", "/files/"):
        page.keyboard.press("Enter")
    expect(page.get_by_text("Saved", exact=True)).to_be_visible()
    assert "typed by keys alone" in stored(office, agent, "SOUL.md")


def test_a_draft_is_not_left_behind_unasked(seat: Seating, office: Office) -> None:
    agent = office.agent("Ada")
    office.put(f"/v1/agents/{agent['id']}", "a.md", "a\r\nb\r\n")
    someone = seat()
    page = opened(someone, agent, "a.md")
    editor(page).click()
    page.keyboard.press("ControlOrMeta+Home")
    type_in(page, "half a thought ")
    line(page, "SOUL.md").click()
    leaving = page.get_by_role("dialog", name="Leave without saving?")
    leaving.get_by_role("button", name="Cancel").click()
    expect(editor(page)).to_contain_text("half a thought")
    page.get_by_role("link", name="Templates").click()
    expect(leaving).to_be_visible()
    page.keyboard.press("Escape")
    expect(leaving).to_be_hidden()
    save(page)
    assert stored(office, agent, "a.md") == "half a thought a\r\nb\r\n"
    write_over(page, "thrown away")
    page.get_by_role("button", name="Discard").click()
    expect(editor(page)).to_contain_text("half a thought")
    write_over(page, "left behind")
    page.get_by_role("link", name="Templates").click()
    leaving.get_by_role("button", name="Discard and leave").click()
    expect(page.get_by_role("heading", name="Templates", exact=True)).to_be_visible()


def test_files_are_made_and_taken_away_and_secrets_do_not_stay(
    seat: Seating, office: Office
) -> None:
    agent = office.agent("Ada")
    value = f"hunter2-{office.mark}-{office.mark}"
    office.ask("PUT", f"/v1/secrets/mail-{office.mark}", {"value": value})
    someone = seat()
    someone.expected = {404}
    page = opened(someone, agent)
    page.get_by_role("button", name="New file").click()
    dialog = page.get_by_role("dialog", name="New file")
    path = dialog.get_by_label("Path")
    for wrong, reason in (
        ("../up.md", "“..”"),
        ("/etc/passwd", "relative"),
        ("a\\b", "backslash"),
        ("SOUL.md", "already"),
        ("guardrails.md", "letter case"),
    ):
        path.fill(wrong)
        expect(dialog.get_by_role("alert")).to_contain_text(reason)
    path.fill("letters/2026/ink.md")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("letters%2F2026%2Fink.md"))
    expect(line(page, "ink.md")).to_have_attribute("aria-selected", "true")
    expect(line(page, "2026")).to_have_attribute("aria-expanded", "true")
    write_over(page, f"the word is {value}.")
    page.keyboard.press("ControlOrMeta+s")
    expect(page.get_by_text("A secret was taken out.")).to_be_visible()
    expect(editor(page)).to_contain_text(f"[REDACTED:mail-{office.mark}]")
    expect(editor(page)).not_to_contain_text(value)
    page.get_by_role("button", name="Revert", exact=True).click()
    page.get_by_role("dialog").get_by_label("Reason (optional)").fill("not needed")
    page.get_by_role("dialog").get_by_role("button", name="Revert").click()
    expect(line(page, "ink.md")).to_be_hidden()
    expect(page.get_by_text("This file was deleted")).to_be_visible()


def test_what_is_hostile_is_shown_and_does_nothing(seat: Seating, office: Office) -> None:
    agent = office.agent("Ada")
    room = f"/v1/agents/{agent['id']}"
    text = "<script>alert(1)</script>\n\n[x](javascript:alert(1)) ![p](http://evil.example/p.png)\n"
    office.ask("PUT", f"{room}/files/{HOSTILE.replace(' ', '%20')}", {"content": text})
    office.put(room, f"{'w' * 250}.md", "wide")
    office.put(room, "__proto__/constructor", "x")
    someone = seat(size=NARROW)
    page = opened(someone, agent)
    trap = page.get_by_role("treeitem", name=re.compile("onerror"))
    expect(trap).to_contain_text("<img src=x onerror=alert(1)>␣gnp.md")
    trap.click()
    preview = page.get_by_role("region", name="Preview")
    expect(preview).to_contain_text("<script>alert(1)</script>")
    expect(preview.get_by_role("link", name="x")).to_be_hidden()
    expect(preview.locator("img, script")).to_have_count(0)
    page.get_by_role("button", name="All files").click()
    expect(line(page, "constructor")).to_be_visible()
    page.get_by_role("treeitem", name=re.compile("^www")).click()
    expect(editor(page)).to_have_text("wide")
    wide = "document.querySelector('main').scrollWidth - document.querySelector('main').clientWidth"
    assert page.evaluate(wide) == 0
    someone.look_for_barriers()


def test_a_member_reads_and_is_told_who_writes(seat: Seating, office: Office) -> None:
    agent = office.agent("Ada")
    someone = seat(office.token_of(office.person("Max Member")))
    page = opened(someone, agent, "SOUL.md")
    expect(page.get_by_text("Owners and admins change it.")).to_be_visible()
    expect(page.get_by_role("form", name="Save")).to_be_hidden()
    expect(page.get_by_role("button", name="New file")).to_be_hidden()


def test_a_file_deleted_elsewhere_is_made_anew_from_what_is_shown(
    seat: Seating, office: Office
) -> None:
    agent = office.agent("Ada")
    office.put(f"/v1/agents/{agent['id']}", "plan.md", "one\n")
    someone = seat()
    someone.expected = {404}
    page = opened(someone, agent, "plan.md")
    expect(editor(page)).to_contain_text("one")
    office.ask("DELETE", f"/v1/agents/{agent['id']}/files/plan.md")
    expect(page.get_by_text("saving makes the file anew")).to_be_visible()
    with answered(page, "PUT", "/files/"):
        page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("saving makes the file anew")).to_be_hidden()
    assert stored(office, agent, "plan.md") == "one\n"


def test_the_save_key_saves_from_outside_the_editor_too(seat: Seating, office: Office) -> None:
    agent = office.agent("Ada")
    office.put(f"/v1/agents/{agent['id']}", "plan.md", "one\n")
    page = opened(seat(), agent, "plan.md")
    write_over(page, "two\n")
    page.get_by_label("Filter the files").click()
    save(page)
    assert stored(office, agent, "plan.md") == "two\n"


def test_the_cursor_stays_where_it_is_when_others_write_above_it(
    seat: Seating, office: Office
) -> None:
    agent = office.agent("Ada")
    place = f"/v1/agents/{agent['id']}"
    office.put(place, "plan.md", "one\ntwo\nthree\n")
    page = opened(seat(), agent, "plan.md")
    editor(page).get_by_text("two").click()
    page.keyboard.press("End")
    office.put(place, "plan.md", "one, and more\ntwo\nthree\n")
    expect(editor(page)).to_contain_text("and more")
    type_in(page, " here")
    save(page)
    assert stored(office, agent, "plan.md") == "one, and more\ntwo here\nthree\n"
