# SPDX-License-Identifier: Apache-2.0
"""Reads the listings of the sPIN paper's appendix C.3 from the paper's text, which is not part of this repository, and
repairs the damage of its character recognition: misread characters, lost braces, and captions between the lines."""

import re
from pathlib import Path

PAPER = Path(__file__).resolve().parents[2].parent / "shared" / "seeds" / "003_592d7ae51a57a37e.txt"

# Listing: its heading, and the heading or caption behind it.
SECTIONS = {
    "ping_pong": ("C.3.1 Ping pong.", "C.3.2 Accumulate."),
    "accumulate": ("C.3.2 Accumulate.", "C.3.3 Broadcast."),
    "broadcast": ("C.3.3 Broadcast.", "C.3.4 Strided Datatype."),
    "datatype": ("C.3.4 Strided Datatype.", "C.3.5 Reed-Solomon."),
    "raid": ("C.3.5 Reed-Solomon.", None),
}

# A caption in the middle of the RAID listing, and the text of a figure at the end of two code lines.
CAPTION_LINES = re.compile(r"^( right after the sending|NIC$|\} DMA$)")
# The first line of the captions behind a listing.
CAPTION = re.compile(r"^\s*(The (following|next) figure|sPIN stream mode)")

# Misread characters, as (pattern, repair). "*" was read as x, +, %, and guillemets; "^" as "~"; "%" as "$".
REPAIRS = [
    (r' "o$| Rank5 o$', ""),
    (r"\bO0?\b", "0"),
    (r"\bwvoid\b", "void"),
    (r"\bptl _?header_?[ _]t\b|\bptl header t\b", "ptl_header_t"),
    (r"\b(ptl_(?:size|header|payload|process))_? t\b", r"\1_t"),
    (r"\bptl_user header_t\b", "ptl_user_header_t"),
    (r"\boffset_in _block", "offset_in_block"),
    (r"PTL_ME_HOST_ MEM", "PTL_ME_HOST_MEM"),
    (r"\bvoid (?:x|\*|») ?state", "void *state"),
    (r"\b(\w+_info_t) x(\w)", r"\1 *\2"),
    (r"\((\w+_info_t)[x«]\)", r"(\1 *)"),
    (r"\b(float|uint32_t)[x+*]+ ?(buf|\))", r"\1 *\2"),
    (r"\buint32_t xdata", "uint32_t *data"),
    (r"\((float|uint32_t)[x«*]+\)", r"(\1 *)"),
    (r"\(halfx2\)", "(half*2)"),
    (r"datal?[l\[]j[l\]]+\*", "data[j]*"),
    (r"\[j\+1l\]", "[j+1]"),
    (r"\]xbuf", "]*buf"),
    (r"buf[fl]?\[i\]", "buf[i]"),
    (r"datal?[\[]?i[l\]]+\)", "data[i])"),
    (r"datalil\)", "data[i])"),
    (r" ~ ", " ^ "),
    (r"\bi->0ffset", "i->offset"),
    (r"\b1->vlen", "i->vlen"),
    (r"\bvlent\+", "vlen+"),
    (r"offsett\+toffset", "offset+offset"),
    (r"basetoffset", "base+offset"),
    (r"\) \$i->", ") % i->"),
    (r"\bJ % \(", "j * ("),
    (r"^\)i$", ");"),
    (r"else \(\{", "else {"),
    (r"struct \(\{", "struct {"),
    (r"^/% (.*) [=#]/$", r"/* \1 */"),
    (r"\*buf\[j$", "*buf[j"),
    (r"^17$", "];\n}"),
    (r"^’$", ";"),
    (r"\bPt1", "Ptl"),
]


def listing(name: str) -> str:
    """Returns a listing, repaired."""
    first, last = SECTIONS[name]
    text = PAPER.read_text()
    text = text[text.index(first) + len(first) :]
    text = text[: text.index(last)] if last else text
    return _closed(_repaired(_code_lines(text)))


def _code_lines(text: str) -> list[str]:
    kept = []
    for line in text.splitlines():
        if CAPTION.match(line):
            break
        if line.strip() and not CAPTION_LINES.match(line):
            kept.append(line.strip())
    return kept


def _repaired(lines: list[str]) -> list[str]:
    # Comments that were broken across lines.
    joined: list[str] = []
    for line in lines:
        if joined and re.search(r"//.*(other|payload)$", joined[-1]):
            joined[-1] += " " + line
        elif line not in ("hosts", "// total number of"):
            joined.append(line)
    result = []
    for line in joined:
        for pattern, repair in REPAIRS:
            line = re.sub(pattern, repair, line)
        result += line.splitlines()
    return result


def _closed(lines: list[str]) -> str:
    """Adds the closing braces that were lost at the ends of functions."""
    result: list[str] = []
    depth = 0
    for line in [*lines, ""]:
        if re.match(r"(int \w+_handler ?\(|typedef |/\*|#define|$)", line) and depth:
            result.append("}" * depth)
            depth = 0
        result.append(line)
        depth += line.count("{") - line.count("}")
    return "\n".join(result)


if __name__ == "__main__":
    import sys

    print(listing(sys.argv[1]))
