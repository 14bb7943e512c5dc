import pytest

from decoder.mutation import edited, edited_decoder, failures, replaced_once, variant


class Base:
    def __init__(self):
        self.value = 2


class Counter(Base):
    def __init__(self):
        super().__init__()
        self.value += 3


def twice(x):
    return x + x


def test_a_function_is_edited_and_the_original_stays():
    assert edited(twice, "+", "*")(5) == 25
    assert twice(5) == 10


def test_an_edited_function_sees_the_names_of_its_module():
    def outer():
        return twice(4)

    assert edited(outer, "4", "6")() == 12


def test_a_method_with_super_is_edited():
    assert variant(Counter, "__init__", "+=", "-=")().value == -1
    assert Counter().value == 5


def test_a_variant_is_a_subclass_of_the_same_name():
    made = variant(Counter, "__init__", "+= 3", "+= 4")
    assert issubclass(made, Counter) and made.__name__ == "Counter" and made is not Counter


@pytest.mark.parametrize(("old", "times"), [("z", 0), ("x", 3)])
def test_an_edit_that_is_not_one_edit_is_refused(old, times):
    message = f"old must stand once in the source, '{old}' stands there {times} times"
    with pytest.raises(ValueError, match=message):
        edited(twice, old, "y")
    with pytest.raises(ValueError, match=message):
        replaced_once("x + x = x", old, "y")


def test_failures_are_told_by_name_as_a_traceback_tells_them():
    def holds(x):
        pass

    def breaks(x):
        raise AssertionError(f"{x}, not 2")

    def stops(x):
        raise RuntimeError("no way")

    checks = {"holds": holds, "breaks": breaks, "stops": stops}
    assert failures(checks, 1) == {"breaks": "AssertionError: 1, not 2", "stops": "RuntimeError: no way"}


def test_the_decoder_is_built_from_its_edited_text():
    assert edited_decoder().INIT_STD == 0.02
    assert edited_decoder("model", "INIT_STD = 0.02", "INIT_STD = 0.5").INIT_STD == 0.5


def test_a_module_that_there_is_not_is_refused():
    with pytest.raises(ValueError, match=r"module must be one of validate, config, norms, .*, got 'attentoin'"):
        edited_decoder("attentoin")
