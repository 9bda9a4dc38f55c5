"""What all accusations share: how sure one has to be, and how many tests were made."""

import numpy as np
from jaxtyping import Float
from scipy.stats import false_discovery_control

__all__ = ["FALSE_ALARMS", "INNOCENT_SHARE", "adjusted", "chernoff_log_p", "discovery_rates"]

# Chance of one false accusation of a kind in a whole matrix, where the model of that kind holds.
FALSE_ALARMS = 0.01
# Models differ by family, language and training in what is easy for them, so an honest block may
# agree less with the others than its accuracy suggests, and a fine-tune more. Accused is only what
# is certainly below a third of the agreement expected. In the published 12 x 41,871 matrix honest
# blocks above the guessing rate reach .45 to 1.3 of it, misordered ones -.1 to .1.
INNOCENT_SHARE = 1 / 3


def adjusted(p: Float[np.ndarray, "..."], n_tests: int) -> Float[np.ndarray, "..."]:
    """Bonferroni's p-values: they bound the chance of any false accusation among the tests."""
    return np.minimum(np.asarray(p, np.float64) * max(n_tests, 1), 1.0)


def chernoff_log_p(
    seen: Float[np.ndarray, "..."], expected: Float[np.ndarray, "..."]
) -> Float[np.ndarray, "..."]:
    """Bound on the log-probability that a sum of independent terms in [0, 1] is at most `seen`.

    `-(expected - seen + seen log(seen / expected))` where seen is below its expectation, else 0
    (Chernoff's bound, which needs no variances and no large numbers).
    """
    seen, expected = np.asarray(seen, np.float64), np.asarray(expected, np.float64)
    is_low = (seen < expected) & (expected > 0)
    ratio = np.where(is_low & (seen > 0), seen / np.where(expected > 0, expected, 1), 1)
    bound = expected - seen + np.where(seen > 0, seen * np.log(ratio), 0)
    return np.where(is_low, -bound, 0.0)


def discovery_rates(p: Float[np.ndarray, " tests"], n_tests: int) -> Float[np.ndarray, " tests"]:
    """Share of chance findings among those as unlikely as each (Benjamini and Hochberg 1995).

    Args:
        p: p-values of the tests of interest, others being taken to be larger.
        n_tests: how many were made.
    """
    others = np.ones(n_tests - len(p))
    return np.asarray(false_discovery_control(np.concatenate([p, others])))[: len(p)]
