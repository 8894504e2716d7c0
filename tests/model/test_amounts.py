import pytest

from foreplan.errors import InputError
from foreplan.model.amounts import Amount


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8GB", 8e9),
        ("8 GiB", 8 * 2**30),
        (".5kB", 500.0),
        ("2GB + 1.5 * inputs", 2e9 + 1.5e9),
        ("(1GB + inputs) * attempt", 6e9),
        ("100", 100.0),
    ],
)
def test_amounts_and_formulas(text: str, value: float) -> None:
    assert Amount(text).value(1e9, 3) == value


@pytest.mark.parametrize(
    "text",
    [
        "8XB",
        "8GB +",
        "os",
        "-1",
        "1/0",
        "2GB 3",
        "inputs.x",
        "8GB)",
        "",
        "inputs - 1MB",
        "1e400",
        "inputs(1)",
    ],
)
def test_what_is_no_amount_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        Amount(text)


def test_nothing_else_is_evaluated() -> None:
    with pytest.raises(InputError, match="'exit' cannot stand there"):
        Amount("2GB + exit")
    with pytest.raises(InputError, match="too long"):
        Amount("1 + " * 100 + "1")
