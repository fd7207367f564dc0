"""Holds the tree to the floors of docs/architecture.md and to the few rules of form beside them.

    python3 tests/house/floors.py ROOT

Prints one line per violation (path:line: what) and ends with 1 if there is any. The floors are read from
the table in docs/architecture.md, so that the document and the code cannot part.
"""

import ast
import re
import sys
from pathlib import Path

MAX_LINES = 400
# Files that may be longer, each with its reason. A new entry needs a better reason than an old one.
LONG_FILES: dict[str, str] = {}
MAX_LONG_FILES = 3

SOURCE_ROOTS = ("shoal", "app", "python", "tests", "bench", "fuzz", "examples", "scripts", "cmake")
SOURCE_SUFFIXES = (".h", ".cc", ".py", ".sh", ".cmake", ".txt")
NAMELESS = {"util", "utils", "common", "helper", "helpers", "misc"}

# Which roots may include headers of this kind; everybody else reaches them through these rooms.
TORCH = ("shoal/nn", "python", "examples", "bench")
NETWORK = ("shoal/net", "tests/net", "bench")
TORCH_FREE = ("shoal/nn/group", "shoal/nn/models")  # built where there is no PyTorch
FENCED = [  # pattern, where it may stand, but for, the rule
    (re.compile(r"(torch|ATen|c10|pybind11)/|Python\.h"), TORCH, TORCH_FREE,
     "PyTorch and Python headers belong to nn/ and python/, and not to nn/group/ or nn/models/"),
    (re.compile(r"(boost/)?asio(/|\.hpp)"), NETWORK, (), "Asio belongs to net/"),
]
# PyTorch's wheel brings its own fmt: a header that nn/ reaches must not bring Debian's.
NOT_BEFORE_TORCH = re.compile(r"(fmt|spdlog|asio|boost)[/.]")
PYTHON_MODULES = sys.stdlib_module_names | {"shoal", "torch", "numpy", "safetensors", "PIL"}

INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]')


def read_floors(root: Path) -> dict[str, int]:
    """Room to floor, from the rows `| 2 | collective · table · factor | ... |`."""
    floors = {}
    for line in (root / "docs/architecture.md").read_text().splitlines():
        row = re.match(r"\|\s*(\d+)\s*\|([^|]+)\|", line)
        if row:
            for room in row[2].split("·"):
                floors[room.strip().strip("`")] = int(row[1])
    return floors


class Tree:
    def __init__(self, root: Path):
        self.root = root
        self.floors = read_floors(root)
        self.files = sorted(
            path.relative_to(root)
            for top in SOURCE_ROOTS
            for path in (root / top).rglob("*")
            if path.suffix in SOURCE_SUFFIXES and path.is_file() and "__pycache__" not in path.parts
        )
        self.lines = {path: (root / path).read_text().splitlines() for path in self.files}

    def includes(self, path: Path):
        for number, line in enumerate(self.lines[path], 1):
            found = INCLUDE.match(line)
            if found:
                yield number, found[1]

    def code(self):
        return [path for path in self.files if path.suffix in (".h", ".cc")]


def room_of(path: Path) -> str:
    """The room a source belongs to: shoal/net/tcp.h is net's, app/main.cc is app's."""
    return path.parts[1] if path.parts[0] == "shoal" and len(path.parts) > 2 else path.parts[0]


def inside(path: Path, folders) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def floors_hold(tree: Tree):
    """A room includes and links only itself and rooms on lower floors."""
    for path in tree.files:
        own = room_of(path)
        if path.parts[0] not in ("shoal", "app", "python") or own == "shoal":
            continue
        if own not in tree.floors:
            yield f"{path}:1: room {own} has no floor in docs/architecture.md"
            continue
        used = []
        if path.suffix in (".h", ".cc"):
            for number, name in tree.includes(path):
                parts = name.split("/")
                if parts[0] == "shoal" and len(parts) > 2:
                    used.append((number, parts[1]))
                elif parts[0] in ("app", "python", "tests", "bench", "examples"):
                    used.append((number, parts[0]))
        elif path.name == "CMakeLists.txt" and path.parts[0] == "shoal":
            for number, line in enumerate(tree.lines[path], 1):
                links = re.search(r"shoal_room\(.*LINKS([^)]*)", line)
                used += [(number, word) for word in (links[1].split() if links else ()) if word in tree.floors]
        for number, other in used:
            if other != own and tree.floors.get(other, 99) >= tree.floors[own]:
                yield (f"{path}:{number}: {own} (floor {tree.floors[own]}) reaches {other}, "
                       f"which is not on a lower floor")


def fences_hold(tree: Tree):
    for path in tree.code():
        for number, name in tree.includes(path):
            for pattern, allowed, but_for, rule in FENCED:
                if pattern.match(name) and (not inside(path, allowed) or inside(path, but_for)):
                    yield f"{path}:{number}: includes {name}: {rule}"


def nn_headers_are_clean(tree: Tree):
    """Follows what nn/ and python/ include, header by header."""
    seen = set()
    reach = [path for path in tree.code() if inside(path, ("shoal/nn", "python"))]
    while reach:
        path = reach.pop()
        for number, name in tree.includes(path):
            header = Path(name)
            if NOT_BEFORE_TORCH.match(name):
                yield f"{path}:{number}: includes {name} and is seen by nn/, where PyTorch's own fmt must be alone"
            elif header in tree.lines and header not in seen:
                seen.add(header)
                reach.append(header)


def headers_are_contracts(tree: Tree):
    """A header opens with its purpose, is included once, and stays in its room's namespace."""
    for path in tree.files:
        if path.suffix != ".h" or path.stem.endswith("-inl"):  # Highway includes -inl.h once per target
            continue
        lines = tree.lines[path]
        if not lines or not lines[0].startswith("//"):
            yield f"{path}:1: a header opens with a comment: purpose, lifetime, threads"
        if "#pragma once" not in lines:
            yield f"{path}:1: no #pragma once"
        if path.parts[0] == "shoal":
            own = room_of(path)
            wanted = r"namespace shoal\b" if own == "core" else rf"namespace shoal::{own}\b"
            if not any(re.match(wanted, line) for line in lines):
                yield f"{path}:1: nothing in namespace shoal::{own}"


def sizes_hold(tree: Tree):
    for path in tree.files:
        length = len(tree.lines[path])
        if length > MAX_LINES and str(path) not in LONG_FILES:
            yield f"{path}:{length}: {length} lines, more than {MAX_LINES}: split it by idea"
        if length <= MAX_LINES and str(path) in LONG_FILES:
            yield f"{path}:{length}: no longer long; take it out of LONG_FILES"
    if len(LONG_FILES) > MAX_LONG_FILES:
        yield f"tests/house/floors.py:1: {len(LONG_FILES)} exceptions for long files, more than {MAX_LONG_FILES}"


def names_say_something(tree: Tree):
    for path in tree.files:
        for part in (*path.parts[:-1], path.stem):
            if part in NAMELESS:
                yield f"{path}:1: '{part}' names nothing; put its contents where they belong"


def nothing_is_left_for_later(tree: Tree):
    for path in tree.files:
        for number, line in enumerate(tree.lines[path], 1):
            if re.search(r"\b(TO" + r"DO|FIX" + r"ME)\b", line):
                yield f"{path}:{number}: finished work has no such marks; open an issue instead"


def python_imports_hold(tree: Tree):
    """The package needs PyTorch, NumPy and safetensors, and Pillow for pictures; nothing else."""
    for path in tree.files:
        if path.suffix != ".py" or not path.is_relative_to("python/shoal"):
            continue
        for node in ast.walk(ast.parse("\n".join(tree.lines[path]))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module]
            for name in names:
                if name.split(".")[0] not in PYTHON_MODULES:
                    yield f"{path}:{node.lineno}: imports {name}: the package needs PyTorch, NumPy, safetensors and Pillow only"


def tests_are_run(tree: Tree):
    """Each test file is declared, so that none is written and never run."""
    for path in tree.code():
        if path.parts[0] != "tests" or path.suffix != ".cc":
            continue
        declared = tree.lines.get(path.parent / "CMakeLists.txt", [])
        if not any(re.search(rf"\b{path.stem}\b", line) for line in declared):
            yield f"{path}:1: not declared in {path.parent}/CMakeLists.txt"


LOCAL_TYPE = re.compile(r"(?:template.*?> )?(?:struct|class|enum class|enum) (\w+)")
LOCAL_CONSTANT = re.compile(r"\b(k[A-Z]\w*)\s*(?:\[\w*\])?\s*(?:=|\{)")
LOCAL_FUNCTION = re.compile(r"(?:\[\[\w+\]\] )?(?:const )?[\w:]+(?:<.*?>)?[&*]* (\w+)\((.*?)(?:[,)]|$)")


def local_names(lines: list[str]):
    """(line number, name) of what a file has in unnamed namespaces; a function's name has its first parameter's type behind it."""
    unnamed = False
    for number, line in enumerate(lines, 1):
        if line in ("namespace {", "}  // namespace"):
            unnamed = line == "namespace {"
        elif not unnamed or not line or line[0] in " }/#" or line.startswith(("using", "TEST", "TYPED_TEST", "INSTANTIATE")):
            continue
        elif found := LOCAL_TYPE.match(line):
            yield number, found[1]
        elif re.match(r"const(expr)? ", line) and "(" not in line.split("=")[0]:
            for name in LOCAL_CONSTANT.findall(line):
                yield number, name
        elif found := LOCAL_FUNCTION.match(line):
            parameter = re.sub(r"\s*=.*", "", found[2]).strip()
            yield number, f"{found[1]}({re.sub(r'[ ]?[a-z_0-9]+$', '', parameter) or parameter}"


def local_names_are_told_apart(tree: Tree):
    """Files of a room are compiled as one (CMakePresets.json), a dozen at a time: which ones meet changes with every new file."""
    seen: dict[tuple[Path, str], Path] = {}
    for path in tree.code():
        if path.suffix != ".cc" or path.parts[0] not in ("shoal", "app", "python", "tests"):
            continue
        for number, name in local_names(tree.lines[path]):
            first = seen.setdefault((path.parent, name), path)
            if first != path:
                yield f"{path}:{number}: {name.split('(')[0]} is local to {first.name} too: files of a room are compiled as one"


RULES = (floors_hold, fences_hold, nn_headers_are_clean, headers_are_contracts, sizes_hold,
         names_say_something, nothing_is_left_for_later, python_imports_hold, tests_are_run,
         local_names_are_told_apart)


def violations(root: Path) -> list[str]:
    tree = Tree(root)
    return [line for rule in RULES for line in rule(tree)]


def main() -> int:
    root = Path(sys.argv[1])
    found = violations(root)
    for line in found:
        print(line)
    print(f"house: {len(Tree(root).files)} files, {len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
