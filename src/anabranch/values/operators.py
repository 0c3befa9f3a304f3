"""The operators that compute with values and compare them, as queries write them."""

from typing import Literal, TypeAlias

ArithmeticOperator: TypeAlias = Literal["+", "-", "*", "div", "mod"]
ComparisonOperator: TypeAlias = Literal["=", "!=", "<", "<=", ">", ">="]
TURNED: dict[ComparisonOperator, ComparisonOperator] = {
    "=": "=",
    "!=": "!=",
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
}
"""The operator that says the same where both sides change places."""
