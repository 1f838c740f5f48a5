"""Git's objects as bytes, made and read without git: the same values give the same ids anywhere."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from carrel.core.identifiers import TimestampMs

FILE: Final = "100644"
FOLDER: Final = "40000"
LONGEST_ID: Final = 40


class GitObject(Struct, frozen=True, gc=False):
    kind: str
    """One of blob, tree, commit and tag."""
    id: str
    body: bytes


class Signature(Struct, frozen=True, gc=False):
    """Who did something and when, as git writes it."""

    who: str
    """A name and an address: ``name <address>``."""
    at: TimestampMs

    @property
    def line(self) -> str:
        return f"{self.who} {self.at // 1000} +0000"


class GitCommit(Struct, frozen=True, gc=False):
    """A commit that was read."""

    id: str
    tree: str
    parents: tuple[str, ...]
    author: str
    seconds: int
    message: str

    @property
    def subject(self) -> str:
        return self.message.partition("\n")[0]

    @property
    def body(self) -> str:
        return self.message.partition("\n")[2].strip("\n")


def made(kind: str, body: bytes) -> GitObject:
    head = f"{kind} {len(body)}\0".encode()
    return GitObject(kind, hashlib.sha1(head + body, usedforsecurity=False).hexdigest(), body)


def blob(content: bytes) -> GitObject:
    return made("blob", content)


def tree(files: Mapping[str, str], folders: Mapping[str, str]) -> GitObject:
    """Of ids by name. Git compares the names of folders as if they ended with a slash."""
    rows = [(name.encode(), name.encode(), FILE, id) for name, id in files.items()]
    rows += [(name.encode() + b"/", name.encode(), FOLDER, id) for name, id in folders.items()]
    lines = [
        f"{mode} ".encode() + name + b"\0" + bytes.fromhex(id) for _, name, mode, id in sorted(rows)
    ]
    return made("tree", b"".join(lines))


def commit(
    tree: str, parents: Sequence[str], author: Signature, committer: Signature, message: bytes
) -> GitObject:
    lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents)]
    lines += [f"author {author.line}", f"committer {committer.line}", "", ""]
    return made("commit", "\n".join(lines).encode() + message)


def tag(commit: str, name: str, tagger: Signature, message: bytes) -> GitObject:
    lines = [f"object {commit}", "type commit", f"tag {name}", f"tagger {tagger.line}", "", ""]
    return made("tag", "\n".join(lines).encode() + message)


def read_tree(body: bytes) -> Iterable[tuple[bool, str, str]]:
    """Whether it is a folder, its name and its id, of everything in a tree."""
    at = 0
    while at < len(body):
        space, end = body.index(b" ", at), body.index(b"\0", at)
        after = end + 21
        yield (
            body[at:space] == FOLDER.encode(),
            body[space + 1 : end].decode(),
            body[end + 1 : after].hex(),
        )
        at = after


def read_commit(found: GitObject) -> GitCommit:
    head, _, message = found.body.decode("utf-8", "replace").partition("\n\n")
    facts = [line.partition(" ")[::2] for line in head.split("\n")]
    author = next(value for name, value in facts if name == "author")
    who, seconds, _ = author.rsplit(" ", 2)
    return GitCommit(
        found.id,
        tree=next(value for name, value in facts if name == "tree"),
        parents=tuple(value for name, value in facts if name == "parent"),
        author=who,
        seconds=int(seconds),
        message=message,
    )
