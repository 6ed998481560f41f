"""Every error message of the library and of fpinspect, in one file that is read as a whole.

usage: collect_messages.py ROOT [--write]

Collects the texts of all throw expressions, and of calls of functions that throw: `file: exception:
text`, where {expression} stands for what the program puts in. Compares them with messages.txt beside this script; --write replaces that file. After a
change, read the new lines beside their neighbours: a message names the argument, what was expected and
what was given.
"""

import pathlib
import re
import sys

FOLDERS = ("include", "backends", "tools/fpinspect", "tools/tensor_file")
SUFFIXES = (".hpp", ".cpp", ".cu", ".cuh")
LISTING = pathlib.Path(__file__).with_name("messages.txt")
# A throw, or a call of a function that throws, of tools/tensor_file/error.hpp or of fpinspect.
THROW = re.compile(r"\b(?:throw\s+([a-z_:]+)|(?<!void )(malformed|unsupported|refuse_(?:value|name|content|line)))\s*([({])")
# A call of backends/dispatch/refuse.hpp: its parts stand one behind the other, behind a
# condition where the name ends in _if, and in require.
REFUSAL = re.compile(r"(?<!void )(?<!finder::)\b(refuse|refuse_if|refuse_value_if|refuse_content_if|require)(?:<([a-z_]+)>)?\s*(\()")
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"\((?P<raw>.*?)\)"|"(?P<text>(?:\\.|[^"\\])*)"|\'(?:\\.|[^\'\\])+\'', re.S)


def end_of(source, opening):
    """The index behind the bracket that closes the one at `opening`."""
    depth, at = 0, opening
    while at < len(source):
        token = TOKEN.match(source, at)
        if token:
            at = token.end()
            continue
        depth += source[at] in "({["
        depth -= source[at] in ")}]"
        at += 1
        if depth == 0:
            return at
    return at


def text_of(arguments):
    """Literals as they are, everything between them as {expression}."""
    text, at = "", 0
    parts = []
    if arguments.startswith("cat("):  # its arguments stand one behind the other
        arguments = arguments[len("cat("):-1]
    for token in TOKEN.finditer(arguments):
        if token["text"] is None and token["raw"] is None:
            continue
        parts.append((arguments[at:token.start()], token["raw"] or token["text"] or ""))
        at = token.end()
    parts.append((arguments[at:], ""))
    for code, literal in parts:
        code = re.sub(r"//[^\n]*", "", code)
        code = re.sub(r"\s+", " ", code).strip(" +,")
        code = re.sub(r"std::(?:string|to_string)\(((?:[^()]|\([^()]*\))*)\)", r"\1", code)
        if code:
            text += "{" + code + "}"
        text += literal.replace('\\"', '"')
    return text


def parts_of(arguments):
    """The arguments of a call, apart."""
    parts, depth, at, begin = [], 0, 0, 0
    while at < len(arguments):
        token = TOKEN.match(arguments, at)
        if token:
            at = token.end()
            continue
        depth += arguments[at] in "({["
        depth -= arguments[at] in ")}]"
        if arguments[at] == "," and depth == 0:
            parts.append(arguments[begin:at])
            begin = at + 1
        at += 1
    return parts + [arguments[begin:]]


def refusals(source, standard, functions=("refuse", "refuse_if", "require")):
    """Position, exception and text of each call of backends/dispatch/refuse.hpp, or of fpinspect's refuse_if()."""
    for call in REFUSAL.finditer(source):
        if call[1] not in functions:
            continue
        opening = call.end() - 1
        parts = parts_of(source[opening + 1:end_of(source, opening) - 1])
        text = "".join(map(text_of, parts if call[1] == "refuse" else parts[1:]))
        named = call[1].removesuffix("_if")  # refuse_value or refuse_content
        yield call.start(), call[2] or (named if "_" in named else standard), text


def throws(source, of_fpinspect):
    """Position, exception and text of each throw expression, and of fpinspect's calls of functions that throw."""
    for thrown in THROW.finditer(source):
        if thrown[2] and not of_fpinspect:
            continue
        opening = thrown.end() - 1
        text = text_of(source[opening + 1:end_of(source, opening) - 1])
        yield thrown.start(), (thrown[1] or thrown[2]).split("::")[-1], text


def messages(root):
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in SUFFIXES:
                continue
            source = path.read_text(encoding="utf-8")
            found = [*throws(source, folder == "tools/fpinspect")]
            if "dispatch/refuse.hpp" in source:
                found += refusals(source, "invalid_argument")
            if folder == "tools/fpinspect":
                found += refusals(source, "usage_error", ("refuse_if", "refuse_value_if", "refuse_content_if"))
            for at, exception, text in sorted(found):
                if "//" not in source[source.rfind("\n", 0, at) + 1:at]:
                    yield f"{path.relative_to(root).as_posix()}: {exception}: {text}"


def main():
    found = list(messages(pathlib.Path(sys.argv[1])))
    if "--write" in sys.argv:
        LISTING.write_text("\n".join(found) + "\n", encoding="utf-8")
        return 0
    kept = LISTING.read_text(encoding="utf-8").splitlines()
    for line in sorted(set(found) - set(kept)):
        print(f"new: {line}")
    for line in sorted(set(kept) - set(found)):
        print(f"gone: {line}")
    if len(found) < 200:
        print(f"only {len(found)} messages found")
        return 1
    if found != kept:
        print("messages changed: read them, then run collect_messages.py ROOT --write")
        return 1
    print(f"{len(found)} messages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
