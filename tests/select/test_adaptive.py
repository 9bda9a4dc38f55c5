"""Adaptive tests: against a float64 loop over items, then rules, sessions and hostile use."""

import json

import numpy as np
import pandas as pd
import pytest

import irtjax as ij
from irtjax.score.ties import TIED
from irtjax.select.adaptive import AdaptiveSession
from tests.fit.fitting import fitted, simulated
from tests.score.oracle import CURVE_NODES, CURVE_WEIGHTS
from tests.tolerances import tolerance

N_ITEMS, MAX_ITEMS = 300, 20


def _fitted(family, dims, seed=3):
    made = ij.simulate(
        ij.ModelSpec(family, dims), n_models=120, n_items=N_ITEMS, n_benchmarks=3, seed=seed
    ).data
    matrix = made.to_dense()
    train = ij.ResponseMatrix.from_dense(
        matrix[:100], item_ids=made.item_ids, item_metadata=made.item_metadata
    )
    new = ij.ResponseMatrix.from_dense(
        matrix[100:], item_ids=made.item_ids, model_ids=made.model_ids[100:]
    )
    return ij.fit(train, ij.ModelSpec(family, dims), estimator="marginal-items"), new


@pytest.fixture(scope="module")
def one_dim():
    return _fitted("3pl", 1)


@pytest.fixture(scope="module")
def two_dims():
    return _fitted("2pl", 2)


def _mean_curves(fit, node):
    """P of every item at every node averaged over the item's posterior, float64."""
    table = fit.item_parameters()
    mean = np.asarray(fit.parameters.mean, float)[:, 0]
    packed = np.asarray(fit.parameters.covariance, float)[:, 0]
    if fit.parameters.item_spread is not None:
        packed = packed + np.asarray(fit.parameters.item_spread, float)
    logit = mean[:, :1] * node + mean[:, 1:]
    variance = packed[:, :1] * node**2 + 2 * packed[:, 1:2] * node + packed[:, 2:]
    logits = logit[..., None] + np.sqrt(variance)[..., None] * CURVE_NODES
    right = (1 / (1 + np.exp(-logits))) @ CURVE_WEIGHTS
    lower = table.guessing.to_numpy()[:, None]
    return lower + (table.feasibility.to_numpy()[:, None] - lower) * right


def _told(right, weight):
    """Mutual information of an answer and the ability."""

    def entropy(p):
        return -p * np.log(p) - (1 - p) * np.log(1 - p)

    expected = right @ weight
    return entropy(expected) - entropy(right) @ weight


@pytest.mark.oracle
def test_the_items_asked_and_abilities_found_are_those_of_a_plain_loop(one_dim):
    fit, new = one_dim
    node = np.linspace(-5, 5, 81)
    right = _mean_curves(fit, node)
    fine = 1e-4
    rise = (_mean_curves(fit, node + fine) - _mean_curves(fit, node - fine)) / (2 * fine)
    information = rise**2 / (right * (1 - right))
    runs = ij.adapt(fit, new, max_items=MAX_ITEMS)
    answers = new.to_dense().astype(float)
    position = {name: k for k, name in enumerate(fit.data.item_ids)}
    for row, model_id in enumerate(new.model_ids[:5]):
        steps = runs.steps[runs.steps.model_id == model_id]
        log_posterior = -(node**2) / 2
        is_left = np.ones(N_ITEMS, bool)
        for k, (_, step) in enumerate(steps.iterrows()):
            weight = np.exp(log_posterior - log_posterior.max())
            weight /= weight.sum()
            gain = _told(right, weight) if k < 5 else information @ weight
            gain[~is_left] = -1
            item = position[step.item_id]
            # The same item, or one as good to rounding.
            assert gain[item] >= gain.max() * (1 - TIED - 20 * tolerance("solve"))
            is_left[item] = False
            answer = answers[row, item]
            log_posterior = log_posterior + np.log(np.where(answer, right[item], 1 - right[item]))
            weight = np.exp(log_posterior - log_posterior.max())
            weight /= weight.sum()
            mean = weight @ node
            np.testing.assert_allclose(step.dim1_ability, mean, atol=tolerance("fit"))
            sd = np.sqrt(weight @ (node - mean) ** 2)
            np.testing.assert_allclose(step.dim1_ability_se, sd, atol=tolerance("fit"))


@pytest.mark.parametrize("which", ["one_dim", "two_dims"])
def test_abilities_and_errors_are_those_of_scoring_the_same_answers(which, request):
    fit, new = request.getfixturevalue(which)
    _assert_as_scored(fit, new)


@pytest.mark.parametrize("kind", ["2pl-2d", "mixture"])
def test_with_effects_of_benchmarks_they_are_those_of_scoring_too(kind):
    data = simulated(kind, seed=1).data
    new = ij.ResponseMatrix.from_dense(data.to_dense()[:3], item_ids=data.item_ids)
    _assert_as_scored(fitted(kind), new)


def _assert_as_scored(fit, new):
    runs = ij.adapt(fit, new, max_items=MAX_ITEMS)
    scores = _scored(fit, new, runs.steps)
    for name in [each for each in runs.models if each.startswith("dim")]:
        np.testing.assert_allclose(runs.models[name], scores[name], atol=3e-3)


def _scored(fit, new, steps):
    """Scores by the answers of some steps."""
    model, item = (
        pd.Index(ids).get_indexer(steps[name])
        for ids, name in ((new.model_ids, "model_id"), (new.item_ids, "item_id"))
    )
    asked = np.full(new.to_dense().shape, np.nan)
    asked[model, item] = steps["response"]
    given = ij.ResponseMatrix.from_dense(asked, item_ids=new.item_ids, model_ids=new.model_ids)
    return ij.score_models(fit, given)


def test_models_of_the_fit_are_counted_and_end_at_the_fits_own_estimate(one_dim):
    fit, new = one_dim
    ids = fit.data.model_ids[:2]
    rows = fit.data.to_dense()[:2].astype(float)
    rows[1, 40:] = np.nan
    own = ij.ResponseMatrix.from_dense(rows, model_ids=ids, item_ids=fit.data.item_ids)
    with pytest.warns(ij.IrtjaxWarning, match=f"1 model tested by .*: '{ids[1]}'; the items"):
        runs = ij.adapt(fit, own, max_items=N_ITEMS)
    assert runs.models["flags"].tolist() == ["in_fit", "counted_twice"]
    with pytest.warns(ij.IrtjaxWarning, match="1 model scored"):
        scores = ij.score_models(fit, own)
    last = runs.steps.groupby("model_id", sort=False).last()
    for name in ("dim1_ability", "dim1_ability_se"):
        assert runs.models[name][0] == scores[name][0] == fit.abilities()[name][0]
        assert runs.models[name][1] == pytest.approx(scores[name][1], abs=3e-3)
        assert last[name].tolist() == runs.models[name].tolist()
    flags = ij.adapt(fit, new, max_items=9).models["flags"]
    assert not flags.str.contains("fit|twice").any()


def test_on_the_way_they_are_nearly_those_of_scoring_and_a_session_s_exactly():
    data = simulated("2pl-2d", seed=1).data
    new = ij.ResponseMatrix.from_dense(data.to_dense()[:3], item_ids=data.item_ids)
    fit = fitted("2pl-2d")
    steps = ij.adapt(fit, new, max_items=MAX_ITEMS).steps
    session = ij.adaptive_test(fit, max_items=MAX_ITEMS)
    for order in range(1, MAX_ITEMS):
        now = steps[steps.order == order]
        session.answer(now.item_id.iloc[0], now.response.iloc[0])
        if order % 4:
            continue
        scores = _scored(fit, new, steps[steps.order <= order])
        np.testing.assert_allclose(session.ability[1], scores.dim2_ability[0], atol=3e-3)
        np.testing.assert_allclose(session.standard_error[0], scores.dim1_ability_se[0], atol=3e-3)
        for name in ("dim1_ability", "dim2_ability"):
            error = scores[f"{name}_se"].to_numpy()
            assert np.all(np.abs(now[name].to_numpy() - scores[name]) < 0.03 * error)
            assert np.all(np.abs(now[f"{name}_se"].to_numpy() / error - 1) < 0.03)


def test_adaptive_items_measure_better_than_the_first_ones(one_dim):
    fit, new = one_dim
    full = ij.adapt(fit, new, max_items=N_ITEMS).models.dim1_ability.to_numpy()
    chosen = ij.adapt(fit, new, max_items=MAX_ITEMS).models
    plain = ij.adapt(fit, new, items=fit.data.item_ids[:MAX_ITEMS], max_items=MAX_ITEMS).models
    assert chosen.dim1_ability_se.mean() < 0.8 * plain.dim1_ability_se.mean()
    off = [np.sqrt(np.mean((each.dim1_ability - full) ** 2)) for each in (chosen, plain)]
    assert off[0] < off[1]


@pytest.mark.parametrize("which", ["one_dim", "two_dims"])
def test_a_session_asks_what_the_runs_say_and_goes_on_from_json(which, request):
    fit, new = request.getfixturevalue(which)
    runs = ij.adapt(fit, new, max_items=MAX_ITEMS, randomesque=3, seed=4)
    asked = runs.steps[runs.steps.model_id == new.model_ids[0]]
    session = ij.adaptive_test(fit, max_items=MAX_ITEMS, randomesque=3, seed=4)
    answer = dict(zip(new.item_ids, new.to_dense()[0], strict=True))
    for step in range(MAX_ITEMS):
        item = session.next_item()
        assert item == session.next_item() == asked.item_id.iloc[step]
        session.answer(item, int(answer[item]))
        np.testing.assert_allclose(
            session.ability[0], asked.dim1_ability.iloc[step], atol=tolerance("fit")
        )
        if step == MAX_ITEMS // 2:
            session = AdaptiveSession.from_json(fit, session.to_json())
    assert session.is_finished
    assert session.next_item() is None
    assert (
        session.reason == runs.models.reason[0] == "the most items that may be asked were answered"
    )
    assert list(session.answers.item_id) == list(asked.item_id)


def test_a_test_stops_at_the_error_asked_for(one_dim):
    fit, new = one_dim
    runs = ij.adapt(fit, new, max_items=N_ITEMS, se=0.35)
    assert (runs.models.reason == "the standard error is small enough").all()
    assert (runs.models.dim1_ability_se <= 0.35).all()
    for _, steps in runs.steps.groupby("model_id"):
        assert (steps.dim1_ability_se.to_numpy()[:-1] > 0.35).all()


def test_a_test_stops_when_little_is_left_to_gain(one_dim):
    fit, new = one_dim
    runs = ij.adapt(fit, new, max_items=N_ITEMS, least_gain=0.05)
    assert (runs.models.reason == "no item left would narrow the ability by the least gain").all()
    assert runs.models.n_items.between(3, 100).all()


def test_quotas_are_kept_and_filled(one_dim):
    fit, new = one_dim
    quotas = {"benchmark-0": 4, "benchmark-2": 10}
    runs = ij.adapt(fit, new, max_items=20, quotas=quotas)
    steps = runs.steps.merge(fit.item_parameters()[["item_id", "benchmark"]], on="item_id")
    count = steps.groupby(["model_id", "benchmark"]).size().unstack()
    assert (count["benchmark-0"] == 4).all()
    assert (count["benchmark-2"] == 10).all()
    assert (count["benchmark-1"] == 6).all()
    # Balanced all along: half-way, half of each quota.
    half = steps[steps.order <= 10].groupby(["model_id", "benchmark"]).size().unstack()
    assert half["benchmark-0"].between(1, 3).all()
    assert half["benchmark-2"].between(4, 6).all()


def test_randomesque_uses_no_item_too_often(one_dim):
    fit, new = one_dim
    one, more = (ij.adapt(fit, new, max_items=10, randomesque=k).steps for k in (1, 8))
    assert one.item_id.value_counts().max() == new.n_models
    assert more.item_id.value_counts().max() < 0.9 * new.n_models
    again = ij.adapt(fit, new, max_items=10, randomesque=8).steps
    assert (again.item_id == more.item_id).all()


def test_only_answered_items_are_asked_and_a_model_without_any_has_the_prior(one_dim):
    fit, new = one_dim
    matrix = new.to_dense().astype(float)
    matrix[:, 30:] = np.nan
    matrix[3] = np.nan
    less = ij.ResponseMatrix.from_dense(matrix, item_ids=new.item_ids, model_ids=new.model_ids)
    runs = ij.adapt(fit, less, max_items=50)
    assert runs.steps.item_id.isin(new.item_ids[:30]).all()
    rest = runs.models.drop(index=3)
    assert (rest.n_items == 30).all()
    assert (rest.reason == "no item is left that may be asked").all()
    empty = runs.models.loc[3]
    assert empty.n_items == 0
    assert empty.reason == "no answers to items that may be asked: the prior"
    assert abs(empty.dim1_ability) < 1e-3
    assert abs(empty.dim1_ability_se - 1) < 1e-3
    assert not (runs.steps.model_id == empty.model_id).any()


def test_wrong_answers_never_raise_the_ability_nor_right_ones_lower_it(one_dim):
    # CASES 6: an adaptive test whose estimates rose with wrong answers and left their bounds.
    fit, _ = one_dim
    table = fit.item_parameters()
    rising = table.item_id[table.discrimination > 0.2]
    for response, sign in ((0, -1), (1, 1)):
        session, path = ij.adaptive_test(fit, max_items=40, items=rising), [0.0]
        while not session.is_finished:
            session.answer(session.next_item(), response)
            path.append(float(session.ability[0]))
        assert len(path) == 41
        assert np.all(sign * np.diff(path) >= -1e-6)
        assert abs(path[-1]) < 5


def test_sparse_and_dense_responses_are_tested_alike(one_dim):
    fit, new = one_dim
    cells = new.cells()
    sparse = ij.ResponseMatrix.from_cells(
        cells.model_index,
        cells.item_index,
        cells.response,
        item_ids=new.item_ids,
        model_ids=new.model_ids,
    )
    first, second = (ij.adapt(fit, each, max_items=10).steps for each in (new, sparse))
    assert (first.item_id == second.item_id).all()


def test_items_that_the_fit_does_not_know_are_left_out(one_dim):
    fit, new = one_dim
    order = np.random.default_rng(0).permutation(new.n_items)
    matrix = np.concatenate([new.to_dense()[:, order], np.ones((new.n_models, 2))], axis=1)
    ids = [*new.item_ids[order], "other-1", "other-2"]
    more = ij.ResponseMatrix.from_dense(matrix, item_ids=ids, model_ids=new.model_ids)
    first = ij.adapt(fit, new, max_items=10).steps
    with pytest.warns(ij.IrtjaxWarning, match="2 items of 302 not in the run"):
        second = ij.adapt(fit, more, max_items=10).steps
    assert (first.item_id == second.item_id).all()
    assert (first.response == second.response).all()


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"max_items": 0}, "max_items must be a whole number of at least 1"),
        ({"criterion": "best"}, "criterion 'best' is not known"),
        ({"se": -1}, "se must be a number of at least 0"),
        ({"se": 0}, "se must be above 0, which no test reaches; leave it out"),
        ({"quotas": {"nowhere": 3}}, "there is no benchmark 'nowhere'"),
        ({"quota_by": "benchmark"}, "quota_by 'benchmark' names the column of quotas"),
        (
            {"quotas": {f"benchmark-{k}": 0 for k in range(3)}},
            "the quotas leave no item that may be asked",
        ),
        (
            {"quotas": {"benchmark-1": 0}, "items": ["benchmark-1/3"]},
            "the quotas leave no item that may be asked",
        ),
        ({"quotas": {"benchmark-0": 90}}, "quotas ask for 90 items, but max_items is 50"),
        ({"items": ["nothing"]}, "item 'nothing' was not in the fit"),
        ({"items": "nothing"}, "items must be a list, not 'nothing'"),
        ({"items": []}, "no item may be asked"),
        ({"randomesque": 0}, "randomesque must be a whole number"),
        (
            {"quotas": {"benchmark-0": 3}, "quota_by": "subject"},
            "no item metadata column 'subject'",
        ),
    ],
)
def test_rules_that_make_no_sense_are_refused(one_dim, arguments, message):
    with pytest.raises(ij.InputError, match=message):
        ij.adaptive_test(one_dim[0], **arguments)


def test_answers_that_make_no_sense_are_refused(one_dim):
    session = ij.adaptive_test(one_dim[0], max_items=2)
    item = session.next_item()
    with pytest.raises(ij.InputError, match="a response must be a number from 0 to 1"):
        session.answer(item, 2)
    with pytest.raises(ij.InputError, match="item 'x' was not in the fit"):
        session.answer("x", 1)
    session.answer(item, 1)
    with pytest.raises(ij.InputError, match="was answered before"):
        session.answer(item, 1)
    session.answer(session.next_item(), 0)
    other = next(
        name for name in one_dim[0].data.item_ids if name not in set(session.answers.item_id)
    )
    with pytest.raises(ij.InputError, match="the test is over"):
        session.answer(other, 1)
    assert len(session.answers) == 2


@pytest.mark.parametrize(
    "right, wrong",
    [(True, False), (np.True_, np.False_), (np.array(1), np.array(0)), (np.float32(1), np.int8(0))],
)
def test_truth_values_and_arrays_without_axes_are_answers(one_dim, right, wrong):
    found = []
    for given in ((1, 0), (right, wrong)):
        session = ij.adaptive_test(one_dim[0], max_items=2)
        for each in given:
            session.answer(session.next_item(), each)
        found.append((session.to_json(), *session.ability))
    assert found[0] == found[1]


@pytest.mark.parametrize("response", ["1", None, np.array([1]), np.nan, 10**400])
def test_what_is_no_answer_is_refused(one_dim, response):
    session = ij.adaptive_test(one_dim[0])
    with pytest.raises(ij.InputError, match="a response must be a number from 0 to 1"):
        session.answer(session.next_item(), response)


def test_whole_numbers_of_any_size_ask_for_all_items(one_dim):
    fit, new = one_dim
    few, huge = fit.data.item_ids[:12], 10**30
    rules = {"max_items": 3 * huge, "n_first": huge, "randomesque": huge, "items": few}
    rules["quotas"] = {"benchmark-0": huge, "benchmark-1": huge}
    session = ij.adaptive_test(fit, **rules)
    session = AdaptiveSession.from_json(fit, session.to_json())
    while (item := session.next_item()) is not None:
        session.answer(item, 1)
    assert set(session.answers.item_id) == set(few)
    runs = ij.adapt(fit, new, **rules)
    assert (runs.models.n_items == len(few)).all()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"irtjax_adaptive_session": 1}', '{"irtjax_adaptive_session": 9}']
)
def test_text_that_is_no_session_is_refused(one_dim, text):
    with pytest.raises(ij.InputError, match="adaptive session"):
        AdaptiveSession.from_json(one_dim[0], text)


def test_a_session_of_another_fit_is_refused(one_dim, two_dims):
    session = ij.adaptive_test(one_dim[0])
    with pytest.raises(ij.InputError, match="of another fit"):
        AdaptiveSession.from_json(two_dims[0], session.to_json())


@pytest.mark.parametrize(
    "change",
    [
        {"answers": {}},
        {"rules": {}},
        {"quota_by": []},
        {"irtjax_adaptive_session": True},
        {"answers": [{"item_id": "elsewhere", "response": 1}]},
    ],
)
def test_a_damaged_session_is_refused(one_dim, change):
    saved = json.loads(ij.adaptive_test(one_dim[0]).to_json()) | change
    with pytest.raises(ij.InputError, match=r"adaptive session|was not in the fit"):
        AdaptiveSession.from_json(one_dim[0], json.dumps(saved))


def test_weights_count_as_so_many_answers(one_dim, two_dims):
    for fit, new in (one_dim, two_dims):
        rows = np.where(new.to_dense() < 0, np.nan, new.to_dense())[:2, :1].repeat(2, axis=0)
        weight = np.array([[1.0], [9.0], [1.0], [9.0]])
        ids = {"model_ids": list("abcd"), "item_ids": new.item_ids[:1]}
        data = ij.ResponseMatrix.from_dense(rows, weight=weight, **ids)
        found = ij.adapt(fit, data).models
        ability = found[[name for name in found if name.endswith("_ability")]].to_numpy()
        assert np.all(np.linalg.norm(ability[1::2], axis=1) > np.linalg.norm(ability[::2], axis=1))


def test_responses_without_an_item_of_the_fit_are_refused(one_dim):
    other = ij.ResponseMatrix.from_dense(np.eye(3), item_ids=["p", "q", "r"])
    with pytest.raises(ij.InputError, match="none of 3 items of the responses is in the run"):
        ij.adapt(one_dim[0], other)


@pytest.mark.compilations
def test_nothing_is_compiled_again_as_items_are_answered(one_dim):
    # CASES 16: a program for each step of a 100-step adaptive test.
    import jax

    fit, new = one_dim
    session = ij.adaptive_test(fit, max_items=100)
    for _ in range(2):
        session.answer(session.next_item(), 1)
        assert np.isfinite(session.ability).all()
    ij.adapt(fit, new, max_items=100)
    compiled = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda name, *_, **__: compiled.append(name) if "backend_compile" in name else None
    )
    try:
        for _ in range(98):
            session.answer(session.next_item(), 1)
            assert np.isfinite(session.ability).all()
        longer = ij.adaptive_test(fit, max_items=80, se=0.1, n_first=2)
        longer.answer(longer.next_item(), 0)
        ij.adapt(fit, new, max_items=70)
    finally:
        jax.monitoring.clear_event_listeners()
    assert compiled == []
