import ast

import pytest

from claims.inputs.slices import RANDOM, Slicer

CODE = """\
import math
from torch import nn
x = 1
def twice(n):
    return n * x
x = 2
y = []
z = twice(3)
y.append(z)
math.sqrt(x)
total = 0
for n in range(4):
    total += n
with open as file:
    w = 5
show(y)
a = b = x
late = lambda: w
"""
EXPECTED = {  # the rows that each expression rests on
    "x": [1, 6, 10],
    "z": [4, 6, 8],
    "twice(1)": [1, 4, 6, 10],
    "y": [4, 6, 7, 8, 9, 16],
    "math.pi": [1],
    "total": [11, 12],
    "w + a": [1, 6, 10, 14, 17],
    "late()": [14, 18],
    "nothing": [],
}


@pytest.fixture(scope="module")
def tree():
    return ast.parse(CODE).body


@pytest.mark.parametrize("expression", EXPECTED)
def test_a_slice_holds_what_an_expression_rests_on(tree, expression):
    slice = Slicer(tree).slice(expression)
    assert [tree[index].lineno for index in sorted(slice)] == EXPECTED[expression]


def test_a_drawing_changes_nothing_but_its_figure(tree):
    at = {node.lineno: index for index, node in enumerate(tree)}
    slice = Slicer(tree, drawing=[at[9], at[16]]).slice("y")
    assert [tree[index].lineno for index in sorted(slice)] == [7]


def test_random_numbers_are_drawn_in_order():
    body = ast.parse("a = draw()\nb = draw()\nc = seed_and_draw()\nd = draw()\ne = 3\n").body
    slicer = Slicer(body)
    for index, unseeded in enumerate([True, True, False, True]):
        slicer.draws(index, unseeded)
    assert [sorted(slicer.slice(name)) for name in "abcde"] == [[0], [0, 1], [2], [2, 3], [4]]
    assert RANDOM in slicer.effects[0].reads and RANDOM not in slicer.effects[2].reads
