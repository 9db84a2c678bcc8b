"""Joins the sources of the browser verifier into one page: `python verifier/browser/build.py`.

`--check` writes nothing and exits 1 if the page is not what the sources give.
Each entry, `worker.mjs` and `page.mjs`, becomes one script: each module that it needs is a function
that is called once and gives what the module exports. The result has no other input than the
sources, so it is the same on every machine.
"""

from __future__ import annotations

import base64
import hashlib
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = HERE / "src"
PAGE = HERE / "verify.html"
_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./(\w+)\.mjs";$', re.M)
_EXPORT = re.compile(r"^export ((?:async )?(?:function\*?|class|const) (\w+))", re.M)
_POLICY = (
    "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; "
    "worker-src blob:; connect-src 'none'; base-uri 'none'; form-action 'none'; "
    "require-trusted-types-for 'script'; trusted-types cardchain-worker"
)


class BuildFailed(Exception):
    """The sources do not fit together; the message says where."""


def page() -> str:
    """Give the text of the page."""
    script, style = joined("page"), _source("page.css")
    policy = _POLICY.format(script=_digest(script), style=_digest(style))
    parts = {"policy": policy, "style": style, "engine": joined("worker"), "page": script}
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _source("page.html"))


def joined(entry: str) -> str:
    """Give one script of a module and everything that it imports, each once."""
    text = '"use strict";\n' + "".join(_module(name) for name in _in_order(entry, [], ()))
    if "</" in text or "<!--" in text:
        raise BuildFailed(f"{entry}: markup in a script would end it early")
    return text


def _in_order(name: str, done: list[str], above: tuple[str, ...]) -> list[str]:
    if name in above:
        raise BuildFailed(f"{name} imports itself, by way of {' and '.join(above)}")
    for _, imported in _IMPORT.findall(_source(f"{name}.mjs")):
        if imported not in done:
            _in_order(imported, done, (*above, name))
    done.append(name)
    return done


def _module(name: str) -> str:
    source = _source(f"{name}.mjs")
    exports = ", ".join(exported for _, exported in _EXPORT.findall(source))
    body = _EXPORT.sub(r"\1", _IMPORT.sub(r"const \1 = $\2;", source))
    if re.search(r"^(?:import|export)\b", body, re.M):
        raise BuildFailed(f"{name}: an import or export in a form that is not joined")
    return f"const ${name} = (() => {{\n{body}return {{ {exports} }};\n}})();\n"


def _source(name: str) -> str:
    return (SOURCES / name).read_text("utf-8")


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def main(arguments: list[str]) -> int:
    """Write the page, or compare it; 1 where it is not up to date."""
    built = page().encode()
    if arguments == ["--check"]:
        if PAGE.exists() and PAGE.read_bytes() == built:
            return 0
        print("verify.html is not up to date: python verifier/browser/build.py", file=sys.stderr)
        return 1
    PAGE.write_bytes(built)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
