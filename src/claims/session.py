"""Runs a page in a process of its own and brings back what it printed, drew, raised and computed.

A `Runner` starts one helper process, the page server (`claims.worker`), which imports the heavy libraries once and
forks for each page. The page talks back over a socket of its own, so that nothing it prints, closes or replaces can be
taken for a result, and whatever happens to its process, what it had finished before is kept.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import secrets
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from claims.results import BlockResult, Evaluation, Failure, Program, Result, Value, death, timeout

START_LIMIT = 300.0  # seconds the page server may take to import what it preloads
GRACE = 10.0  # seconds a killed page may take to be gone

ENVIRONMENT = {
    "COLUMNS": "80",
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
    "LC_ALL": "C.UTF-8",
    "MKL_NUM_THREADS": "1",
    "MPLBACKEND": "Agg",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONUTF8": "1",
    "PYTHONWARNINGS": "",
    "TORCHINDUCTOR_DETERMINISTIC": "1",
    "TZ": "UTC",
}


class Runner:
    """Runs programs, each in a process of its own; a context manager, safe to share between threads.

    Args:
        root: The repository; pages run with it as their working directory.
        preload: Modules to import once, before the first page. They must not lie in the repository, since a page
            would not see an edit of them.
        time_limit: Seconds that each block and each expression may take.
        output_limit: Characters that each block may print.
        fork: Whether to fork pages from one server, or to start a fresh interpreter for each.
    """

    def __init__(
        self,
        root: Path,
        preload: tuple[str, ...] = (),
        time_limit: float = 60.0,
        output_limit: int = 1_000_000,
        fork: bool = hasattr(os, "fork"),
    ) -> None:
        self.root = root.resolve()
        self.time_limit = time_limit
        self.output_limit = output_limit
        self._host: _Server | _Interpreters = (_Server if fork else _Interpreters)(self.root, preload)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Let the server import what it preloads while the caller still reads pages."""
        with contextlib.suppress(OSError):  # the first page will say so
            self._host.start()

    def close(self) -> None:
        """Stop the server and every page that still runs."""
        self._host.close()

    def run(self, program: Program, time_limit: float | None = None) -> Result:
        """Run a program to its end, or to the end of its patience. Never raises for what the page does."""
        patience = time_limit or self.time_limit
        try:
            page = self._host.launch()
        except OSError as error:
            lost = _Run(program, patience, self.output_limit)
            return lost.result(Failure("died", f"no process could be started for the page: {error}"))
        try:
            return _Run(program, patience, self.output_limit).follow(page)
        except BaseException:
            page.kill()
            raise
        finally:
            page.close()


def _environment() -> dict[str, str]:
    return {**os.environ, **ENVIRONMENT}


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-P", "-m", "claims.worker", *arguments]


class _Page:
    """The three ends of a running page that the runner holds: its messages, its output and the way to end it."""

    def __init__(self, messages: socket.socket, output: io.RawIOBase, process: subprocess.Popen | None = None) -> None:
        self.messages = messages
        self.output = output
        self.process = process
        self.pid: int | None = None

    def close(self) -> None:
        self.messages.close()
        self.output.close()

    def kill(self) -> None:
        """End the page's process and all of its group."""
        if self.process is not None:
            self.process.kill()
        elif self.pid is not None:
            for end in (os.killpg, os.kill):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    end(self.pid, signal.SIGKILL)


class _Server:
    """The page server: one process that forks for each page, started when the first page comes."""

    def __init__(self, root: Path, preload: tuple[str, ...]) -> None:
        self.root, self.preload = root, preload
        self._lock = threading.Lock()
        self._process: subprocess.Popen | None = None
        self._control: socket.socket | None = None

    def start(self) -> None:
        with self._lock:
            self._running()

    def launch(self) -> _Page:
        messages, their_messages = socket.socketpair()
        reading, writing = os.pipe()
        page = _Page(messages, os.fdopen(reading, "rb", buffering=0))
        try:
            with self._lock:
                socket.send_fds(self._running(), [b"\n"], [their_messages.fileno(), writing])
        except OSError:
            page.close()
            raise
        finally:
            their_messages.close()
            os.close(writing)
        return page

    def _running(self) -> socket.socket:
        if self._control is not None and self._process is not None and self._process.poll() is None:
            return self._control
        self._stop()
        self._control, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                _command("serve", str(theirs.fileno()), *self.preload),
                cwd=self.root,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        return self._control

    def _stop(self) -> None:
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            try:
                self._process.wait(GRACE)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._control = self._process = None

    def close(self) -> None:
        with self._lock:
            self._stop()


class _Interpreters:
    """Where there is no fork: a fresh interpreter for each page, which calls back over a local socket."""

    def __init__(self, root: Path, preload: tuple[str, ...]) -> None:
        self.root, self.preload = root, preload

    def start(self) -> None:
        """There is nothing that pages could share."""

    def launch(self) -> _Page:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.settimeout(0.2)
            port, word = listener.getsockname()[1], secrets.token_hex(16)
            process = subprocess.Popen(
                _command("page", str(port), word, *self.preload),
                cwd=self.root,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
            )
            messages = self._answer(listener, process, word.encode())
        output, theirs = socket.socketpair()
        threading.Thread(target=self._attend, args=(process, theirs), daemon=True).start()
        return _Page(messages, output.makefile("rb", buffering=0), process)

    def _answer(self, listener: socket.socket, process: subprocess.Popen, word: bytes) -> socket.socket:
        """Wait for the page to call, and hang up on anyone else."""
        deadline = time.monotonic() + START_LIMIT
        while process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(TimeoutError):
                caller, _ = listener.accept()
                caller.settimeout(GRACE)
                if caller.recv(len(word), socket.MSG_WAITALL) == word:
                    return caller
                caller.close()
        process.kill()
        raise OSError(f"{sys.executable} did not start")

    def _attend(self, process: subprocess.Popen, output: socket.socket) -> None:
        """Pass on what the page prints, since only sockets can be waited for everywhere."""
        assert process.stdout
        with output, process.stdout:
            with contextlib.suppress(OSError):
                while data := process.stdout.read(65536):
                    output.sendall(data)
            process.wait()

    def close(self) -> None:
        """Nothing outlives its page."""


class _Run:
    """One run as the runner sees it: messages and output come in, a `Result` comes out."""

    def __init__(self, program: Program, time_limit: float, output_limit: int) -> None:
        self.program, self.time_limit, self.output_limit = program, time_limit, output_limit
        self.marker = secrets.token_hex(16).encode() + b"\n"
        self.begun: list[int] = []  # blocks that ran, in order
        self.printed: list[bytes] = [b""]  # what each of them printed, the last still open
        self.blocks: dict[int, BlockResult] = {}
        self.values: dict[int, Evaluation] = {}
        self.early: dict[int, Value] = {}
        self.files: set[str] = set()
        self.reached_out = self.finished = False
        self.stopped: Failure | None = None  # why the runner ended the page
        self.exit: int | None = None
        self.flooded: int | None = None  # index into `printed` of the piece that grew too long
        self.partial = b""
        self.launched = time.monotonic()
        self.started_at = time.time()  # until the page says when its own process began
        self.deadline = self.launched + START_LIMIT

    def follow(self, page: _Page) -> Result:
        """Watch a page until it is gone, end it when it takes or prints too much, and sum up."""
        request = {
            "program": self.program.to_json(),
            "marker": self.marker.decode(),
            "time_limit": self.time_limit,
        }
        with selectors.DefaultSelector() as selector:
            selector.register(page.messages, selectors.EVENT_READ)
            selector.register(page.output, selectors.EVENT_READ)
            with contextlib.suppress(OSError):
                page.messages.settimeout(START_LIMIT)
                page.messages.sendall(json.dumps(request).encode() + b"\n")
            listening = True
            while listening:
                patience = self.deadline - time.monotonic()
                if patience <= 0:
                    if self.stopped:
                        break
                    self._stop(page, timeout(self.time_limit))
                for key, _ in selector.select(max(patience, 0)):
                    if key.fileobj is page.messages:
                        listening = self._listen(page)
                    elif not self._collect(page):
                        selector.unregister(page.output)
        if self.exit is None:
            page.kill()
        self._drain(page)
        return self.result(self.stopped or self._ending(page))

    def _stop(self, page: _Page, why: Failure) -> None:
        self.stopped = self.stopped or why
        self.deadline = time.monotonic() + GRACE
        page.kill()

    def _collect(self, page: _Page) -> bool:
        """Take what was printed; False at its end."""
        data = page.output.read(65536)
        *ended, self.printed[-1] = (self.printed[-1] + (data or b"")).split(self.marker)
        self.printed[-1:-1] = ended
        room = self.output_limit + len(self.marker)  # the open piece may end in part of a marker
        for index, piece in enumerate(self.printed[-1 - len(ended) :], len(self.printed) - 1 - len(ended)):
            limit = room if index == len(self.printed) - 1 else self.output_limit
            if self.flooded is None and len(piece) > limit and len(_text(piece)) > limit:
                self.flooded = index
                self._stop(page, Failure("output", f"printed more than {self.output_limit:,} characters"))
        return bool(data)

    def _drain(self, page: _Page) -> None:
        """Take what is left in the pipe, without waiting for strangers who may hold its other end."""
        with selectors.DefaultSelector() as selector:
            selector.register(page.output, selectors.EVENT_READ)
            while self.flooded is None and selector.select(GRACE if page.process else 0) and self._collect(page):
                pass

    def _listen(self, page: _Page) -> bool:
        """Take what the page says; False when it has gone."""
        try:
            data = page.messages.recv(65536)
        except OSError:
            data = b""
        *lines, self.partial = (self.partial + data).split(b"\n")
        for line in lines:
            with contextlib.suppress(ValueError):  # a process that was killed may leave half a line
                self._take(page, json.loads(line))
        return bool(data) and self.exit is None

    def _take(self, page: _Page, message: dict[str, Any]) -> None:
        now = time.monotonic()
        self.files |= set(message.get("files", ()))
        self.reached_out |= message.get("reached_out", False)
        if not self.stopped:
            self.deadline = now + self.time_limit + (0 if "begin" in message else GRACE)
        match message:
            case {"pid": pid, "started": started}:
                page.pid, self.started_at = pid, started
                self.deadline = self.launched + START_LIMIT
            case {"begin": index}:
                self.begun.append(index)
            case {"end": index, "result": result}:
                self.blocks[index] = BlockResult.from_json(result)
            case {"early": index, "value": dict(value)}:
                self.early[index] = Value.from_json(value)
            case {"late": index, "value": value, "failure": failure}:
                answer = value and Value.from_json(value)
                self.values[index] = Evaluation(answer, failure and Failure.from_json(failure))
                if answer and message["settled"]:
                    self.early[index] = answer
            case {"finished": True}:
                self.finished = True
            case {"exit": code}:
                self.exit = code

    def _ending(self, page: _Page) -> Failure | None:
        """Why the page is gone, if it did not come to its end."""
        if self.finished:
            return None
        if page.process is not None:
            self.exit = page.process.wait()
        if self.exit is None:
            return Failure("died", "the page server ended")
        return death(self.exit)

    def result(self, cause: Failure | None) -> Result:
        """Sum up, laying an early end at the door of the block that ran then."""
        broken = len(self.program.blocks)
        if cause:
            unfinished = (index for index in range(broken) if index not in self.blocks)
            broken = next(unfinished, broken)
            if self.flooded is not None and self.flooded < len(self.begun):
                broken = self.begun[self.flooded]
        output = {index: _text(piece) for index, piece in zip(self.begun, self.printed, strict=False)}
        blocks = []
        for index in range(len(self.program.blocks)):
            printed = output.get(index, "")[: self.output_limit]
            if index < broken:
                blocks.append(replace(self.blocks[index], output=printed))
            elif index == broken:
                blocks.append(BlockResult("failed", printed, failure=cause))
            else:
                blocks.append(BlockResult("not-run"))
        missing = cause
        if broken < len(blocks):
            missing = Failure("unbound", "the page did not run to its end")
            self.values.clear()
        evaluations = tuple(
            replace(self.values.get(index, Evaluation(None, missing)), early=self.early.get(index))
            for index in range(len(self.program.expressions))
        )
        seconds = time.monotonic() - self.launched
        files = tuple(sorted(self.files))
        result = Result(tuple(blocks), evaluations, files, seconds=seconds, started=self.started_at)
        return replace(result, cacheable=self.finished and not self.reached_out and result.clean)


def _text(printed: bytes) -> str:
    return printed.decode(errors="replace")
