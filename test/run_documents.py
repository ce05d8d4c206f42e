#!/usr/bin/env python3
"""Runs the commands shown in documents and compares their output.

    test/run_documents.py [--tools FOLDER] [FILE.md ...]        default: README.md and docs/**/*.md, tools of target/debug

A fenced block marked `console` is a transcript: lines that begin with `$ ` are commands (`> ` continues one), all others are
the expected output, stdout and stderr together. The blocks of a document share one temporary directory, in which `test` and `examples`
are copies of the project's. In the expected output, a line `…` matches any number of lines.

Words after `console`, separated by commas:
    varies      numbers and units of time are not compared
    log=FILE    not run (a GPU or much time is needed): every line of output occurs in test/results/FILE
"""

import argparse
import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^```(\S*)\s*$")


def blocks(text):
    """Yields (line number, info string, lines) of each fenced block."""
    info, start, lines = None, 0, []
    for number, line in enumerate(text.splitlines(), 1):
        fence = FENCE.match(line)
        if info is None and line.startswith("```"):
            info, start, lines = (fence.group(1) if fence else ""), number, []
        elif info is not None and line.strip() == "```":
            yield start, info, lines
            info = None
        elif info is not None:
            lines.append(line)
    if info is not None:
        raise SystemExit(f"line {start}: fenced block is not closed")


def transcript(lines):
    """Yields (command, expected lines) of a block."""
    command, expected = None, []
    for line in lines:
        if line.startswith("$ "):
            if command is not None:
                yield command, expected
            command, expected = line[2:], []
        elif line.startswith("> ") and command is not None and not expected:
            command += "\n" + line[2:]
        else:
            expected.append(line)
    if command is not None:
        yield command, expected


def matches(expected, actual, varies):
    """Returns true if the lines agree; `…` matches any number of lines."""
    if not expected:
        return not actual
    if expected[0].strip() == "…":
        return any(matches(expected[1:], actual[skip:], varies) for skip in range(len(actual) + 1))
    if not actual:
        return False
    return canonical(expected[0], varies) == canonical(actual[0], varies) and matches(expected[1:], actual[1:], varies)


def canonical(line, varies):
    line = line.rstrip()
    # Columns move with the width of their numbers, and units follow their size.
    return re.sub(r"\s+", " ", re.sub(r"[-+]?\d+([.,]\d+)*(e[-+]?\d+)?( (µs|ms|s)\b)?", "#", line)) if varies else line


def check(document, tools):
    """Returns the number of commands that were run, and the faults."""
    ran, faults = 0, []
    transcripts = [block for block in blocks(document.read_text()) if block[1].split(",")[0] == "console"]
    if not transcripts:
        return ran, faults
    with tempfile.TemporaryDirectory() as folder:
        # Copies, because paths in outputs are those of the files themselves, not of symbolic links.
        for name in ("test/models", "test/problems", "test/profiles", "examples"):
            shutil.copytree(ROOT / name, Path(folder) / name)
        environment = dict(os.environ, PATH=f"{tools}:{ROOT / '.venv/bin'}:{os.environ['PATH']}")
        for start, info, lines in transcripts:
            words = info.split(",")[1:]
            log = next((word[4:] for word in words if word.startswith("log=")), None)
            unknown = [word for word in words if word != "varies" and not word.startswith("log=")]
            if unknown:
                faults.append(f"{document}:{start}: unknown word '{unknown[0]}'; expected varies or log=FILE")
            for command, expected in transcript(lines):
                if log:
                    path = ROOT / "test/results" / log
                    recorded = set(map(str.rstrip, path.read_text().splitlines())) if path.exists() else set()
                    missing = [line for line in expected if line.strip() != "…" and line.rstrip() not in recorded]
                    if missing:
                        faults.append(f"{document}:{start}: not in test/results/{log}: {missing[0]}")
                    continue
                ran += 1
                result = subprocess.run(
                    ["bash", "-c", command], cwd=folder, env=environment, text=True,
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120,
                )
                actual = result.stdout.splitlines()
                if not matches(expected, actual, "varies" in words):
                    diff = "\n".join(difflib.unified_diff(expected, actual, "document", "actual", lineterm=""))
                    faults.append(f"{document}:{start}: $ {command} (exit code {result.returncode})\n{diff}")
    return ran, faults


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tools", default=str(ROOT / "target/debug"))
    parser.add_argument("documents", nargs="*", type=Path)
    arguments = parser.parse_args()
    documents = arguments.documents or [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    commands, faults = 0, []
    for document in documents:
        ran, found = check(document, Path(arguments.tools).resolve())
        commands += ran
        faults += found
    for fault in faults:
        print(fault, file=sys.stderr)
    if faults or not commands:
        sys.exit(f"{len(faults)} of {commands} commands differ" if commands else "no command was found")


main()
