"""One enum for what a question asks and the words that ask it.

Question text, threshold test and resolver all read it here, so that words and outcome cannot
disagree. Equality has a stated answer for every operator.
"""

from enum import StrEnum


class Operator(StrEnum):
    """How an observed value answers a threshold question, or an event's result a question on it."""

    ABOVE = "above"
    BELOW = "below"
    AT_LEAST = "at_least"
    AT_MOST = "at_most"
    WINS = "wins"

    @property
    def words(self) -> str:
        return self.value.replace("_", " ")

    @property
    def on_equality(self) -> bool:
        """The answer when value and threshold are equal."""
        return self in (Operator.AT_LEAST, Operator.AT_MOST)

    @property
    def upward(self) -> bool:
        """True where larger values answer Yes."""
        return self in (Operator.ABOVE, Operator.AT_LEAST, Operator.WINS)

    def holds(self, value: float, threshold: float) -> bool:
        """Whether `value` answers Yes. WINS compares a win indicator (1 or 0) with 0.5.

        >>> Operator.ABOVE.holds(2.0, 2.0), Operator.AT_LEAST.holds(2.0, 2.0)
        (False, True)
        """
        if value == threshold:
            return self.on_equality
        return (value > threshold) == self.upward
