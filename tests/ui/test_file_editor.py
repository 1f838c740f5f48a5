"""File editor: tree, saving, reverting, history and conflicts."""

from __future__ import annotations

import re

from playwright.sync_api import expect
from tests.ui.browser import NARROW, wait_for_response
from tests.ui.conftest import ApiSetup, OpenPage
from tests.ui.file_editor import (
    editor,
    open_file,
    read_stored,
    replace_text,
    save_file,
    tree_item,
    type_text,
)

SOUL = "# Soul\n\n{{AGENT_NAME}} is calm.\n\n- one\n- two\n- three\n"
HOSTILE = "<img src=x onerror=alert(1)>\u202egnp.md"


def test_an_inherited_file_is_overridden_for_one_agent_and_reverted(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    template = api_setup.create_template(SOUL_md=SOUL)
    ada, sibling = api_setup.create_agent("Ada", template), api_setup.create_agent("Bob", template)
    user = signed_in_page()
    page = open_file(user, ada)
    expect(page.get_by_text("No file selected")).to_be_visible()
    legend = page.get_by_role("list", name="Legend")
    for word in ("Update available", "Override", "From template", "From defaults"):
        expect(legend.get_by_text(word)).to_be_visible()
    expect(tree_item(page, "IDENTITY.md")).to_have_accessible_name("IDENTITY.md, From defaults")
    tree_item(page, "SOUL.md, From template").click()
    expect(page).to_have_url(re.compile(r"\?file=SOUL\.md"))
    preview = page.get_by_role("region", name="Preview")
    expect(preview.get_by_text("Ada is calm.")).to_be_visible()
    expect(page.locator(".cm-placeholder-token", has_text="{{AGENT_NAME}}")).to_be_visible()
    expect(page.get_by_role("button", name="Save", exact=True)).to_be_disabled()

    replace_text(page, "# Soul\n\n{{AGENT_NAME}} is **fierce**.\n")
    expect(preview.get_by_text("Ada is fierce.")).to_be_visible()
    assert read_stored(api_setup, ada, "SOUL.md") == SOUL
    page.get_by_label("Reason (optional)").fill("she dialog for it, ünïcode")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("applies to this agent only")).to_be_visible()
    dialog.get_by_label(re.compile("ask again for this agent")).check()
    with wait_for_response(page, "PUT", "/files/"):
        dialog.get_by_role("button", name="Override and save").click()
    expect(tree_item(page, "SOUL.md")).to_have_accessible_name("SOUL.md, Override")
    expect(page.get_by_text("Saved", exact=True)).to_be_visible()
    assert "fierce" in read_stored(api_setup, ada, "SOUL.md")
    assert read_stored(api_setup, sibling, "SOUL.md") == SOUL

    page.get_by_role("button", name="Revert", exact=True).click()
    with wait_for_response(page, "DELETE", "/files/"):
        page.get_by_role("dialog").get_by_role("button", name="Revert").click()
    expect(tree_item(page, "SOUL.md")).to_have_accessible_name("SOUL.md, From template")
    expect(editor(page)).to_contain_text("is calm.")
    assert read_stored(api_setup, ada, "SOUL.md") == SOUL

    editor(page).click()
    page.keyboard.press("ControlOrMeta+End")
    type_text(page, "- four\n")
    save_file(page)
    expect(tree_item(page, "SOUL.md")).to_have_accessible_name("SOUL.md, Override")
    assert read_stored(api_setup, ada, "SOUL.md") == SOUL + "- four\n"
    user.check_accessibility()


def test_concurrent_edits_are_merged_and_conflicts_are_resolved(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    agent = api_setup.create_agent("Ada", api_setup.create_template(SOUL_md=SOUL))
    api_setup.put_file(f"/v1/agents/{agent['id']}", "SOUL.md", SOUL)
    api_setup.put_file(f"/v1/agents/{agent['id']}", "plan.md", SOUL)
    second_token = api_setup.create_token(api_setup.create_person("Grace Second", "admin"))
    first, second = signed_in_page(), signed_in_page(second_token)
    first.expected_statuses = second.expected_statuses = {409}
    mine, theirs = open_file(first, agent, "plan.md"), open_file(second, agent, "plan.md")
    replace_text(mine, SOUL.replace("- one", "- one, said the first"))
    replace_text(theirs, SOUL.replace("- three", "- three, said the second"))
    save_file(theirs)

    notice = mine.get_by_text("Changed by Grace Second while you were editing.")
    expect(notice).to_be_visible()
    expect(editor(mine)).to_contain_text("said the first")
    mine.keyboard.press("ControlOrMeta+s")
    dialog = mine.get_by_role("dialog", name="Merge plan.md")
    expect(dialog.get_by_text("Grace Second saved version 2")).to_be_visible()
    expect(dialog.get_by_text("Both changes were merged")).to_be_visible()
    first.check_accessibility()
    with wait_for_response(mine, "PUT", "/files/"):
        dialog.get_by_role("button", name="Save merge").click()
    expect(dialog).to_be_hidden()
    both = SOUL.replace("- one", "- one, said the first").replace(
        "- three", "- three, said the second"
    )
    assert read_stored(api_setup, agent, "plan.md") == both
    expect(editor(theirs)).to_contain_text("said the first")

    replace_text(mine, both.replace("is calm", "is quick"))
    replace_text(theirs, both.replace("is calm", "is slow"))
    save_file(mine)
    theirs.get_by_role("button", name="Compare").click()
    dialog = theirs.get_by_role("dialog", name="Merge plan.md")
    hunk = dialog.get_by_role("group", name="Conflict 1")
    for text in ("is calm.", "is slow.", "is quick."):
        expect(hunk.get_by_text(text)).to_be_visible()
    expect(dialog.get_by_role("button", name="Save merge")).to_be_disabled()
    hunk.get_by_label("Both (mine first)").check()
    hunk.get_by_label("Edit", exact=True).check()
    hunk.get_by_label("Edit conflict 1").fill("{{AGENT_NAME}} is slow, then quick.")
    dialog.get_by_role("button", name="Edit result").click()
    expect(editor(theirs)).to_contain_text("slow, then quick")
    expect(dialog).to_be_hidden()
    save_file(theirs)
    assert read_stored(api_setup, agent, "plan.md") == both.replace(
        "is calm", "is slow, then quick"
    )


def test_pinned_files_need_confirmation_and_managed_files_are_read_only(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    template = api_setup.create_template(GUARDRAILS_md="# Rules\n\n- Never.\n")
    agent = api_setup.create_agent("Ada", template)
    api_setup.put_file(
        f"/v1/templates/{template['id']}", "GUARDRAILS.md", "# Rules\n\n- Never ever.\n"
    )
    user = signed_in_page()
    page = open_file(user, agent, "GUARDRAILS.md")
    name = "GUARDRAILS.md, Update available, pinned"
    expect(tree_item(page, "GUARDRAILS.md")).to_have_accessible_name(name)
    page.get_by_role("button", name="Review", exact=True).click()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    replace_text(page, "# Rules\n\n- Mostly.\n")
    page.keyboard.press("ControlOrMeta+s")
    dialog = page.get_by_role("dialog", name="Override pinned GUARDRAILS.md?")
    expect(dialog.get_by_text("Reverting restores the pinned version.")).to_be_visible()
    with wait_for_response(page, "PUT", "/files/"):
        dialog.get_by_role("button", name="Override and save").click()
    name = "GUARDRAILS.md, Update available, override, pinned"
    expect(tree_item(page, "GUARDRAILS.md")).to_have_accessible_name(name)
    assert read_stored(api_setup, agent, "GUARDRAILS.md") == "# Rules\n\n- Mostly.\n"
    page.get_by_role("button", name="Revert to pinned version").click()
    with wait_for_response(page, "DELETE", "/files/"):
        page.get_by_role("dialog").get_by_role("button", name="Revert to pinned version").click()
    expect(editor(page)).to_contain_text("- Never.")
    assert read_stored(api_setup, agent, "GUARDRAILS.md") == "# Rules\n\n- Never.\n"

    tree_item(page, "USER.md").click()
    expect(page.get_by_text("Generated from the profile")).to_be_visible()
    expect(page.get_by_role("link", name="the pairing")).to_have_attribute(
        "href", f"/agents/{agent['id']}/settings"
    )
    expect(page.get_by_role("form", name="Save")).to_be_hidden()
    editor(page).click()
    page.keyboard.insert_text("not here")
    expect(editor(page)).not_to_contain_text("not here")


def test_history_shows_authors_reasons_and_diffs_and_restores_versions(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    agent = api_setup.create_agent("Ada", api_setup.create_template(SOUL_md=SOUL))
    for text, reason in (
        ("one\n", "the first"),
        ("two\n", "a better one"),
        ("three\n", "the third"),
    ):
        api_setup.put_file(f"/v1/agents/{agent['id']}", "notes/a b.md", text, reason)
    user = signed_in_page()
    page = open_file(user, agent, "notes%2Fa%20b.md", "history")
    panel = page.get_by_role("complementary", name="History")
    versions = panel.get_by_role("listitem")
    expect(versions).to_have_count(3)
    expect(versions.first).to_contain_text("the third")
    expect(versions.first).to_contain_text("Owner")
    versions.first.get_by_role("button", name="Diff").click()
    expect(versions.first.get_by_role("region", name="Diff")).to_contain_text("+three")
    panel.get_by_label("Compare version 3").check()
    panel.get_by_label("Compare version 1").check()
    compared = panel.get_by_role("region", name="Comparison")
    expect(compared.get_by_text("Version 1 to 3")).to_be_visible()
    expect(compared).to_contain_text("-one")
    versions.last.get_by_role("button", name="Restore this version").click()
    page.get_by_role("dialog").get_by_role("button", name="Restore").click()
    expect(versions).to_have_count(4)
    expect(editor(page)).to_have_text("one")

    page = open_file(user, agent, "SOUL.md", "history")
    expect(page.get_by_text("Showing the history of the template.")).to_be_visible()
    page.get_by_role("button", name="Layers").click()
    expect(page).to_have_url(re.compile("panel=explain"))
    panel = page.get_by_role("complementary", name="Layers")
    expect(panel.get_by_text("Template wins, since agent has no such file.")).to_be_visible()
    winner = panel.get_by_role("listitem").filter(has_text="served")
    expect(winner).to_contain_text("Template")
    user.check_accessibility()


def test_tree_editor_and_dialogs_work_with_the_keyboard(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    agent = api_setup.create_agent("Ada")
    api_setup.put_file(f"/v1/agents/{agent['id']}", "notes/deep/x.md", "x\n")
    user = signed_in_page()
    page = open_file(user, agent)
    tree_item(page, "memory").focus()
    page.keyboard.press("ArrowLeft")
    expect(tree_item(page, "contacts.md")).to_be_hidden()
    page.keyboard.press("ArrowRight")
    expect(tree_item(page, "contacts.md")).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(tree_item(page, "contacts.md")).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(tree_item(page, "memory")).to_be_focused()
    page.keyboard.press("End")
    expect(tree_item(page, "USER.md")).to_be_focused()
    page.keyboard.press("Home")
    expect(tree_item(page, "memory")).to_be_focused()
    page.keyboard.press("s")
    expect(tree_item(page, "SOUL.md")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="SOUL.md")).to_be_visible()
    expect(editor(page)).to_be_visible()
    expect(tree_item(page, "SOUL.md")).to_be_focused()
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.classList.contains('cm-content')"):
            break
    expect(editor(page)).to_be_focused()
    type_text(page, "typed by keys alone ")
    page.keyboard.press("ControlOrMeta+s")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(editor(page)).to_be_focused()
    page.keyboard.press("ControlOrMeta+s")
    dialog.get_by_role("button", name="Override and save").focus()
    with wait_for_response(page, "PUT", "/files/"):
        page.keyboard.press("Enter")
    expect(page.get_by_text("Saved", exact=True)).to_be_visible()
    assert "typed by keys alone" in read_stored(api_setup, agent, "SOUL.md")


def test_leaving_an_unsaved_draft_needs_confirmation(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    agent = api_setup.create_agent("Ada")
    api_setup.put_file(f"/v1/agents/{agent['id']}", "a.md", "a\r\nb\r\n")
    user = signed_in_page()
    page = open_file(user, agent, "a.md")
    editor(page).click()
    page.keyboard.press("ControlOrMeta+Home")
    type_text(page, "half a thought ")
    tree_item(page, "SOUL.md").click()
    leaving = page.get_by_role("dialog", name="Discard unsaved changes?")
    leaving.get_by_role("button", name="Cancel").click()
    expect(editor(page)).to_contain_text("half a thought")
    page.get_by_role("link", name="Templates").click()
    expect(leaving).to_be_visible()
    page.keyboard.press("Escape")
    expect(leaving).to_be_hidden()
    save_file(page)
    assert read_stored(api_setup, agent, "a.md") == "half a thought a\r\nb\r\n"
    replace_text(page, "thrown away")
    page.get_by_role("button", name="Discard").click()
    expect(editor(page)).to_contain_text("half a thought")
    replace_text(page, "left behind")
    page.get_by_role("link", name="Templates").click()
    leaving.get_by_role("button", name="Discard").click()
    expect(page.get_by_role("heading", name="Templates", exact=True)).to_be_visible()


def test_files_are_created_and_deleted_and_secrets_are_redacted(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    agent = api_setup.create_agent("Ada")
    value = f"hunter2-{api_setup.suffix}-{api_setup.suffix}"
    api_setup.request("PUT", f"/v1/secrets/mail-{api_setup.suffix}", {"value": value})
    user = signed_in_page()
    user.expected_statuses = {404}
    page = open_file(user, agent)
    page.get_by_role("button", name="New file").click()
    dialog = page.get_by_role("dialog", name="New file")
    path = dialog.get_by_label("Path")
    for invalid, reason in (
        ("../up.md", "“..”"),
        ("/etc/passwd", "relative"),
        ("a\\b", "backslash"),
        ("SOUL.md", "already"),
        ("guardrails.md", "letter case"),
    ):
        path.fill(invalid)
        expect(dialog.get_by_role("alert")).to_contain_text(reason)
    path.fill("letters/2026/ink.md")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("letters%2F2026%2Fink.md"))
    expect(tree_item(page, "ink.md")).to_have_attribute("aria-selected", "true")
    expect(tree_item(page, "2026")).to_have_attribute("aria-expanded", "true")
    replace_text(page, f"the word is {value}.")
    page.keyboard.press("ControlOrMeta+s")
    expect(page.get_by_text("Secret redacted.")).to_be_visible()
    expect(editor(page)).to_contain_text(f"[REDACTED:mail-{api_setup.suffix}]")
    expect(editor(page)).not_to_contain_text(value)
    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_role("dialog").get_by_label("Reason (optional)").fill("not needed")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(tree_item(page, "ink.md")).to_be_hidden()
    expect(page.get_by_text("This file was deleted")).to_be_visible()


def test_hostile_paths_and_contents_stay_text(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    agent = api_setup.create_agent("Ada")
    agent_url = f"/v1/agents/{agent['id']}"
    text = "<script>alert(1)</script>\n\n[x](javascript:alert(1)) ![p](http://evil.example/p.png)\n"
    api_setup.request("PUT", f"{agent_url}/files/{HOSTILE.replace(' ', '%20')}", {"content": text})
    api_setup.put_file(agent_url, f"{'w' * 250}.md", "wide")
    api_setup.put_file(agent_url, "__proto__/constructor", "x")
    user = signed_in_page(size=NARROW)
    page = open_file(user, agent)
    trap = page.get_by_role("treeitem", name=re.compile("onerror"))
    expect(trap).to_contain_text("<img src=x onerror=alert(1)>␣gnp.md")
    trap.click()
    preview = page.get_by_role("region", name="Preview")
    expect(preview).to_contain_text("<script>alert(1)</script>")
    expect(preview.get_by_role("link", name="x")).to_be_hidden()
    expect(preview.locator("img, script")).to_have_count(0)
    page.get_by_role("button", name="All files").click()
    expect(tree_item(page, "constructor")).to_be_visible()
    page.get_by_role("treeitem", name=re.compile("^www")).click()
    expect(editor(page)).to_have_text("wide")
    wide = "document.querySelector('main').scrollWidth - document.querySelector('main').clientWidth"
    assert page.evaluate(wide) == 0
    user.check_accessibility()


def test_files_are_read_only_for_members(signed_in_page: OpenPage, api_setup: ApiSetup) -> None:
    agent = api_setup.create_agent("Ada", isShared=True)
    user = signed_in_page(api_setup.create_token(api_setup.create_person("Max Member")))
    page = open_file(user, agent, "SOUL.md")
    expect(page.get_by_text("only owners and admins can change this file")).to_be_visible()
    expect(page.get_by_role("form", name="Save")).to_be_hidden()
    expect(page.get_by_role("button", name="New file")).to_be_hidden()


def test_saving_recreates_a_file_that_was_deleted_elsewhere(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    agent = api_setup.create_agent("Ada")
    api_setup.put_file(f"/v1/agents/{agent['id']}", "plan.md", "one\n")
    user = signed_in_page()
    user.expected_statuses = {404}
    page = open_file(user, agent, "plan.md")
    expect(editor(page)).to_contain_text("one")
    api_setup.request("DELETE", f"/v1/agents/{agent['id']}/files/plan.md")
    expect(page.get_by_text("Saving creates it again")).to_be_visible()
    with wait_for_response(page, "PUT", "/files/"):
        page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Saving creates it again")).to_be_hidden()
    assert read_stored(api_setup, agent, "plan.md") == "one\n"


def test_the_save_shortcut_works_outside_the_editor(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    agent = api_setup.create_agent("Ada")
    api_setup.put_file(f"/v1/agents/{agent['id']}", "plan.md", "one\n")
    page = open_file(signed_in_page(), agent, "plan.md")
    replace_text(page, "two\n")
    page.get_by_label("Filter files").click()
    save_file(page)
    assert read_stored(api_setup, agent, "plan.md") == "two\n"


def test_the_cursor_keeps_its_position_when_lines_above_change(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    agent = api_setup.create_agent("Ada")
    agent_url = f"/v1/agents/{agent['id']}"
    api_setup.put_file(agent_url, "plan.md", "one\ntwo\nthree\n")
    page = open_file(signed_in_page(), agent, "plan.md")
    editor(page).get_by_text("two").click()
    page.keyboard.press("End")
    api_setup.put_file(agent_url, "plan.md", "one, and more\ntwo\nthree\n")
    expect(editor(page)).to_contain_text("and more")
    type_text(page, " here")
    save_file(page)
    assert read_stored(api_setup, agent, "plan.md") == "one, and more\ntwo here\nthree\n"
