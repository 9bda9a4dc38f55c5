"""How rarely chance reaches a correlation: a drawn sample, extended by an exponential tail.

The highest of many correlations has a tail that falls exponentially in Fisher's z
(`artanh r`): so rates far below one in the size of the sample can be told.
"""

import dataclasses

import numpy as np
from jaxtyping import Float

__all__ = ["ChanceTail", "chance_tail"]

_TAIL_SHARE, _FEWEST = 0.02, 50
_HIGHEST = 1 - 1e-5  # correlations of 1 are ties, not infinitely far out
# Drawn pairs stand in the sample twice, once for each item: half as many make the tail's error.
_PAIR_ERROR = np.sqrt(2.0)
_BULK = (0.5, 0.9)


@dataclasses.dataclass(frozen=True)
class ChanceTail:
    """A sample of what chance gives, on the scale of Fisher's z.

    Attributes:
        sample: ascending.
        start: from where on the tail is exponential.
        scale: its mean excess.
        share: of the sample beyond `start`.
    """

    sample: Float[np.ndarray, " samples"]
    start: float
    scale: float
    share: float

    def exceeded(
        self, correlation: Float[np.ndarray, " items"], ties: float
    ) -> Float[np.ndarray, " items"]:
        """Probability of a correlation as high, or higher, by chance.

        A higher correlation never has a higher one: correlations of 1, which are no part of a
        tail, are among those beyond any other.

        Args:
            correlation: of items.
            ties: probability that an item agrees with another in all; it counts as far as what
                was drawn allows.
        """
        z, n = _fisher(correlation), len(self.sample)
        count = n - np.searchsorted(self.sample, z, side="left")
        beyond = np.minimum(self.share * np.exp(-(z - self.start) / self.scale), self.share)
        # What was drawn was not rarer than that.
        found = np.where(z > self.start, np.maximum(beyond, count / n), count / n)
        # And not as common as one more would be: a sample that none exceeds does not make chance
        # impossible.
        n_ties = n - np.searchsorted(self.sample, np.arctanh(_HIGHEST), side="left")
        tied = np.clip(ties, n_ties / n, (n_ties + 1) / (n + 1))
        return np.where(correlation >= _HIGHEST, tied, np.maximum(found, tied))

    def reached(self, probability: float) -> float:
        """The correlation that chance exceeds with this probability."""
        if probability < self.share:
            z = self.start + self.scale * np.log(self.share / probability)
        else:
            z = np.quantile(self.sample, 1 - probability)
        return float(np.tanh(z))


def chance_tail(
    drawn: Float[np.ndarray, " samples"], found: Float[np.ndarray, " items"]
) -> ChanceTail:
    """The tail of drawn correlations, widened to those found where their bulk lies higher.

    A fit with a dim too few leaves all items of a kind alike, and most of the found correlations
    are then higher than the drawn ones. That says nothing of any two of them: what chance gives is
    moved and stretched so that its median and its nine tenths are those found.

    Args:
        drawn: from responses drawn from the fit; at least one.
        found: in the responses.
    """
    sample, own = np.sort(_fisher(drawn)), _fisher(found)
    middle, high = np.quantile(sample, _BULK)
    own_middle, own_high = np.quantile(own, _BULK)
    stretch = max((own_high - own_middle) / max(high - middle, 1e-6), 1.0)
    sample = (sample - middle) * stretch + max(middle, own_middle)
    count = min(max(_FEWEST, int(_TAIL_SHARE * len(sample))), len(sample) - 1)
    if count < 1:
        return ChanceTail(sample, np.inf, 1.0, 0.0)
    start = float(sample[-count - 1])
    scale = float(np.mean(sample[-count:] - start)) * (1 + _PAIR_ERROR / np.sqrt(count))
    return ChanceTail(sample, start, max(scale, 1e-6), count / len(sample))


def _fisher(correlation: np.ndarray) -> np.ndarray:
    return np.arctanh(np.clip(correlation, -_HIGHEST, _HIGHEST))
