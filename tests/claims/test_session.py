"""Pages that run, and pages that do everything a page should not."""

import os
import py_compile
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from claims.results import Code, Expression, Failure, Program, Result
from claims.session import Runner

PAGE = "docs/page.md"


def code(source: str, line: int = 1, **options) -> Code:
    lines = tuple((PAGE, line + index) for index in range(len(source.splitlines())))
    return Code(source, PAGE, lines, **options)


def program(*blocks: str | Code, expressions: tuple[tuple[str, int], ...] = (), path: str = PAGE) -> Program:
    blocks = tuple(code(block) if isinstance(block, str) else block for block in blocks)
    return Program(path, blocks, tuple(Expression(text, after) for text, after in expressions))


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("repository")
    (root / "src").mkdir()
    (root / "src" / "widths.py").write_text("WIDTH = 768\n\n\ndef fail():\n    raise LookupError('no such width')\n")
    (root / "data").mkdir()
    (root / "data" / "tokens.txt").write_text("one two three")
    return root


@pytest.fixture(scope="module")
def runner(root):
    with Runner(root, ("torch", "matplotlib.pyplot", "sympy", "no_such_module")) as runner:
        yield runner


@pytest.fixture(scope="module")
def strict(root):
    """A runner with little patience, for what never ends."""
    with Runner(root, time_limit=1.0) as runner:
        yield runner


@pytest.fixture(scope="module")
def narrow(root):
    """A runner with little room, for output that never ends."""
    with Runner(root, output_limit=1000) as runner:
        yield runner


@pytest.fixture(scope="module")
def forkless(root):
    with Runner(root, time_limit=20.0, output_limit=1000, fork=False) as runner:
        yield runner


def statuses(result: Result) -> list[str]:
    return [block.status for block in result.blocks]


def only_failure(result: Result) -> Failure:
    failures = [block.failure for block in result.blocks if block.failure]
    assert len(failures) == 1
    return failures[0]


def values(result: Result) -> list[tuple[str, str] | str]:
    return [
        (evaluation.value.kind, evaluation.value.text) if evaluation.value else evaluation.failure.kind
        for evaluation in result.evaluations
    ]


# Pages that behave


def test_blocks_share_one_namespace_and_keep_their_own_output(runner):
    result = runner.run(program("heads = 12\nprint('first')", "print(heads * 64)", "heads"))
    assert statuses(result) == ["ran", "ran", "ran"]
    assert [block.output for block in result.blocks] == ["first\n", "768\n", ""]
    assert result.clean and result.cacheable


def test_output_comes_in_order_from_wherever_it_is_written(runner):
    source = """
import os, subprocess, sys
print("a", end=" ")
print("b", end=" ", file=sys.stderr)
os.write(1, b"c ")
subprocess.run(["printf", "d "])
print("é", flush=False)
"""
    result = runner.run(program(source))
    assert result.blocks[0].output == "a b c d é\n"
    assert result.clean and not result.cacheable  # it started another process


def test_a_page_is_the_main_module_and_its_classes_pickle(runner):
    source = """
import dataclasses, pickle
@dataclasses.dataclass
class Shape:
    width: int
assert pickle.loads(pickle.dumps(Shape(7))) == Shape(7)
if __name__ == "__main__":
    print(Shape(5))
"""
    assert runner.run(program(source)).blocks[0].output == "Shape(width=5)\n"


def test_future_imports_reach_later_blocks(runner):
    result = runner.run(program("from __future__ import annotations", "def f(x: Undefined): pass", "f"))
    assert statuses(result) == ["ran", "ran", "ran"]


def test_static_blocks_are_compiled_and_not_run(runner):
    result = runner.run(program(code("undefined()", run=False), code("1 +", run=False), "print('on')"))
    assert statuses(result) == ["static", "failed", "ran"]
    assert result.blocks[1].failure == Failure("syntax", "SyntaxError: invalid syntax", 0, (), "SyntaxError")


def test_warnings_name_the_page_and_no_path_of_the_machine(runner):
    result = runner.run(program(code("import warnings\nwarnings.warn('odd width')", line=30)))
    assert result.blocks[0].output == f"{PAGE}:31: UserWarning: odd width\n"


def test_values_at_the_end_and_at_their_own_place(runner):
    result = runner.run(
        program("x = 3", "x = 4", expressions=(("x", 0), ("x", 1), ("x", 2), ("x / 3", 1), ("2 ** 10", 0)))
    )
    assert [e.value.text for e in result.evaluations] == ["4", "4", "4", (4 / 3).hex(), "1024"]
    assert [e.early and e.early.text for e in result.evaluations] == [None, "3", "4", (1.0).hex(), "1024"]


def test_expressions_change_nothing(runner):
    blocks = ("import random, torch\nn = 1\nitems = iter([5, 6])", "print(random.random(), torch.rand(1), next(items))")
    asking = (("(n := 2)", 1), ("n", 1), ("next(items)", 1), ("random.random()", 1), ("torch.rand(1)", 1))
    quiet, asked = runner.run(program(*blocks)), runner.run(program(*blocks, expressions=asking))
    assert asked.blocks == quiet.blocks
    assert asked.evaluations[1].value.text == "1"
    assert (asked.evaluations[2].early.text, asked.evaluations[2].value.text) == ("5", "6")


@pytest.mark.parametrize(
    ("text", "kind", "exact", "shown"),
    [
        ("768 * 2048", "int", "1572864", "1,572,864"),
        ("Fraction(6, 4)", "fraction", "3/2", "3/2"),
        ("Fraction(6, 3)", "int", "2", "2"),
        ("0.1", "float", (0.1).hex(), "0.1"),
        ("float('inf')", "float", "inf", "inf"),
        ("Decimal('1.50')", "decimal", "1.50", "1.50"),
        ("1 + 2j", "complex", "(1+2j)", "(1+2j)"),
        ("True", "bool", "True", "True"),
        ("None", "none", "None", "None"),
        ("'RMSNorm'", "text", "RMSNorm", "RMSNorm"),
        ("[1000, (2.5,)]", "tuple", "(1000, (0x1.4000000000000p+1,))", "(1,000, (2.5,))"),
        ("torch.zeros(3, 5).shape", "tuple", "(3, 5)", "(3, 5)"),
        ("torch.tensor(7)", "int", "7", "7"),
        ("torch.tensor(0.1)", "float", "0x1.99999a0000000p-4", "0.10000000149011612"),
        ("torch.tensor([7])", "tuple", "(7,)", "(7,)"),
        ("torch.tensor([True, False])", "tuple", "(True, False)", "(True, False)"),
        ("torch.bfloat16", "text", "bfloat16", "bfloat16"),
        ("torch.device('meta')", "text", "meta", "meta"),
        ("numpy.float32(0.5)", "float", (0.5).hex(), "0.5"),
        ("numpy.longdouble(0.5)", "float", (0.5).hex(), "0.5"),
        ("numpy.dtype('int8')", "text", "int8", "int8"),
        ("numpy.arange(3)", "tuple", "(0, 1, 2)", "(0, 1, 2)"),
        ("sympy.Integer(7)", "int", "7", "7"),
        ("sympy.Rational(8, 3)", "fraction", "8/3", "8/3"),
        ("sympy.Float(0.1)", "float", (0.1).hex(), "0.1"),
        ("sympy.sqrt(2)", "decimal", "1.41421356237309504880168872421", "1.41421356237309504880168872421"),
        ("(sympy.sqrt(2) + 1) * (sympy.sqrt(2) - 1)", "int", "1", "1"),
        ("sympy.oo", "float", "inf", "inf"),
        ("sympy.true", "bool", "True", "True"),
        ("2 * sympy.Symbol('d')", "expr", "Mul(Integer(2), Symbol('d'))", "2*d"),
        ("sympy.Matrix([[1, 2]])", "tuple", "((1, 2),)", "((1, 2),)"),
        ("Decimal", "text", "Decimal", "Decimal"),
        ("plain", "text", "plain", "plain"),
        ("object()", "text", "<object object>", "<object object>"),
        ("datetime.date(2024, 4, 18)", "text", "2024-04-18", "2024-04-18"),
        ("indexed", "int", "12", "12"),
        ("floating", "float", (2.5).hex(), "2.5"),
    ],
)
def test_kinds_of_values(runner, text, kind, exact, shown):
    setting = """
import datetime, numpy, sympy, torch
from decimal import Decimal
from fractions import Fraction
def plain(): pass
class Indexed:
    def __index__(self): return 12
class Floating:
    def __float__(self): return 2.5
indexed, floating = Indexed(), Floating()
"""
    value = runner.run(program(setting, expressions=((text, 1),))).evaluations[0].value
    assert (value.kind, value.text, value.shown) == (kind, exact, shown)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("10 ** 5000", "ValueError: Exceeds the limit (4300 digits) for integer string conversion"),
        ("'x' * 100_001", "ValueError: the value is a text of 100,001 characters; at most 100,000 can be compared"),
        ("[0] * 10_001", "ValueError: the value has 10,001 items; at most 10,000 can be compared"),
        ("torch.zeros(101, 100)", "ValueError: the value has 10,100 elements; at most 10,000 can be compared"),
    ],
)
def test_values_that_are_too_large(runner, text, message):
    failure = runner.run(program("import torch", expressions=((text, 1),))).evaluations[0].failure
    assert failure.message.startswith(message)


def test_two_runs_give_the_same(runner):
    page = program(
        "import random, torch, numpy\nprint(random.random(), numpy.random.rand(), torch.randn(3), set('abcdef'))",
        "import matplotlib.pyplot as plt\nplt.plot(torch.randn(9))",
        expressions=(("torch.rand(1)", 2),),
    )
    first, second = (replace(runner.run(page), seconds=0, started=0) for _ in range(2))
    assert first == second
    assert "matplotlib" not in first.blocks[1].figures[0]


def test_torch_is_deterministic_and_its_compiler_is_left_out(runner):
    source = "import os, sys, torch\nprint(torch.get_deterministic_debug_mode(), 'torch._inductor' in sys.modules)"
    result = runner.run(program(source, "import torch._inductor.config as config\nprint(config.deterministic)"))
    assert [block.output for block in result.blocks] == ["2 False\n", "True\n"]


def test_what_only_reads_plain_values_is_evaluated_in_the_page_itself(runner):
    blocks = ("import os\nwidth, sizes = 12, (3, 4)\nclass Own:\n    @property\n    def pid(self): return os.getpid()",)
    asked = (("2 * width", 1), ("sizes[1]", 1), ("os.name", 1), ("Own().pid", 1), ("own.pid", 2))
    result = runner.run(program(*blocks, "own = Own()\nprint(os.getpid())", expressions=asked))
    values = [evaluation.value.text for evaluation in result.evaluations]
    assert values[:3] == ["24", "4", "posix"]
    assert int(result.blocks[1].output) not in map(int, values[3:])


def test_pages_do_not_see_each_other(runner):
    runner.run(program("import torch\nbehind = 1\ntorch.behind = 1\ntorch.set_default_dtype(torch.float64)"))
    result = runner.run(
        program("import torch\nprint('behind' in globals(), hasattr(torch, 'behind'), torch.ones(1).dtype)")
    )
    assert result.blocks[0].output == "False False torch.float32\n"


def test_figures_are_captured_after_each_block_and_closed(runner):
    result = runner.run(
        program(
            "import matplotlib.pyplot as plt\nplt.figure(); plt.plot([1, 2]); plt.figure(); plt.plot([2, 1])",
            "print(plt.get_fignums())\nplt.plot([1, 3])",
            code("plt.plot([1, 4])", figures=False),
            "print(plt.get_fignums())",
        )
    )
    assert [len(block.figures) for block in result.blocks] == [2, 1, 0, 0]
    assert (result.blocks[1].output, result.blocks[3].output) == ("[]\n", "[]\n")
    assert len({figure for block in result.blocks for figure in block.figures}) == 3


def test_a_figure_that_cannot_be_drawn_fails_its_block(runner):
    result = runner.run(program("import matplotlib.pyplot as plt\nplt.title('$\\\\nonsense$')", "1"))
    assert statuses(result) == ["failed", "not-run"]
    assert only_failure(result).exception == "ValueError"


def test_a_page_runs_in_the_root_and_imports_only_what_is_installed(runner, root):
    result = runner.run(program("import os, sys\nprint(os.getcwd())\nprint(os.getcwd() in sys.path, '' in sys.path)"))
    assert result.blocks[0].output == f"{root}\nFalse False\n"


def test_files_are_those_of_the_repository_that_were_opened(runner, root):
    source = (
        "import sys, os\nsys.path.insert(0, 'src')\nimport widths\nopen('data/tokens.txt').read()\nos.listdir('data')"
    )
    expected = ("data/", "data/tokens.txt", "src/widths.py")
    assert runner.run(program(source)).files == expected
    os.utime(root / "src" / "widths.py", (1_700_000_000, 1_700_000_000))
    py_compile.compile(str(root / "src" / "widths.py"))
    assert runner.run(program(source)).files == expected  # by way of the .pyc


def test_what_an_expression_opens_or_starts_counts_too(runner):
    result = runner.run(program("def read(): return open('data/tokens.txt').read()", expressions=(("read()", 1),)))
    assert (result.files, result.cacheable) == (("data/tokens.txt",), True)
    result = runner.run(program("import os", "", expressions=(("os.system('true')", 1),)))
    assert result.clean and not result.cacheable


def test_a_file_that_is_not_there_yet_counts(runner):
    source = "try:\n    open('data/later.txt')\nexcept FileNotFoundError:\n    pass"
    assert runner.run(program(source)).files == ("data/later.txt",)


def test_an_edit_within_the_same_second_is_seen(runner, root):
    module = root / "src" / "edited.py"
    page = program("import sys\nsys.path.insert(0, 'src')\nimport edited\nprint(edited.WIDTH)")
    printed = []
    for width in (512, 768, 640):
        module.write_text(f"WIDTH = {width}\n")
        os.utime(module, (1_700_000_000, 1_700_000_000))
        printed.append(runner.run(page).blocks[0].output)
        compiled = py_compile.compile(str(module))
        os.utime(compiled, (1_700_000_000, 1_700_000_000))
    assert printed == ["512\n", "768\n", "640\n"]


def test_threads_share_a_runner(runner):
    pages = [program(f"n = {n}\nprint(n)", expressions=(("n * n", 1),), path=f"docs/{n}.md") for n in range(12)]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(runner.run, pages))
    assert [result.blocks[0].output for result in results] == [f"{n}\n" for n in range(12)]
    assert [result.evaluations[0].value.text for result in results] == [str(n * n) for n in range(12)]


def test_results_survive_json(runner):
    result = runner.run(program("x = [1, 2.5]", "1 / 0", expressions=(("x", 1), ("y", 1), ("x[0]", 0))))
    assert Result.from_json(result.to_json()) == result
    page = program(code("1", raises="KeyError"), expressions=(("x", 1),))
    assert Program.from_json(page.to_json()) == page


# Blocks that raise


def test_a_failure_points_at_its_line_and_stops_the_page(runner):
    result = runner.run(program("x = 1", code("y = 2\nz = x / 0\n", line=20), "print('never')"))
    assert statuses(result) == ["ran", "failed", "not-run"]
    assert only_failure(result) == Failure(
        "error", "ZeroDivisionError: division by zero", 1, ((PAGE, 21, "<module>"),), "ZeroDivisionError"
    )
    assert not result.clean and not result.cacheable


def test_frames_lie_in_the_page_the_snippet_and_the_repository(runner):
    lines = ((PAGE, 4), ("snippets/a/b.py", 1), ("snippets/a/b.py", 2), ("snippets/a/b.py", 3))
    source = "import sys; sys.path.insert(0, 'src')\nimport widths, json\ndef inner(): widths.fail()\ninner()\n"
    failure = only_failure(runner.run(program(Code(source, PAGE, lines))))
    assert failure.frames == (
        ("snippets/a/b.py", 3, "<module>"),
        ("snippets/a/b.py", 2, "inner"),
        ("src/widths.py", 5, "fail"),
    )
    assert failure.line == 2
    assert failure.message == "LookupError: no such width"


def test_syntax_errors_point_at_their_line(runner):
    failure = only_failure(runner.run(program("x = 1\ny = = 2\n")))
    assert (failure.kind, failure.message, failure.line) == ("syntax", "SyntaxError: invalid syntax", 1)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import sys\nsys.exit(0)", "SystemExit: 0"),
        ("exit()", "SystemExit: None"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("def f(): f()\nf()", "RecursionError: maximum recursion depth exceeded"),
        ("input()", "EOFError: EOF when reading a line"),
        ("x = '\0'", "source code string cannot contain null bytes"),
        ("class E(Exception):\n    def __str__(self): raise ValueError\nraise E", "E: its message cannot be shown"),
        ("raise ValueError(object())", "ValueError: <object object>"),
        ("raise ValueError('x' * 10**7)", "ValueError: xxxx"),
        ("import sys\nsys.stdout.close()", "closed sys.stdout"),
        ("import io, sys\nsys.stdout = io.StringIO()\nprint('x')", "left sys.stdout replaced"),
        ("import sys\ndel sys.stderr", "left sys.stderr replaced"),
        ("import os\nos.close(1)", "closed or replaced file descriptor 1"),
        ("import os\nos.dup2(os.open(os.devnull, os.O_WRONLY), 2)", "closed or replaced file descriptor 2"),
    ],
)
def test_blocks_that_fail(runner, source, message):
    result = runner.run(program("print('before')", source, "print('after')"))
    assert statuses(result) == ["ran", "failed", "not-run"]
    assert result.blocks[0].output == "before\n"
    assert message in only_failure(result).message
    assert len(only_failure(result).message) < 10_000
    assert len(only_failure(result).frames) <= 20


def test_an_expected_exception_is_no_failure(runner):
    result = runner.run(
        program(
            code("raise ValueError('width must be positive')", raises="ValueError"),
            code("{}['x']", raises="LookupError"),
            code("x = (", raises="SyntaxError"),
            "print('on')",
        )
    )
    assert statuses(result) == ["raised", "raised", "raised", "ran"]
    assert result.blocks[0].failure.message == "ValueError: width must be positive"
    assert result.clean and result.cacheable


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("x = 1", "expected ValueError, but nothing was raised"),
        ("{}['x']", "expected ValueError, got KeyError: 'x'"),
    ],
)
def test_an_exception_that_does_not_come_is_a_failure(runner, source, message):
    result = runner.run(program(code(source, raises="ValueError"), "1"))
    assert statuses(result) == ["failed", "not-run"]
    assert only_failure(result).message == message


def test_what_unfinished_blocks_bind_is_unbound(runner):
    result = runner.run(
        program(
            "a = b = c = 1",
            "a = 2\n1 / 0",
            "import math as b",
            expressions=(("a", 1), ("b", 1), ("c", 1), ("d", 3), ("[c for c in (a,)]", 3)),
        )
    )
    assert values(result) == ["unbound", "unbound", ("int", "1"), "unbound", "unbound"]
    assert result.evaluations[0].failure.message == "a is bound in a block that did not run to its end"
    assert result.evaluations[3].failure.message == "NameError: name 'd' is not defined"


# Pages that die


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import os\nos._exit(0)", "exit code 0"),
        ("import os\nos._exit(3)", "exit code 3"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "killed by SIGKILL"),
        ("import ctypes\nctypes.string_at(0)", "killed by SIGSEGV"),
        ("import os, time\nos.closerange(3, 4096)", "exit code 1"),
    ],
)
def test_a_death_is_laid_at_its_block(runner, source, message):
    result = runner.run(program("print('before')", f"print('last words')\n{source}", "1", expressions=(("2 + 2", 0),)))
    assert statuses(result) == ["ran", "failed", "not-run"]
    assert [block.output for block in result.blocks] == ["before\n", "last words\n", ""]
    assert (only_failure(result).kind, only_failure(result).message) == ("died", message)
    assert values(result) == ["unbound"]
    assert runner.run(program("print('next')")).clean


def test_blocks_without_end_are_ended_and_other_pages_go_on(strict):
    endless = (
        "while True: pass",
        "import time\ntime.sleep(10 ** 6)",
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
        "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nsignal.pause()",
        "import subprocess\nsubprocess.run(['sleep', '1000000'])",
        "class E(Exception):\n    def __str__(self):\n        while True: pass\nraise E",
    )
    with ThreadPoolExecutor(len(endless)) as pool:
        pages = [program("print('before')", f"print('going on')\n{source}", "1") for source in endless]
        results = [pool.submit(strict.run, page) for page in pages]
        assert strict.run(program("print('beside')")).clean
    for result in (future.result() for future in results):
        assert statuses(result) == ["ran", "failed", "not-run"]
        assert result.blocks[1].output == "going on\n"
        assert only_failure(result) == Failure("timeout", "took longer than 1 seconds")


@pytest.mark.parametrize(
    "source",
    [
        "print('x' * 10 ** 8)",
        "while True: print('x')",
        "import os\nwhile True: os.write(1, b'x' * 4096)",
        "import os\nwhile True: os.write(2, b'x' * 4096)",
        "import subprocess\nsubprocess.run(['yes'])",
        "import subprocess\nsubprocess.Popen(['yes'], start_new_session=True).wait()",
    ],
)
def test_output_without_end_is_cut(narrow, source):
    result = narrow.run(program("print('before')", f"print('start')\n{source}", "1"))
    assert statuses(result) == ["ran", "failed", "not-run"]
    assert result.blocks[1].output.startswith("start\n") and len(result.blocks[1].output) == 1000
    assert only_failure(result) == Failure("output", "printed more than 1,000 characters")


def test_the_output_limit_counts_characters_of_each_block(narrow):
    assert narrow.run(program("print('é' * 999)", "print('é' * 999)")).clean
    result = narrow.run(program("print('é' * 999)", "print('é' * 1000)", "1"))
    assert statuses(result) == ["ran", "failed", "not-run"]


def test_a_process_left_behind_holds_nothing_up_and_is_ended(runner):
    result = runner.run(program("import subprocess\nprint(subprocess.Popen(['sleep', '1000000']).pid)"))
    assert result.clean and not result.cacheable
    assert is_gone(int(result.blocks[0].output))


def test_threads_and_forks_left_behind_hold_nothing_up(runner):
    result = runner.run(
        program(
            "import threading, time\nthreading.Thread(target=time.sleep, args=(10 ** 6,)).start()",
            "import os\nchild = os.fork()",
            "print('once')",
        )
    )
    assert result.clean and result.blocks[2].output == "once\n"


def is_gone(pid: int) -> bool:
    """Whether a process has ended and been reaped, given a moment to do so."""
    for _ in range(500):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False


def test_nothing_is_left_of_a_page_that_was_ended(strict):
    source = "import os, subprocess\nprint(os.getpid(), subprocess.Popen(['sleep', '1000000']).pid)\nwhile True: pass"
    result = strict.run(program(source))
    assert only_failure(result).kind == "timeout"
    assert all(is_gone(int(pid)) for pid in result.blocks[0].output.split())


def test_the_server_is_started_again_when_it_dies(root):
    with Runner(root) as runner:
        result = runner.run(program("import os\nprint(os.getppid())"))
        server = int(result.blocks[0].output)
        lost = runner.run(
            program(f"import os, signal, time\nos.kill({server}, signal.SIGKILL)\ntime.sleep(1)\nos._exit(1)")
        )
        assert only_failure(lost).kind == "died"
        assert runner.run(program("print('again')")).clean


def test_closing_ends_server_and_pages(root):
    runner = Runner(root)
    with ThreadPoolExecutor(1) as pool:
        first = runner.run(program("import os\nprint(os.getppid())"))
        begun = root / "begun"
        pending = pool.submit(runner.run, program("import time\nopen('begun', 'w').close()\ntime.sleep(10 ** 6)"))
        while not begun.exists():
            time.sleep(0.01)
        runner.close()
        assert only_failure(pending.result()).kind == "died"
    assert is_gone(int(first.blocks[0].output))


def test_a_server_that_cannot_start_is_a_failure(root, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(root / "no-python"))
    with Runner(root) as runner:
        result = runner.run(program("1", "2", expressions=(("1", 0),)))
    assert statuses(result) == ["failed", "not-run"]
    assert only_failure(result).message.startswith("no process could be started for the page: ")


# Expressions that misbehave


def test_one_bad_expression_does_not_spoil_the_others(strict):
    asked = {
        "x": ("int", "5"),
        "forever()": "timeout",
        "os._exit(0)": "died",
        "sys.exit(1)": "error",
        "1 +": "syntax",
        "1 / 0": "error",
        "print('x' * 9999)": ("none", "None"),
        "x + 1": ("int", "6"),
    }
    setting = "import os, sys\ndef forever():\n    while True: pass\nx = 5"
    result = strict.run(program(setting, expressions=tuple((text, 1) for text in asked)))
    assert values(result) == list(asked.values())
    assert result.evaluations[2].failure.message == "exit code 0"
    division = Failure("error", "ZeroDivisionError: division by zero", exception="ZeroDivisionError")
    assert result.evaluations[5].failure == division
    assert statuses(result) == ["ran"] and result.blocks[0].output == ""


def test_an_expression_that_hangs_at_its_own_place_only(strict):
    blocks = ("def f():\n    while True: pass", "def f(): return 1", "print('on')")
    result = strict.run(program(*blocks, expressions=(("f()", 1), ("f()", 2))))
    assert values(result) == [("int", "1"), ("int", "1")]
    assert [evaluation.early and evaluation.early.text for evaluation in result.evaluations] == [None, "1"]
    assert result.blocks[2].output == "on\n"


@pytest.mark.parametrize(
    ("blocks", "text", "early", "late"),
    [
        (("n = 1", "n = 2"), "abs(n)", "1", "2"),
        (("n = 1", "def f():\n    global n\n    n = 2\nf()"), "abs(n)", "1", "2"),
        (("n = 1\ndef f(): return n", "n = 2"), "f()", "1", "2"),
        (("items = [1]", "items.append(2)"), "len(items)", "1", "2"),
        (("pair = (0, [1])", "pair[1].append(2)"), "len(pair[1])", "1", "2"),
        (("import torch\nt = torch.ones(1)", "t += 1"), "t.item()", (1.0).hex(), (2.0).hex()),
        (("import math", "math.pi = 3"), "math.pi", (3.141592653589793).hex(), "3"),
        (("class Shape:\n    width = 1", "Shape.width = 2"), "getattr(Shape, 'width')", "1", "2"),
        (("import math\nn = 9", "m = 2"), "math.isqrt(n)", "3", "3"),
    ],
)
def test_a_value_that_changes_is_seen_to_change(runner, blocks, text, early, late):
    (evaluation,) = runner.run(program(*blocks, expressions=((text, 1),))).evaluations
    assert (evaluation.early.text, evaluation.value.text) == (early, late)


def test_a_name_error_inside_the_page_is_an_error(runner):
    result = runner.run(program("def f(): return missing", expressions=(("f()", 1), ("missing", 1))))
    assert values(result) == ["error", "unbound"]
    assert result.evaluations[0].failure.frames == ((PAGE, 1, "f"),)


# Where there is no fork


def test_without_fork_a_page_gives_the_same(forkless, runner):
    page = program(
        "import random\nx = 3\nprint('a', random.random())",
        "import os\nx = 4\nos.write(2, b'b')",
        code("{}[1]", raises="KeyError"),
        expressions=(("x", 1), ("x", 3), ("y", 0)),
    )
    here, there = runner.run(page), forkless.run(page)
    assert there.blocks == here.blocks
    assert there.evaluations == here.evaluations


@pytest.mark.parametrize(
    ("source", "kind", "message"),
    [
        ("1 / 0", "error", "ZeroDivisionError: division by zero"),
        ("import os\nos._exit(3)", "died", "exit code 3"),
        ("while True: print('x')", "output", "printed more than 1,000 characters"),
    ],
)
def test_without_fork_failures_are_laid_at_their_blocks(forkless, source, kind, message):
    result = forkless.run(program("print('before')", source, "1"))
    assert statuses(result) == ["ran", "failed", "not-run"]
    assert result.blocks[0].output == "before\n"
    assert (only_failure(result).kind, only_failure(result).message) == (kind, message)


def test_without_fork_blocks_without_end_are_ended(root):
    with Runner(root, time_limit=1.0, fork=False) as runner:
        result = runner.run(program("print('going on')\nwhile True: pass", "1"))
    assert statuses(result) == ["failed", "not-run"]
    assert (result.blocks[0].output, only_failure(result).kind) == ("going on\n", "timeout")


def test_signals_of_this_process_are_left_alone(runner):
    before = signal.getsignal(signal.SIGCHLD), signal.getsignal(signal.SIGINT)
    runner.run(program("1"))
    assert (signal.getsignal(signal.SIGCHLD), signal.getsignal(signal.SIGINT)) == before
