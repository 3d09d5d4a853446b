# SPDX-License-Identifier: Apache-2.0
"""The reference of a C header: its declarations, as they stand there, with the comment before each as text."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from clang.cindex import Cursor, CursorKind, Index, TranslationUnit

_KINDS = {
    CursorKind.FUNCTION_DECL,
    CursorKind.STRUCT_DECL,
    CursorKind.UNION_DECL,
    CursorKind.ENUM_DECL,
    CursorKind.TYPEDEF_DECL,
    CursorKind.MACRO_DEFINITION,
}
_SECTION = re.compile(r"/\* -{3,} (.*?) -{3,}\s*\n?", re.DOTALL)


@dataclass
class Group:
    """Declarations without an empty line between them, and the comment that describes them."""

    first: int
    comment: str
    code: str
    names: list[str] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)
    types: list[str] = field(default_factory=list)


@dataclass
class Section:
    """A part of a header, with its heading and the text below it."""

    title: str
    text: str
    groups: list[Group]


@dataclass
class Header:
    """A header: its first comment, and its parts."""

    name: str
    text: str
    sections: list[Section]

    def names(self) -> list[str]:
        """Return all that the header declares."""
        return [name for section in self.sections for group in section.groups for name in group.names]


def read(file: Path, include: Path) -> Header:
    """Read a header; every function must have a comment."""
    builtin = subprocess.run(
        ["cc", "-print-file-name=include"], capture_output=True, text=True, check=True
    ).stdout.strip()
    unit = Index.create().parse(
        str(file),
        args=["-xc", f"-I{include}", "-isystem", builtin],
        options=TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD,
    )
    for problem in unit.diagnostics:
        if problem.severity >= problem.Error:
            raise SystemExit(f"{problem.location.file}:{problem.location.line}: {problem.spelling}")
    text = file.read_text()
    entities = [
        cursor
        for cursor in unit.cursor.get_children()
        if cursor.kind in _KINDS and cursor.location.file and Path(cursor.location.file.name).samefile(file)
    ]
    header = Header(file.name, "", [])
    for first, block in _blocks(text, entities):
        comment, code = _split(block)
        if heading := _SECTION.match(comment):
            header.sections.append(Section(" ".join(heading[1].split()), plain("/*" + comment[heading.end() :]), []))
            comment = ""
        group = Group(first, plain(comment), code)
        lines = range(first, first + block.count("\n") + 1)
        for entity in entities:
            if entity.extent.start.line in lines:
                _add(group, entity)
        if not header.sections and not group.names and not header.text:
            header.text = group.comment
        if group.names:
            if not header.sections:
                header.sections.append(Section("Basics", "", []))
            header.sections[-1].groups.append(group)
            if group.functions and not group.comment:
                raise SystemExit(f"{file}:{first}: {group.functions[0]} has no comment")
    return header


def _blocks(text: str, entities: list[Cursor]) -> list[tuple[int, str]]:
    """Cut a text at empty lines, but not in comments and declarations; return each piece with its first line."""
    inside = {line for e in entities for line in range(e.extent.start.line, e.extent.end.line)}
    blocks: list[tuple[int, list[str]]] = []
    is_comment, is_open = False, False
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() and not is_comment and number not in inside:
            is_open = False
            continue
        if not is_open:
            blocks.append((number, []))
            is_open = True
        blocks[-1][1].append(line)
        if "/*" in line:
            is_comment = True
        if "*/" in line.rpartition("/*")[2] or ("*/" in line and "/*" not in line):
            is_comment = False
    return [(first, "\n".join(lines)) for first, lines in blocks]


def _split(block: str) -> tuple[str, str]:
    """Return the comment at the start of a block, and the rest."""
    if not block.startswith("/*"):
        return "", block
    comment, _, code = block.partition("*/")
    return comment + "*/", re.sub(r" +\\$", r" \\", code.strip("\n"), flags=re.MULTILINE)


def _add(group: Group, entity: Cursor) -> None:
    name = entity.spelling
    if entity.kind == CursorKind.ENUM_DECL:
        group.names += [child.spelling for child in entity.get_children()]
    if entity.is_anonymous() or not name or "(unnamed" in name or name.endswith("_H"):
        return
    if name not in group.names:
        group.names.append(name)
    if entity.kind == CursorKind.FUNCTION_DECL and name not in group.functions:
        group.functions.append(name)
    if (
        entity.kind in (CursorKind.STRUCT_DECL, CursorKind.UNION_DECL, CursorKind.TYPEDEF_DECL)
        and name not in group.types
    ):
        group.types.append(name)


def plain(comment: str) -> str:
    """Return the text of a comment, line by line."""
    inner = comment.strip().removeprefix("/*").removesuffix("*/")
    lines = [
        re.sub(r"^ \* ?", "", line.rstrip()) if line.startswith(" *") else line.strip() for line in inner.splitlines()
    ]
    return "\n".join(lines).strip("\n ")


def markdown(header: Header, links: dict[str, str]) -> str:
    """Write the page of a header. `links` has the page and anchor of every name."""
    page = [f"# {header.name}", _text(header.text, links)]
    for section in header.sections:
        page += [f"## {section.title}", _text(section.text, links)]
        for group in section.groups:
            heads = group.functions or [name for name in group.types if not name.startswith("struct ")]
            anchors = "".join(f'<a id="{name}"></a>' for name in group.names)
            if heads and (group.functions or len(group.types) <= 2):
                shown = group.functions or _public(heads)
                page.append("### " + ", ".join(f"`{name}`" for name in shown))
                page += [anchors, f"```c\n{group.code}\n```", _text(group.comment, links)]
            else:
                page += [anchors + "\n\n" + _text(group.comment, links), f"```c\n{group.code}\n```"]
    return "\n\n".join(part for part in page if part) + "\n"


def _public(names: list[str]) -> list[str]:
    """Leave out the tag of a structure that has a type of the same name: `ptl_md` of `ptl_md_t`."""
    return [name for name in names if f"{name}_t" not in names] or names


def _text(text: str, links: dict[str, str]) -> str:
    """Write the text of a comment as Markdown: paragraphs, lists, descriptions of parameters, code."""
    lines = []
    is_code = False
    for line in text.splitlines():
        if line.startswith("    ") and (is_code or not lines or not lines[-1].strip()):
            is_code = True
            lines.append(line)
        elif not line.strip():
            lines.append("")
        elif described := re.match(r" {2,}([\w.]+) {2,}(\S.*)", line):
            is_code = False
            lines += [
                "" if lines and not lines[-1].startswith("- ") else None,
                f"- `{described[1]}`: {_words(described[2], links)}",
            ]
        elif item := re.match(r" +- (.*)", line):
            is_code = False
            lines += ["" if lines and not lines[-1].startswith(("- ", "    ")) else None, f"- {_words(item[1], links)}"]
        else:
            is_code = False
            lines.append(
                ("    " if line.startswith("  ") and lines and lines[-1].startswith(("- ", "    ")) else "")
                + _words(line.strip(), links)
            )
    return "\n".join(line for line in lines if line is not None).strip("\n")


def _words(line: str, links: dict[str, str]) -> str:
    """Escape what Markdown would read, and link names of the reference."""
    parts = re.split(r"(`[^`]*`)", line)
    for place, part in enumerate(parts):
        if part.startswith("`"):
            name = part.strip("`")
            parts[place] = f"[{part}]({links[name]})" if name in links else part
        else:
            escaped = re.sub(r"([\\*_\[\]])", r"\\\1", part).replace("<", "&lt;")
            parts[place] = re.sub(r"\b(\w(?:\w|\\_)*)\b", lambda found: _linked(found[1], links), escaped)
    return "".join(parts)


def _linked(word: str, links: dict[str, str]) -> str:
    name = word.replace("\\_", "_")
    return f"[`{name}`]({links[name]})" if name in links else word
