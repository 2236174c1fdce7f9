"""Find calls that could change the world in Python source, without running it.

`effects` walks the syntax tree of one module and returns every mention (not only calls, since a function can be
passed on) of something that writes, renames, removes, locks, starts a process, or loads code by name:

1. names are resolved through the module's imports, so aliases do not hide anything;
2. a mention of a forbidden dotted name, of a write flag for `os.open`, or of a forbidden builtin is an effect;
3. so is a method whose name only writers have (`write_text`, `unlink`, …) on any object, and `open` in any spelling
   with a mode that is not a literal reading mode; in modules that import the Docker SDK also its changing methods;
4. so are ways around this: `getattr` on a module, `os.open` with flags that are not names, `sqlite3.connect` to
   anything but memory without `mode=ro`.

It does not see what a C library does on its own; the system-call trace in the other boundary tests does.
"""

import ast
from pathlib import Path
from typing import NamedTuple


def words(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


OS_EFFECTS = words(
    "abort chdir chflags chmod chown chroot copy_file_range fchdir fchmod fchown fdatasync fork forkpty fsync ftruncate "
    "kill killpg lchflags lchmod lchown link lockf makedirs memfd_create mkdir mkfifo mknod mount nice "
    "openpty popen posix_fallocate posix_spawn posix_spawnp putenv pwrite pwritev remove removedirs "
    "removexattr rename renames replace rmdir sendfile setegid seteuid setgid setgroups setpriority setregid "
    "setresgid setresuid setreuid setsid setuid setxattr splice symlink sync system truncate umask unlink "
    "unsetenv unshare utime write writev "
    "execl execle execlp execlpe execv execve execvp execvpe "
    "spawnl spawnle spawnlp spawnlpe spawnv spawnve spawnvp spawnvpe"
)
WRITE_FLAGS = words("O_WRONLY O_RDWR O_CREAT O_TRUNC O_APPEND O_EXCL O_TMPFILE")
FORBIDDEN_MODULES = words(
    "subprocess tempfile shutil importlib ctypes cffi pty signal runpy code codeop imp pkgutil zipimport mmap "
    "marshal pickle shelve dbm ftplib smtplib urllib.request http.client xmlrpc"
)
ALLOWED_PARTS = frozenset({"shutil.get_terminal_size", "shutil.which"})
FORBIDDEN_NAMES = frozenset(
    {f"os.{name}" for name in OS_EFFECTS}
    | {f"os.{name}" for name in WRITE_FLAGS}
    | {f"posix.{name}" for name in OS_EFFECTS}
    | {
        "fcntl.flock",
        "fcntl.lockf",
        "io.FileIO",
        "_io.FileIO",
        "codecs.open",
        "sys.modules",
        "socket.socket.bind",
    }
    | {f"fcntl.{name}" for name in ("F_SETLK", "F_SETLKW", "F_OFD_SETLK", "F_OFD_SETLKW", "F_SETLEASE")}
    | {"multiprocessing.Process", "os.startfile", "builtins.open", "builtins.exec", "builtins.eval"}
)
FORBIDDEN_BUILTINS = frozenset(
    {"eval", "exec", "compile", "__import__", "globals", "vars", "breakpoint", "input"}
)
WRITER_METHODS = words(
    "write_text write_bytes unlink mkdir rmdir touch rename symlink_to hardlink_to link_to chmod lchmod "
    "truncate writelines removedirs makedirs bind listen executescript commit"
)
DOCKER_WRITERS = words(
    "remove kill stop start restart create run pull push prune exec_run put_archive pause unpause update wait attach "
    "build tag load login post put delete _post _put _delete remove_container create_container"
)
"""Methods that change a daemon's world; looked for in modules that import the SDK."""
READING_MODES = frozenset({"r", "rb", "br", "rt", "tr"})


class Effect(NamedTuple):
    """One mention of something that could change the world: line, and what it is."""

    line: int
    what: str


def effects(source: str) -> list[Effect]:
    """Every effect that the text of one module mentions, in order of lines."""
    finder = _Finder(source)
    finder.visit(ast.parse(source))
    return sorted(set(finder.found))


def effects_of(path: Path) -> list[Effect]:
    """`effects` of a file."""
    return effects(path.read_text("utf-8"))


class _Finder(ast.NodeVisitor):
    def __init__(self, source: str) -> None:
        self.found: list[Effect] = []
        self.names: dict[str, str] = {}
        self.modules: set[str] = set()
        self.writers = WRITER_METHODS
        self.source = source

    def note(self, node: ast.AST, what: str) -> None:
        self.found.append(Effect(getattr(node, "lineno", 0), what))

    def dotted(self, node: ast.AST) -> str | None:
        """The full dotted name of an expression whose root was imported, else None."""
        if isinstance(node, ast.Name):
            return self.names.get(node.id)
        if isinstance(node, ast.Attribute):
            root = self.dotted(node.value)
            return f"{root}.{node.attr}" if root else None
        return None

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            top = alias.name.split(".")[0]
            self.names[alias.asname or top] = alias.name if alias.asname else top
            self.modules.add(alias.asname or top)
            if top == "docker":
                self.writers = WRITER_METHODS | DOCKER_WRITERS
            self.module(node, alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            full = f"{node.module}.{alias.name}"
            self.names[alias.asname or alias.name] = full
            if full.startswith("docker."):
                self.writers = WRITER_METHODS | DOCKER_WRITERS
            if alias.name == "*":
                self.note(node, f"{node.module}.*")
            elif full not in ALLOWED_PARTS:
                self.module(node, full)
                self.name(node, full)

    def module(self, node: ast.AST, full: str) -> None:
        parts = full.split(".")
        for length in range(1, len(parts) + 1):
            if ".".join(parts[:length]) in FORBIDDEN_MODULES:
                # `import shutil` alone is told apart from its use: each use is looked at by itself.
                if full != "shutil":
                    self.note(node, full)
                return

    def name(self, node: ast.AST, full: str) -> None:
        if full in FORBIDDEN_NAMES or (full.startswith("shutil.") and full not in ALLOWED_PARTS):
            self.note(node, full)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        full = self.dotted(node)
        if full:
            self.name(node, full)
        elif node.attr in self.writers:
            self.note(node, f".{node.attr}")
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            full = self.names.get(node.id)
            if full:
                self.name(node, full)
            elif node.id in FORBIDDEN_BUILTINS:
                self.note(node, node.id)

    def visit_Call(self, node: ast.Call) -> None:
        full = self.dotted(node.func)
        bare = node.func.id if isinstance(node.func, ast.Name) else None
        method = node.func.attr if isinstance(node.func, ast.Attribute) else None
        if full == "os.open":
            self.flags(node)
        elif full in ("os.fdopen", "io.open", "gzip.open", "bz2.open", "lzma.open") or bare == "open":
            self.mode(node, 1)
        elif full == "sqlite3.connect":
            self.database(node)
        elif bare in ("getattr", "setattr", "delattr") and node.args and isinstance(node.args[0], ast.Name):
            if node.args[0].id in self.modules:
                self.note(node, f"{bare} on {node.args[0].id}")
        elif full is None and method == "open":
            self.mode(node, 0)
        elif full is None and method == "replace" and len(node.args) == 1 and not node.keywords:
            self.note(node, ".replace(target)")
        self.generic_visit(node)

    def mode(self, node: ast.Call, position: int) -> None:
        given = [keyword.value for keyword in node.keywords if keyword.arg == "mode"]
        given += node.args[position : position + 1]
        if any(not isinstance(value, ast.Constant) or value.value not in READING_MODES for value in given):
            self.note(node, "open for writing, or with a mode that is not a literal")

    def flags(self, node: ast.Call) -> None:
        """Flags must be spelled with names, so that the search for write flags sees all of them."""
        given = [keyword.value for keyword in node.keywords if keyword.arg == "flags"] + node.args[1:2]
        for value in given:
            if any(isinstance(part, ast.Constant | ast.Call) for part in ast.walk(value)):
                self.note(node, "os.open with flags that are not names")

    def database(self, node: ast.Call) -> None:
        first = node.args[0] if node.args else None
        if isinstance(first, ast.Constant) and first.value == ":memory:":
            return
        uri = any(
            keyword.arg == "uri" and isinstance(keyword.value, ast.Constant) and keyword.value.value is True
            for keyword in node.keywords
        )
        if not uri or "mode=ro" not in self.source:
            self.note(node, "sqlite3.connect without mode=ro")


def imported(source: str) -> set[str]:
    """The top-level names of everything that a module imports, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found
