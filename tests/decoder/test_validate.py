import pytest

from decoder.validate import number, one_of, whole

WHOLE = "n must be a whole number"


@pytest.mark.parametrize(
    ("check", "rule"),
    [
        (lambda: whole("n", 0), f"{WHOLE} from 1, got 0"),
        (lambda: whole("n", True), f"{WHOLE} from 1, got True"),
        (lambda: whole("n", 2.0), f"{WHOLE} from 1, got 2.0"),
        (lambda: whole("n", "3"), f"{WHOLE} from 1, got '3'"),
        (lambda: whole("n", None, 0), f"{WHOLE} from 0, got None"),
        (lambda: whole("n", -1, 0), f"{WHOLE} from 0, got -1"),
        (lambda: whole("n", 1, 2, 5), f"{WHOLE} from 2 to 5, got 1"),
        (lambda: whole("n", 6, most=5), f"{WHOLE} from 1 to 5, got 6"),
        (lambda: number("n", 0.0), "n must be a finite number above 0, got 0.0"),
        (lambda: number("n", -2), "n must be a finite number above 0, got -2"),
        (lambda: number("n", -2, or_zero=True), "n must be a finite number from 0, got -2"),
        (lambda: number("n", True), "n must be a finite number above 0, got True"),
        (lambda: number("n", "x"), "n must be a finite number above 0, got 'x'"),
        (lambda: number("n", float("nan")), "n must be a finite number above 0, got nan"),
        (lambda: number("n", float("inf")), "n must be a finite number above 0, got inf"),
        (lambda: number("n", 2**1024), f"n must be a finite number above 0, got {2**1024}"),
        (lambda: one_of("n", "c", ("a", "b")), "n must be one of 'a', 'b', got 'c'"),
        (lambda: one_of("n", 2, {1: "x"}), "n must be one of 1, got 2"),
    ],
)
def test_a_refusal_names_the_rule_and_the_value(check, rule):
    with pytest.raises(ValueError) as refusal:
        check()
    assert str(refusal.value) == rule


def test_what_keeps_the_rule_passes():
    whole("n", 1)
    whole("n", 10**30)
    whole("n", 0, 0)
    whole("n", 5, 2, 5)
    whole("n", 2, 2, 5)
    number("n", 1)
    number("n", 5e-324)
    number("n", 1.7976931348623157e308)
    number("n", 0, or_zero=True)
    one_of("n", "a", ("a", "b"))
