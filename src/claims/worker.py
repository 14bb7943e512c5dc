"""The far side of `claims.session`: the page server, and the process in which one page runs."""

from __future__ import annotations
import __future__

import ast
import builtins
import contextlib
import functools
import gc
import hashlib
import importlib
import io
import json
import linecache
import os
import random
import select
import selectors
import signal
import socket
import symtable
import sys
import time
import types
import warnings
from collections.abc import Iterable
from dataclasses import fields, replace
from decimal import Decimal
from fractions import Fraction
from importlib import util
from pathlib import Path
from typing import Any

from claims import figures, repository, values
from claims.code import UNREADABLE, names_in
from claims.repository import Repository
from claims.results import BlockResult, Code, Failure, Program, Value, death, timeout
from claims.values import describe, without_addresses

FUTURES = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
REACHES_OUT = {
    "os.exec",
    "os.fork",
    "os.forkpty",
    "os.posix_spawn",
    "os.spawn",
    "os.system",
    "socket.connect",
    "subprocess.Popen",
}
MOST_FRAMES = 20
MOST_MESSAGE = 4000  # characters of an exception
OWN_FILES = {__file__, figures.__file__, repository.__file__, values.__file__}


def serve(control: socket.socket, preload: Iterable[str]) -> None:
    """Fork a process for each request on `control`, until it closes; report each end to its runner."""
    _adopt_orphans()
    gc.disable()  # until the fork: a collection here frees next to nothing, and would make pages copy what it touched
    prepare(preload)
    gc.freeze()
    repository = Repository(Path.cwd())
    repository.note_modules()
    awake, waker = os.pipe()
    os.set_blocking(awake, False)
    os.set_blocking(waker, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker)
    pages: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([control.fileno(), awake], [], [])
        if awake in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(awake, 4096)
            _report_ends(pages)
        if control.fileno() not in ready:
            continue
        request, descriptors, _, _ = socket.recv_fds(control, 1, 2)
        if not request:
            break
        messages, output = socket.socket(fileno=descriptors[0]), descriptors[1]
        pid = os.fork()
        if pid == 0:
            try:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for other in (control, *pages.values()):
                    other.close()
                os.close(awake)
                os.close(waker)
                os.setsid()
                _offer_to_the_kernel()
                os.dup2(output, 1)
                os.dup2(output, 2)
                os.close(output)
                gc.enable()
                run_page(messages, repository, forks=True)
            finally:
                os._exit(1)
        os.close(output)
        pages[pid] = messages
    for pid in pages:
        _end_group(pid)


def _adopt_orphans() -> None:
    """Become the parent of what pages leave behind, so that it is reaped."""
    if sys.platform == "linux":
        import ctypes

        set_child_subreaper = 36
        ctypes.CDLL(None).prctl(set_child_subreaper, 1, 0, 0, 0)


def _offer_to_the_kernel() -> None:
    """Be the first to go when memory runs out, and leave no core behind."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def _report_ends(pages: dict[int, socket.socket]) -> None:
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            if pid in pages:
                _end_group(pid)
                with pages.pop(pid) as messages:
                    _send(messages, {"exit": os.waitstatus_to_exitcode(status)})


def _send(messages: socket.socket, message: dict[str, Any]) -> None:
    """Slip in a message without waiting for the runner; the page may have died in the middle of a line."""
    with contextlib.suppress(OSError):
        messages.send(b"\n" + _line(message), socket.MSG_DONTWAIT)


def _end_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def prepare(preload: Iterable[str]) -> None:
    """Import what pages will need and settle what could differ from run to run."""
    for name in preload:
        with contextlib.suppress(ImportError):  # the page that needs it will say so at its own line
            importlib.import_module(name)
    if "matplotlib.pyplot" in sys.modules:
        figures.use_style()
        figures.warm_up()
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(0)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(0)
        torch.set_num_threads(1)
        torch.set_deterministic_debug_mode("error")  # as use_deterministic_algorithms, which imports torch's compiler


def run_page(messages: socket.socket, repository: Repository, forks: bool) -> None:
    """Read a program from the socket, run it, tell what came of it, and leave without further ado."""
    messages.sendall(_line({"pid": os.getpid(), "started": time.time()}))
    with messages.makefile("rb") as reader:
        request = json.loads(reader.readline())
    program = Program.from_json(request["program"])
    Session(program, messages, request["marker"], request["time_limit"], repository, forks).run()
    os._exit(0)


class Session:
    """One page being run. Its blocks share the namespace of a module called `__main__`."""

    def __init__(
        self,
        program: Program,
        messages: socket.socket,
        marker: str,
        time_limit: float,
        repository: Repository,
        forks: bool,
    ) -> None:
        self.program, self.messages, self.marker = program, messages, marker.encode()
        self.time_limit, self.repository, self.forks = time_limit, repository, forks
        self.pid = os.getpid()
        self.output = os.fstat(1)
        self.module = types.ModuleType("__main__")
        self.flags = 0  # the `from __future__` imports so far
        self.sources: dict[str, Code] = {}  # by the name each block is compiled under
        self.unsettled: set[str] = set()  # names bound by blocks that failed or did not run
        self.bound_from = _bound_from(program.blocks)
        self.settled = {  # expressions whose early value is their late one
            index
            for index, expression in enumerate(program.expressions)
            if expression.after >= len(program.blocks) or not names_in(expression.text)
        }
        self.evaluating = self.reached_out = False

    def run(self) -> None:
        self.module.__dict__["__builtins__"] = builtins
        sys.modules["__main__"] = self.module
        sys.argv = [self.program.path]
        self.streams = {"stdout": _stream(1), "stderr": _stream(2)}
        vars(sys).update(self.streams, __stdout__=self.streams["stdout"], __stderr__=self.streams["stderr"])
        warnings.formatwarning = self._format_warning
        drawing = any("matplotlib" in block.source for block in self.program.blocks)
        if drawing and "matplotlib" not in sys.modules and util.find_spec("matplotlib"):
            figures.use_style()
        random.seed(0)  # not before: Python seeds it anew in every forked process
        self.repository.watch_imports()
        sys.addaudithook(self._audit)
        broken = False
        for index, block in enumerate(self.program.blocks):
            if not broken:
                self._evaluate_early(index)
            result = self._check_syntax(index) if not block.run else BlockResult("not-run")
            if block.run and not broken:
                self._tell({"begin": index})
                result = self._execute(index)
            if block.run and result.status not in ("ran", "raised"):
                broken = True
                self.unsettled |= _bound_names(block.source)
            self._tell({"end": index, "result": result.to_json()})
        self._tell({"evaluating": len(self.program.expressions)})
        self._evaluate_late()
        self.repository.note_modules()
        self._tell({"finished": True, "files": self.repository.unreported(), "reached_out": self.reached_out})

    def _tell(self, message: dict[str, Any]) -> None:
        self.messages.sendall(_line(message))

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            self.repository.note(arguments[0])
        elif event in ("os.listdir", "os.scandir"):
            if sys._getframe(1).f_code.co_filename != "<frozen importlib._bootstrap_external>":
                self.repository.note(arguments[0] or ".", "/")
        elif event in REACHES_OUT and not self.evaluating:
            self.reached_out = True

    def _compile(self, index: int) -> types.CodeType:
        block = self.program.blocks[index]
        name = f"<{block.name}#{index + 1}>"
        self.sources[name] = block
        linecache.cache[name] = (len(block.source), None, block.source.splitlines(keepends=True), name)
        return compile(block.source, name, "exec", flags=self.flags, dont_inherit=True)

    def _check_syntax(self, index: int) -> BlockResult:
        try:
            with warnings.catch_warnings(action="ignore"):
                self._compile(index)
        except Exception as error:
            return BlockResult("failed", failure=self._explain(error, index, "syntax"))
        return BlockResult("static")

    def _execute(self, index: int) -> BlockResult:
        block = self.program.blocks[index]
        failure, expected = None, False
        kind = "syntax"
        try:
            code = self._compile(index)
            self.flags |= code.co_flags & FUTURES
            kind = "error"
            exec(code, self.module.__dict__)
        except BaseException as error:
            failure = self._explain(error, index, kind)
            expected = block.raises in [parent.__name__ for parent in type(error).__mro__]
        if os.getpid() != self.pid:  # a child that the block forked and did not end
            os._exit(0)
        result = self._judge(block, failure, expected)
        if result.status == "ran" and block.figures:
            try:
                result = replace(result, figures=figures.capture(self._figure_prefix(index)))
            except Exception as error:
                result = BlockResult("failed", failure=self._explain(error, None, "error"))
        figures.close()
        return self._end_output(result)

    def _judge(self, block: Code, failure: Failure | None, expected: bool) -> BlockResult:
        if block.raises is None:
            return BlockResult("failed" if failure else "ran", failure=failure)
        if failure is None:
            return BlockResult("failed", failure=Failure("error", f"expected {block.raises}, but nothing was raised"))
        if not expected:
            return BlockResult(
                "failed", failure=replace(failure, message=f"expected {block.raises}, got {failure.message}")
            )
        return BlockResult("raised", failure=failure)

    def _end_output(self, result: BlockResult) -> BlockResult:
        """Mark the end of what the block printed, and refuse one that leaves standard output unusable."""
        complaint = None
        for descriptor, (name, stream) in enumerate(self.streams.items(), 1):
            if getattr(sys, name, None) is not stream:
                complaint = f"left sys.{name} replaced"
            elif stream.closed:
                complaint = f"closed sys.{name}"
            try:
                same = os.path.samestat(os.fstat(descriptor), self.output)
            except OSError:
                same = False
            if not same:
                complaint = f"closed or replaced file descriptor {descriptor}"
            elif descriptor == 1:
                os.write(1, self.marker)
        if complaint and result.status != "failed":
            return BlockResult("failed", failure=Failure("error", complaint))
        return result

    def _figure_prefix(self, index: int) -> str:
        return f"f{hashlib.sha256(self.program.path.encode()).hexdigest()[:6]}-{index + 1}"

    def _place(self, file: str, line: int) -> tuple[str, int] | None:
        """Where a line of running code stands in the page, in a snippet or in the repository."""
        if file in OWN_FILES:
            return None
        if block := self.sources.get(file):
            return block.lines[line - 1] if 0 < line <= len(block.lines) else (block.name, line)
        relative = self.repository.relative(file)
        return (relative, line) if relative else None

    def _explain(self, error: BaseException, index: int | None, kind: str) -> Failure:
        name = type(error).__name__
        try:
            text = error.msg if isinstance(error, SyntaxError) else str(error)
            text = without_addresses(text)[:MOST_MESSAGE]
        except BaseException:
            text = "its message cannot be shown"
        block = self.program.blocks[index] if index is not None else None
        line, frames, trace = None, [], error.__traceback__
        while trace:
            file, number = trace.tb_frame.f_code.co_filename, trace.tb_lineno
            if block and self.sources.get(file) is block:
                line = number - 1
            if place := self._place(file, number):
                frames.append((*place, trace.tb_frame.f_code.co_name))
            trace = trace.tb_next
        if kind == "syntax" and isinstance(error, SyntaxError) and error.lineno:
            line = error.lineno - 1
        if len(frames) > MOST_FRAMES:
            frames[MOST_FRAMES // 2 : -MOST_FRAMES // 2] = []
        return Failure(kind, f"{name}: {text}" if text else name, line, tuple(frames), name)

    def _format_warning(
        self, message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
    ) -> str:
        place = self._place(filename, lineno)
        where = f"{place[0]}:{place[1]}: " if place else ""
        return f"{where}{category.__name__}: {message}\n"

    def _evaluate_early(self, after: int) -> None:
        """Answer the expressions that stand here, as far as their names are bound by now.

        A copy of the process is dear, so it is made only for what could do harm here and could have another value
        at the end of the page.
        """
        namespace = self.module.__dict__
        known = namespace.keys() | vars(builtins).keys()
        harmful = []
        for index, expression in enumerate(self.program.expressions):
            names = names_in(expression.text)
            if expression.after != after or index in self.settled or not names <= known:
                continue
            if _is_plain(expression.text):
                self._tell(self._answer("early", index))
                continue
            if names & self.bound_from[after] or self._changeable(names):
                harmful.append(index)
            else:
                self.settled.add(index)
        self._evaluate("early", harmful)

    def _evaluate_late(self) -> None:
        """Answer all expressions; what only reads and reckons with plain values needs no copy of the process."""
        others = []
        for index, expression in enumerate(self.program.expressions):
            if _is_plain(expression.text) and not self._changeable(names_in(expression.text)):
                self._tell(self._answer("late", index))
            else:
                others.append(index)
        self._evaluate("late", others)

    def _changeable(self, names: Iterable[str]) -> bool:
        """Whether one of the names stands for an object that may change."""
        namespace = self.module.__dict__
        return any(_may_change(namespace[name]) for name in names if name in namespace)

    def _evaluate(self, stage: str, indices: Iterable[int]) -> None:
        """Answer expressions in a copy of this process, where they cannot change the page; outlive any that hang."""
        pending = list(indices)
        if not self.forks:
            for index in pending:
                self._tell(self._answer(stage, index))
            return
        while pending:
            self.evaluating = True
            reading, writing = os.pipe()
            state = random.getstate()
            pid = os.fork()
            self.evaluating = False
            if pid == 0:
                try:
                    random.setstate(state)
                    self.messages.close()
                    _silence()
                    copy = os.getpid()
                    for index in pending:
                        answer = self._answer(stage, index)
                        if os.getpid() == copy:
                            _write(writing, _line(answer))
                finally:
                    os._exit(0)
            os.close(writing)
            failure = self._relay(reading, pid, pending)
            os.close(reading)
            if failure:
                self.reached_out = True  # what the copy opened died with it
                self._tell(self._message(stage, pending.pop(0), failure=failure))

    def _relay(self, reading: int, pid: int, pending: list[int]) -> Failure | None:
        """Pass on answers as they come, taking each from `pending`; say what became of the one that never came."""
        partial = b""
        timed_out = False
        with selectors.DefaultSelector() as selector:
            selector.register(reading, selectors.EVENT_READ)
            deadline = time.monotonic() + self.time_limit
            while pending:
                if not selector.select(max(deadline - time.monotonic(), 0)):
                    timed_out = True
                    break
                data = os.read(reading, 65536)
                if not data:
                    break
                *lines, partial = (partial + data).split(b"\n")
                for line in lines:
                    self.messages.sendall(line + b"\n")
                    pending.pop(0)
                    deadline = time.monotonic() + self.time_limit
        if pending:
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        if not pending:
            return None
        return timeout(self.time_limit) if timed_out else death(os.waitstatus_to_exitcode(status))

    def _message(self, stage: str, index: int, value: Value | None = None, failure: Failure | None = None) -> dict:
        return {
            stage: index,
            "value": value and value.to_json(),
            "failure": failure and failure.to_json(),
            "settled": index in self.settled,
            "files": self.repository.unreported(),
            "reached_out": self.reached_out,
        }

    def _answer(self, stage: str, index: int) -> dict[str, Any]:
        value = failure = None
        text = self.program.expressions[index].text.strip()
        names = names_in(text)
        if unsettled := sorted(names & self.unsettled):
            failure = Failure("unbound", f"{unsettled[0]} is bound in a block that did not run to its end")
            return self._message(stage, index, failure=failure)
        kind = "syntax"
        try:
            with warnings.catch_warnings(action="ignore"):
                code = compile(text, "<expression>", "eval", flags=self.flags, dont_inherit=True)
                kind = "error"
                value = describe(eval(code, dict(self.module.__dict__)))
        except BaseException as error:
            if isinstance(error, NameError) and error.name in names:
                kind = "unbound"
            failure = self._explain(error, None, kind)
        return self._message(stage, index, value, failure)


def _stream(descriptor: int) -> io.TextIOWrapper:
    """Unbuffered, so that order is kept and nothing is lost when the process dies; closing it leaves the descriptor."""
    raw = io.FileIO(descriptor, "w", closefd=False)
    return io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", newline="\n", write_through=True)  # type: ignore[arg-type]


def _silence() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"


def _bound_names(source: str) -> set[str]:
    """The names that running a block would bind in the page's namespace, its functions' `global` ones included."""
    try:
        tables = [symtable.symtable(source, "<block>", "exec")]
    except UNREADABLE:
        return set()
    names = set()
    for table in tables:
        tables.extend(table.get_children())
        for symbol in table.get_symbols():
            bound = symbol.is_assigned() or symbol.is_imported()
            if bound and (table.get_type() == "module" or symbol.is_declared_global()):
                names.add(symbol.get_name())
    return names


def _bound_from(blocks: tuple[Code, ...]) -> list[set[str]]:
    """For each block, the names that it and those below it bind."""
    bound: list[set[str]] = [set()]
    for block in reversed(blocks):
        bound.insert(0, bound[0] | (_bound_names(block.source) if block.run else set()))
    return bound


def _may_change(value: object) -> bool:
    """Whether an object could answer otherwise later on under the same name; numbers and library code do not."""
    if value is None or isinstance(value, (int, float, complex, str, Fraction, Decimal, types.ModuleType)):
        return False
    if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)):
        return value.__module__ == "__main__"
    if isinstance(value, tuple):
        return any(map(_may_change, value))
    dataclass = getattr(value, "__dataclass_params__", None)
    if dataclass and dataclass.frozen and type(value).__module__ != "__main__":
        return any(_may_change(getattr(value, field.name)) for field in fields(value))  # type: ignore[arg-type]
    return True


PLAIN = (
    *(ast.Expression, ast.Constant, ast.Name, ast.Load, ast.Attribute, ast.Subscript, ast.Slice, ast.Tuple, ast.List),
    *(ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod),
    *(ast.UnaryOp, ast.unaryop, ast.Compare, ast.cmpop, ast.BoolOp, ast.boolop, ast.IfExp),
)


@functools.cache
def _is_plain(expression: str) -> bool:
    """Whether an expression only reads and reckons: no call that could change something or take for ever."""
    try:
        return all(isinstance(node, PLAIN) for node in ast.walk(ast.parse(expression.strip(), mode="eval")))
    except UNREADABLE:
        return False


def main(arguments: list[str]) -> None:
    match arguments:
        case ["serve", descriptor, *preload]:
            serve(socket.socket(fileno=int(descriptor)), preload)
        case ["page", port, word, *preload]:
            messages = socket.create_connection(("127.0.0.1", int(port)))
            messages.sendall(word.encode())
            os.dup2(1, 2)
            prepare(preload)
            run_page(messages, Repository(Path.cwd()), forks=False)


if __name__ == "__main__":
    main(sys.argv[1:])
