"""Simulated answers with wrong keys and a fit to them, made once in a process."""

import functools

from irtjax.data.simulate_answers import simulate_answers
from tests.fit.fitting import quiet_fit

N_MODELS, N_ITEMS = 40, 900


@functools.cache
def case(seed=2):
    """Answers of 40 models to 900 items, 5% of the keys wrong, and the fit to the responses."""
    made = simulate_answers(n_models=N_MODELS, n_items=N_ITEMS, wrong_share=0.05, seed=seed)
    return made, quiet_fit(made.data)
