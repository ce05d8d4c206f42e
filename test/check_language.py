#!/usr/bin/env python3
"""Searches the sources for words that the project does not use, and prints each occurrence.

    test/check_language.py [--count] [FOLDER ...]

test/language.txt lists the patterns. A line has three parts, separated by tabs: where the pattern applies (identifiers, comments,
messages, or several joined by commas), a regular expression, and what to write instead. Comments are those of Rust, C++, TableGen,
Python and shell; messages are string literals with at least two words. A comment that begins with a free relative (What, Who, Whether, How, ...)
is counted, and fewer than 1 % of all comment lines may.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
C_LIKE = {".rs", ".cpp", ".h", ".td", ".c", ".js"}
HASH = {".py", ".sh", ".toml"}
# Data, generated files, and this check's own list.
SKIPPED = re.compile(
    r"^(test/(results|models|problems|profiles|readers/corpus|language\.txt|check_language\.py)|Cargo\.lock|LICENSE|"
    r"dialect/ir/td/OnnxOps\.td|dialect/onnx/src/schema_table\.rs)"
)
FREE_RELATIVE = re.compile(r"^(What|Who|Whose|Whether|That|How|Where|Which|When) (?!(is|are|was|were|to) (a|an|the)\b.*\?)")
# Tokens of C-like languages: comments, raw strings, strings, characters and lifetimes.
TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)"""
    r"""|(?P<string>b?r(?P<hashes>\#*)".*?"(?P=hashes)|b?"(?:\\.|[^"\\])*")"""
    r"""|(?P<other>'(?:\\.[^']*|[^'\\])'|'[a-z_]+)""",
    re.S,
)


def parts(path, text):
    """Yields (kind, line number, text) of comments, messages and code."""
    if path.suffix in C_LIKE:
        end = 0
        for token in TOKEN.finditer(text):
            yield "code", text.count("\n", 0, end) + 1, text[end : token.start()]
            end = token.end()
            line = text.count("\n", 0, token.start()) + 1
            if token["comment"]:
                for offset, comment in enumerate(token["comment"].splitlines()):
                    yield "comment", line + offset, re.sub(r"^\s*(//[/!]*|/\*+|\*+/?)\s?", "", comment)
            elif token["string"]:
                yield "string", line, token["string"]
        yield "code", text.count("\n", 0, end) + 1, text[end:]
        return
    for number, line in enumerate(text.splitlines(), 1):
        code, mark, comment = line.partition("#")
        if mark and not (code.count('"') % 2 or code.count("'") % 2) and (not code or code[-1] in " \t"):
            yield "comment", number, comment.strip()
        else:
            code = line
        yield "code", number, code


def patterns():
    for number, line in enumerate((ROOT / "test/language.txt").read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        fields = line.split("\t")
        if len(fields) != 3 or not set(fields[0].split(",")) <= {"identifiers", "comments", "messages"}:
            sys.exit(f"test/language.txt:{number}: expected scopes, a pattern and a replacement, separated by tabs")
        yield fields[0].split(","), re.compile(fields[1]), fields[2]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", action="store_true", help="print numbers only")
    parser.add_argument("folders", nargs="*")
    arguments = parser.parse_args()
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *arguments.folders],
        cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE,
    ).stdout.splitlines()
    rules = list(patterns())
    found, relative, comments, previous = [], [], 0, ("", 0)
    for name in listed:
        path = ROOT / name
        if SKIPPED.match(name) or path.suffix not in C_LIKE | HASH or not path.is_file():
            continue
        for kind, line, text in parts(path, path.read_text()):
            if kind == "comment" and text.strip():
                comments += 1
                # The first line of a comment, or a sentence behind a full stop or an empty line.
                starts = previous[0] != name or previous[1] != line - 1 or ended
                if starts and FREE_RELATIVE.match(text):
                    relative.append(f"{name}:{line}: {text}")
                ended = text.rstrip().endswith((".", ":", "?"))
                previous = (name, line)
            scope = {"comment": "comments", "code": "identifiers", "string": "messages"}[kind]
            if kind == "string" and len(text.split()) < 2:
                continue
            for scopes, pattern, instead in rules:
                for match in pattern.finditer(text) if scope in scopes else ():
                    at = line + text.count("\n", 0, match.start())
                    found.append(f"{name}:{at}: '{match[0]}': write {instead}")
    share = len(relative) / max(comments, 1)
    if arguments.count:
        print(f"{len(found)} words; {len(relative)} of {comments} comment lines begin with a free relative ({share:.2%})")
    else:
        print("\n".join(found + (relative if share >= 0.01 else [])), end="\n" if found else "")
    if found or share >= 0.01:
        sys.exit(f"error: {len(found)} words, {share:.2%} free relatives (limit: none and 1 %)")


main()
