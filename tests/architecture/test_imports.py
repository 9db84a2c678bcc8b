"""Who imports whom, held against the table of docs/architecture.md."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import verifier

ROOT = Path(__file__).parents[2]
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
PRODUCT = ("ledger", "verifier")


def sources(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_package(path: Path) -> bool:
    return path.name == "__init__.py"


def imported(text: str, module: str, package: bool) -> Iterator[str]:
    """Every module or name that the source imports, dotted and absolute, `TYPE_CHECKING` too."""
    base = module.split(".") if package else module.split(".")[:-1]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = base[: len(base) - node.level + 1] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{source}.{alias.name}" for alias in node.names)


def imports_of(path: Path) -> list[str]:
    return list(imported(path.read_text("utf-8"), module_name(path), is_package(path)))


def table() -> dict[str, str]:
    """The rows of "Who may import whom": module pattern to the text of its second cell."""
    section = ARCHITECTURE.split("## Who may import whom")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `([\w.*]+)` \|(.*)\|$", section, re.M)
    return {pattern: cell.strip() for pattern, cell in rows}


def row_of(module: str, patterns: list[str]) -> str | None:
    """The row that governs a module: its own, else that of the package around it."""
    if module in patterns:
        return module
    around = [p for p in patterns if p.endswith(".*") and f"{module}.".startswith(p[:-1])]
    return max(around, key=len, default=None)


def allowed(pattern: str, rows: dict[str, str]) -> set[str]:
    """The row patterns that modules of `pattern` may import from."""
    patterns, cell = list(rows), rows[pattern]
    own = {pattern} if pattern.endswith(".*") else set()
    if "all of the above" in cell:
        own |= set(patterns[: patterns.index(pattern)])
    for word in re.findall(r"[\w.]+", cell.split("all of the above")[0]):
        own |= {p for p in patterns if p in {f"ledger.{word}", f"ledger.{word}.*"}}
    return own


def violations(module: str, names: list[str], rows: dict[str, str]) -> list[str]:
    """What `module` imports of the product and must not, by the table."""
    pattern = row_of(module, list(rows))
    if pattern is None:
        return [f"{module} is not in the table"]
    reachable = allowed(pattern, rows)
    found = []
    for name in names:
        if name.split(".")[0] == "verifier":
            may = pattern == "verifier.*" or "verifier" in rows[pattern]
            public = {f"verifier.{word}" for word in verifier.__all__}
            if not may or (pattern != "verifier.*" and name not in public):
                found.append(f"{module} imports {name}")
        elif name.split(".")[0] == "ledger" and row_of(name, list(rows)) not in reachable:
            parent = row_of(name.rpartition(".")[0], list(rows))
            if parent not in reachable:
                found.append(f"{module} imports {name}")
    return found


def homes() -> dict[str, str]:
    """Third-party library to the one module, or package, that may import it."""
    sentence = re.search(
        r"^A third-party library is imported in one module: (.*)$", ARCHITECTURE, re.M
    )
    assert sentence is not None
    return dict(re.findall(r"`(\w+)` in `([\w.]+)`", sentence[1]))


def test_table_is_read() -> None:
    rows = table()
    assert next(iter(rows)) == "ledger.hidden"
    assert list(rows)[-1] == "verifier.*"
    assert allowed("ledger.jcs", rows) == {"ledger.errors"}
    assert "ledger.gate" in allowed("ledger.writer", rows)
    assert "ledger.writer" in allowed("ledger.cli.*", rows)


@pytest.mark.parametrize(
    ("module", "name", "good"),
    [
        ("ledger.jcs", "ledger.errors.LedgerError", True),
        ("ledger.jcs", "ledger.envelope.parse", False),
        ("ledger.errors", "ledger.jcs", False),
        ("ledger.store.files", "ledger.store.contract.Store", True),
        ("ledger.store.files", "ledger.codec", False),
        ("ledger.gate", "ledger.writer.Ledger", False),
        ("ledger.gate", "verifier.replay", False),
        ("ledger.cli.audit", "verifier.verify", True),
        ("ledger.cli.audit", "verifier.cbor.decode", False),
        ("ledger.writer", "verifier.verify", False),
        ("verifier.checks", "ledger.codec", False),
        ("verifier.checks", "verifier.cbor", True),
        ("ledger.helpers", "ledger.errors", False),
    ],
)
def test_rule_tells_good_imports_from_bad(module: str, name: str, good: bool) -> None:
    assert (violations(module, [name], table()) == []) is good


def test_relative_imports_are_resolved() -> None:
    text = "from . import errors\nfrom ..codec import decode\nfrom .contract import Store\n"
    assert list(imported(text, "ledger.store.files", package=False)) == [
        "ledger.store.errors",
        "ledger.codec.decode",
        "ledger.store.contract.Store",
    ]


def test_imports_in_functions_count() -> None:
    assert list(imported("def f():\n    import cbor2\n", "ledger.x", package=False)) == ["cbor2"]


MODULES = [path for path in sources(*PRODUCT) if module_name(path) != "ledger"]


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_module_imports_only_what_the_table_allows(path: Path) -> None:
    assert violations(module_name(path), imports_of(path), table()) == []


def test_ledger_package_only_re_exports() -> None:
    """`ledger/__init__.py` names what is public and holds nothing of its own."""
    path = ROOT / "ledger" / "__init__.py"
    kept = (ast.Import, ast.ImportFrom, ast.If, ast.Assign, ast.AnnAssign, ast.Expr)
    body = ast.parse(path.read_text("utf-8")).body
    assert [type(node).__name__ for node in body if not isinstance(node, kept)] == ["FunctionDef"]
    outside = {name.split(".")[0] for name in imports_of(path)} - {"ledger", "__future__", "typing"}
    assert outside <= {"importlib"}


def test_every_module_of_the_table_exists() -> None:
    missing = [
        pattern
        for pattern in table()
        if not (ROOT / pattern.removesuffix(".*").replace(".", "/")).is_dir()
        and not (ROOT / f"{pattern.replace('.', '/')}.py").is_file()
    ]
    assert missing == []


@pytest.mark.parametrize("path", sources("verifier"), ids=module_name)
def test_verifier_imports_itself_and_the_standard_library(path: Path) -> None:
    tops = {name.split(".")[0] for name in imports_of(path)} - {"verifier"}
    signatures = {"cryptography"} if module_name(path) == "verifier.signature" else set()
    assert tops - set(sys.stdlib_module_names) == signatures


def test_verifier_starts_without_site_packages() -> None:
    """`-I -S` leaves nothing on the path but the standard library and the project."""
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import verifier.cli; "
        "print('ledger' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, str(ROOT)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("False\n", 0), done.stderr


def test_third_party_library_is_imported_in_one_module() -> None:
    tops = {*sys.stdlib_module_names, *PRODUCT}
    strays = []
    for path in sources("ledger"):
        for name in imports_of(path):
            library = name.split(".")[0]
            home = homes().get(library, "nowhere")
            inside = f"{module_name(path)}.".startswith(f"{home}.")
            if library not in tops and not inside:
                strays.append(f"{module_name(path)} imports {library}, at home in {home}")
    assert strays == []


def test_third_party_libraries_are_the_dependencies() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    declared = {re.match(r"[\w-]+", line)[0] for line in project["dependencies"]}  # type: ignore[index]
    assert declared == set(homes())


@pytest.mark.parametrize("library", homes())
def test_third_party_library_is_used(library: str) -> None:
    used = {name.split(".")[0] for path in sources("ledger") for name in imports_of(path)}
    assert library in used


@pytest.mark.parametrize("path", sources("fixtures"), ids=module_name)
def test_fixtures_are_made_by_a_third_program(path: Path) -> None:
    tops = {name.split(".")[0] for name in imports_of(path)}
    assert tops & set(PRODUCT) == set()


def test_no_import_hides_from_these_tests() -> None:
    """A module loaded by its name would not be seen by reading import statements.

    Readers of foreign logs and commands are loaded so, each from its own package.
    """
    outside = r"""import_module\((?!f"(?:verifier\.readers|ledger\.cli|ledger)\.)"""
    hidden = re.compile(rf"__import__|{outside}|exec\(|(?<![.\w])eval\(|runpy")
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in sources(*PRODUCT, "fixtures")
        for match in hidden.finditer(path.read_text("utf-8"))
    ]
    assert found == []


def test_nothing_is_called_a_helper() -> None:
    """Files are named by the noun they hold."""
    names = {"utils", "util", "helpers", "helper", "common", "misc", "base", "manager"}
    assert [str(p) for p in sources(*PRODUCT) if names & set(p.with_suffix("").parts)] == []
