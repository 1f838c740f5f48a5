"""A workspace is a real directory between calls: directories, modes and times are kept."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File

import pytest
from tests.support.local_providers import LOCAL
from tests.support.stores import open_ports
from tests.support.tool_fixture import NOTES, ToolTenant, create_tool_tenant

from carrel.actions.sandbox import release, workspaces
from carrel.adapters.sandbox.local import LocalSandbox
from carrel.core.errors import Conflict
from carrel.core.identifiers import Path
from carrel.core.store.record import RecordType
from carrel.ports import Ports

pytestmark = pytest.mark.anyio

MAKEFILE = "prog: main.txt\n\tcp main.txt prog\n\techo built\n"


@pytest.fixture(params=[*LOCAL, "persistent"])
async def tools(request: pytest.FixtureRequest, tmp_path: File) -> AsyncIterator[ToolTenant]:
    """A workspace in each isolation tier, and in a sandbox that outlives a call."""
    is_persistent = request.param == "persistent"
    open_provider = LOCAL["bubblewrap-overlay" if is_persistent else request.param]
    async with open_ports(tmp_path) as ports, open_provider(tmp_path) as provider:
        yield await create_tool_tenant(ports, runner=provider, persistent=is_persistent)


@pytest.fixture
async def stored(anywhere: Ports, tmp_path: File) -> AsyncIterator[ToolTenant]:
    """A workspace on each store."""
    provider = LocalSandbox(tmp_path / "sandboxes")
    yield await create_tool_tenant(anywhere, runner=provider)
    await provider.close()


async def bash(tools: ToolTenant, command: str) -> str:
    return str(await tools.call("bash", command=command))


async def directories(tools: ToolTenant) -> set[str]:
    [tree] = await tools.ports.trees.read([tools.scope()])
    return {path.text for path in tree.directories}


async def test_git_works_across_calls(tools: ToolTenant) -> None:
    identity = "git config user.name ada && git config user.email ada@example.com"
    await bash(tools, f"git init -q -b main && {identity}")
    assert await bash(tools, "git status --porcelain && echo clean") == "clean\n"
    await bash(tools, "mkdir -p src && echo one > src/a && git add -A && git commit -qm first")
    await bash(tools, "echo two >> src/a && git commit -qam second")
    assert await bash(tools, "git log --format=%s && git status --porcelain && git fsck") == (
        "second\nfirst\n"
    )
    assert ".git/refs/tags" in await directories(tools)


async def test_make_builds_what_is_out_of_date_and_nothing_else(tools: ToolTenant) -> None:
    await tools.call("write", file_path="Makefile", content=MAKEFILE)
    await tools.call("write", file_path="main.txt", content="one")
    assert "built" in await bash(tools, "make -s")
    assert await bash(tools, "make -q; echo $?") == "0\n"
    await tools.call("write", file_path="main.txt", content="two")
    assert "built" in await bash(tools, "make -s && cat prog")
    assert (await tools.files())["prog"] == b"two"
    await bash(tools, "touch main.txt")
    assert await bash(tools, "make -q; echo $?") == "1\n", "touched in another call"


async def test_a_virtual_environment_survives(tools: ToolTenant) -> None:
    await bash(tools, "/usr/bin/python3 -m venv --without-pip env && echo 'x = 1' > mod.py")
    await bash(tools, "env/bin/python -c 'import mod'")
    output = await bash(
        tools, "env/bin/python -c 'import sys, mod; print(sys.prefix != sys.base_prefix, mod.x)'"
    )
    assert output == "True 1\n"
    # Bytecode is valid only for the time of its source.
    check = "import mod, os; print(os.stat(mod.__cached__).st_mtime_ns)"
    command = f'env/bin/python -c "{check}"'
    assert await bash(tools, command) == await bash(tools, command)


async def test_packages_of_npm_survive_where_it_is_installed(tools: ToolTenant) -> None:
    package = (
        "mkdir dep; cd dep; npm init -y; echo 'module.exports = 7' > index.js; npm pack; cd .."
    )
    install = f"npm init -y; {package}; npm install --offline ./dep/*.tgz"
    require = "node -p 'require(\"dep\")' && npm ls --parseable | wc -l"
    assert await bash(tools, f"if command -v npm; then ({install}); fi > log 2>&1; echo done") == (
        "done\n"
    )
    command = f"if command -v npm >&-; then {require}; else echo 7; echo 2; fi"
    assert await bash(tools, command) == "7\n2\n", await bash(tools, "cat log")


async def test_trees_of_package_managers_survive(tools: ToolTenant) -> None:
    await bash(
        tools,
        "mkdir -p node_modules/.bin node_modules/p/lib target/debug/incremental src tests;"
        " echo '#!/bin/sh' > node_modules/p/cli; echo 'echo ran' >> node_modules/p/cli;"
        " chmod 755 node_modules/p/cli; ln -s ../p/cli node_modules/.bin/p;"
        " echo k > key; chmod 600 key; mkdir -m 700 private; mkdir -m 500 locked",
    )
    assert await bash(
        tools,
        "node_modules/.bin/p; readlink node_modules/.bin/p; find . -type d -empty | sort;"
        " stat -c '%a %n' key private locked",
    ) == (
        "ran\n../p/cli\n./locked\n./node_modules/p/lib\n./private\n./src\n"
        "./target/debug/incremental\n./tests\n600 key\n700 private\n500 locked\n"
    )
    await bash(tools, "rmdir src tests && rm -r target && rmdir locked && echo f > src")
    assert await bash(tools, "find . -type d -empty | sort; cat src") == (
        "./node_modules/p/lib\n./private\nf\n"
    )


async def test_equal_bytes_under_two_paths_have_their_own_times(tools: ToolTenant) -> None:
    await bash(tools, "mkdir d; echo x > a; cp a d/b; touch -d @1000.5 a; touch -d @2000 d/b")
    await bash(tools, "true")
    assert await bash(tools, "stat -c '%n %.9Y' a d/b") == (
        "a 1000.500000000\nd/b 2000.000000000\n"
    )
    await bash(tools, "touch -d @3000 a")
    assert await bash(tools, "stat -c %Y a d/b") == "3000\n2000\n"
    assert len(await tools.history("d/b")) == 1


async def test_files_of_equal_bytes_and_time_are_two_files(tools: ToolTenant) -> None:
    await bash(tools, "mkdir d; echo x > a; chmod 640 a; touch -d @1000 a; cp -p a d/a")
    assert await bash(tools, "stat -c '%a %Y' d/a; cp a d/a") == "640 1000\n"
    await bash(tools, "touch -d @1000 d/a")
    assert await bash(tools, 'python3 -c \'import os; os.rename("a", "d/a")\'; ls') == "d\n"


async def test_a_directory_becomes_a_file_and_the_reverse_without_a_warning(
    tools: ToolTenant,
) -> None:
    await bash(tools, "mkdir -p empty full; echo x > full/f; touch -d @1000 full")
    assert await bash(tools, "rm -r empty full; echo y > empty; echo z > full") == ""
    assert await bash(tools, "cat *; rm *; mkdir empty; echo x > empty/f") == "y\nz\n"
    assert await tools.files() == {"empty/f": b"x\n"}


async def test_a_call_that_changes_nothing_writes_nothing(tools: ToolTenant) -> None:
    await bash(tools, "mkdir -p a/b e; echo x > a/b/f; ln -s f a/b/l; chmod 600 a/b/f")
    [before] = await tools.ports.trees.revisions([tools.scope()])
    await bash(tools, "ls -lR; cat a/b/f")
    assert [before] == list(await tools.ports.trees.revisions([tools.scope()]))


async def test_directories_are_no_files(stored: ToolTenant) -> None:
    await bash(stored, "mkdir -p empty/deep; echo x > a")
    assert await stored.files() == {"a": b"x\n"}
    assert await stored.call("glob", pattern="**") == "a\n"
    with pytest.raises(Conflict, match="empty/deep cannot be a file: it is a directory"):
        await stored.call("write", file_path="empty/deep", content="x")
    with pytest.raises(Conflict, match="empty cannot be a file: it is a directory"):
        await stored.call("write", file_path="empty", content="x")
    await stored.call("write", file_path="empty/deep/f", content="x")
    assert await bash(stored, "find . -type f | sort") == "./a\n./empty/deep/f\n"
    await bash(stored, "rm empty/deep/f")
    assert await bash(stored, "find empty -empty") == "empty/deep\n"
    await bash(stored, "rm -r empty && echo y > empty")
    assert await stored.files() == {"a": b"x\n", "empty": b"y\n"}
    assert await directories(stored) == set()
    await bash(stored, "rm empty && mkdir empty")
    assert (await stored.files(), await directories(stored)) == ({"a": b"x\n"}, {"empty"})


async def test_a_written_file_keeps_its_mode_and_gets_a_new_time(stored: ToolTenant) -> None:
    await bash(stored, "echo x > a; chmod 700 a; touch -d @1000 a")
    await stored.call("edit", file_path="a", old_string="x", new_string="y")
    await stored.call("write", file_path="a", content="z")
    [tree] = await stored.ports.trees.read([stored.scope()])
    written_at = tree.heads[Path("a")].at
    assert await bash(stored, "stat -c '%a %Y' a") == f"700 {written_at // 1000}\n"


async def test_a_deleted_workspace_leaves_no_directory(stored: ToolTenant) -> None:
    await bash(stored, "mkdir -p empty/deep; echo x > a")
    await workspaces.delete(stored.ports, stored.owner, NOTES)
    assert (await stored.files(), await directories(stored)) == ({}, set())


MODES_AND_TIMES = "stat -c '%n %a %Y' . d d/e"


async def test_directories_have_their_own_modes_and_times(tools: ToolTenant) -> None:
    await bash(tools, "mkdir -p d/e; echo x > d/e/f; chmod 700 d; chmod 750 .")
    await bash(tools, "touch -d @1000 d/e; touch -d @2000 d; touch -d @3000 .")
    expected = ". 750 3000\nd 700 2000\nd/e 755 1000\n"
    await end_instances(tools)
    assert await bash(tools, MODES_AND_TIMES) == expected
    await bash(tools, "echo y >> d/e/f")
    await end_instances(tools)
    assert await bash(tools, MODES_AND_TIMES) == expected, "no name was added or removed"


async def test_a_write_of_a_file_changes_the_time_of_its_directory(tools: ToolTenant) -> None:
    await bash(tools, "mkdir -p d/e; echo x > d/e/f; touch -d @1000 d/e; touch -d @2000 d .")
    await tools.call("write", file_path="d/e/g", content="x")
    [tree] = await tools.ports.trees.read([tools.scope()])
    written_at = tree.heads[Path("d/e/g")].at // 1000
    assert await bash(tools, MODES_AND_TIMES) == (f". 755 2000\nd 755 2000\nd/e 755 {written_at}\n")
    await bash(tools, "touch -d @3000 d/e")
    assert await bash(tools, MODES_AND_TIMES) == ". 755 2000\nd 755 2000\nd/e 755 3000\n"


async def test_directories_of_written_files_are_as_old_as_these(stored: ToolTenant) -> None:
    await stored.call("write", file_path="d/e/f", content="x")
    before = await bash(stored, "stat -c '%n %a %.9Y' . d d/e d/e/f; echo y >> d/e/f")
    assert len(set(line.split()[2] for line in before.splitlines())) == 1
    after = await bash(stored, "stat -c '%n %a %.9Y' . d d/e")
    assert after.splitlines() == before.splitlines()[:3]


async def test_directories_may_be_older_than_1970(tools: ToolTenant) -> None:
    await bash(tools, "mkdir -p d/e; touch -d @-1000 d/e; touch -d @-2000 d; touch -d @-3000 .")
    await end_instances(tools)
    assert await bash(tools, MODES_AND_TIMES) == ". 755 -3000\nd 755 -2000\nd/e 755 -1000\n"


async def test_the_root_stays_accessible(tools: ToolTenant) -> None:
    await bash(tools, "echo x > a; chmod 0 .")
    assert await bash(tools, "stat -c %a .; chmod 755 . && cat a") == "100\nx\n"


async def test_reading_a_directory_without_permissions_keeps_its_mode(tools: ToolTenant) -> None:
    await bash(tools, "mkdir -p d/e; echo x > d/e/f; chmod 0 d/e; chmod 100 d")
    for _ in range(2):
        assert await bash(tools, "stat -c %a d d/e; echo y >> g") == "100\n0\n"
    assert await bash(tools, "chmod 755 d d/e; cat d/e/f") == "x\n"


async def test_a_deleted_workspace_leaves_no_attributes_of_its_root(stored: ToolTenant) -> None:
    await bash(stored, "chmod 700 .")
    roots = RecordType.ROOT_DIRECTORY
    assert len(await stored.ports.records.list(stored.owner.tenant, roots)) == 1
    await workspaces.delete(stored.ports, stored.owner, NOTES)
    assert await stored.ports.records.list(stored.owner.tenant, roots) == ()


async def end_instances(tools: ToolTenant) -> None:
    """End persistent sandboxes, so that the next call finds only what is stored."""
    await release.release_workspace_instances(tools.ports, tools.owner.tenant, NOTES)
