"""Confirmatory and bifactor models: the mask, what is recovered, and what stays the same."""

import functools

import numpy as np
import pandas as pd
import pytest

from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError
from irtjax.fit.checkpoints import Checkpoints
from irtjax.fit.loadings import make_loadings, spec_with
from irtjax.fit.result import FitResult
from irtjax.fit.rotation import SCALE
from irtjax.fit.tables import slope_and_intercept
from irtjax.model.spec import ModelSpec
from tests.fit.conformance import everything
from tests.fit.fitting import quiet_fit

CORRELATION = 0.5


def _drawn(theta, slope, seed):
    """Responses to items whose benchmark is the last dim that they load on."""
    rng = np.random.default_rng(seed)
    intercept = rng.normal(size=len(slope))
    p = 1 / (1 + np.exp(-(theta @ slope.T + intercept)))
    response = (rng.random(p.shape) < p).astype(np.int8)
    last = slope.shape[1] - 1 - np.argmax(slope[:, ::-1] > 0, axis=1)
    names = pd.DataFrame({"benchmark": [f"b{k}" for k in last]})
    return ResponseMatrix.from_dense(response, item_metadata=names)


def _correlated(n_models, per_dim):
    """Abilities, slopes and responses of two correlated dims."""
    rng = np.random.default_rng(0)
    covariance = [[1, CORRELATION], [CORRELATION, 1]]
    theta = rng.multivariate_normal([0, 0], covariance, n_models)
    own = np.repeat(np.eye(2), per_dim, axis=0)
    slope = own * rng.lognormal(0.3, 0.3, (2 * per_dim, 1))
    return theta, slope, _drawn(theta, slope, 1)


def _bifactor(n_models, per_dim, n_dims):
    """A general factor and `n_dims` others, all uncorrelated."""
    rng = np.random.default_rng(0)
    theta = rng.normal(size=(n_models, n_dims + 1))
    own = np.repeat(np.eye(n_dims), per_dim, axis=0)
    slope = np.column_stack([np.ones(len(own)), own]) * rng.lognormal(
        0, 0.3, (len(own), n_dims + 1)
    )
    return theta, slope, _drawn(theta, slope, 1)


_FITS = {
    "fixed": (_correlated, (1000, 12), {"quadrature": "fixed", "nodes": 15, "correlated": True}),
    "variational": (_correlated, (1000, 12), {"quadrature": "variational", "correlated": True}),
    "wide": (_correlated, (100, 500), {"estimator": "marginal-items"}),
    "bifactor": (_bifactor, (2000, 12, 3), {"estimator": "marginal-models", "general": True}),
    "wide-bifactor": (
        _bifactor,
        (100, 1000, 4),
        {"estimator": "marginal-items", "general": True},
    ),
}


@functools.cache
def truth(kind):
    """Abilities, slopes, responses."""
    draw, sizes, _ = _FITS[kind]
    return draw(*sizes)


@functools.cache
def fitted(kind):
    """The fit of `truth(kind)`, items loading by benchmark."""
    return quiet_fit(truth(kind)[2], loadings="benchmark", **_FITS[kind][2])


# ---------------------------------------------------------------------------------------------
# The mask


def small():
    """Six items in three benchmarks."""
    response = np.random.default_rng(0).integers(0, 2, (20, 6))
    table = pd.DataFrame({"benchmark": list("xxyyzz"), "part": ["p", "p", "p", "q", "q", None]})
    return ResponseMatrix.from_dense(
        response, item_ids=[f"i{j}" for j in range(6)], item_metadata=table
    )


def table(**changes):
    """Loadings of the items of `small`, in another order."""
    columns = {"item_id": [f"i{j}" for j in range(6)], "verbal": [1, 1, 1, 0, 0, 0]}
    columns |= {"number": [0, 0, 1, 1, 1, 1]} | changes
    return pd.DataFrame(columns).iloc[::-1]


EXPECTED = np.array([[1, 0], [1, 0], [1, 1], [0, 1], [0, 1], [0, 1]], bool)


def test_a_column_gives_each_of_its_values_a_dim():
    found = make_loadings(small(), "benchmark")
    assert found.names == ("x", "y", "z")
    np.testing.assert_array_equal(found.mask, np.repeat(np.eye(3, dtype=bool), 2, axis=0))
    codes, rows = found.patterns()
    np.testing.assert_array_equal(rows[codes], found.mask)


def test_a_general_factor_comes_first_and_all_items_load_on_it():
    found = make_loadings(small(), "benchmark", has_general=True)
    assert found.names == ("general", "x", "y", "z")
    assert found.has_general
    assert found.mask[:, 0].all()


def test_a_frame_and_a_file_are_matched_by_item_id(tmp_path):
    path = tmp_path / "loadings.csv"
    table().to_csv(path, index=False)
    for given in (table(), path, str(path)):
        found = make_loadings(small(), given)
        assert found.names == ("verbal", "number")
        np.testing.assert_array_equal(found.mask, EXPECTED)


@pytest.mark.parametrize("dtype", [bool, int, float])
def test_an_array_is_in_the_order_of_the_items(dtype):
    for given in (EXPECTED.astype(dtype), EXPECTED.astype(dtype).tolist()):
        found = make_loadings(small(), given)
        assert found.names == ("dim1", "dim2")
        np.testing.assert_array_equal(found.mask, EXPECTED)


def test_the_digest_tells_masks_apart():
    one = make_loadings(small(), EXPECTED)
    assert one.digest() == make_loadings(small(), EXPECTED.astype(float)).digest()
    assert one.digest() != make_loadings(small(), EXPECTED[:, ::-1]).digest()
    assert one.digest() != make_loadings(small(), table()).digest()


BAD = {
    "no such column or file": ("nowhere.csv", "neither an item column .*benchmark.* nor a file"),
    "an item without a group": ("part", "item 'i5' has no value in column 'part'"),
    "no item_id": (table().drop(columns="item_id"), "need a column 'item_id'"),
    "no dims": (table()[["item_id"]], "have no dims"),
    "an item twice": (
        pd.concat([table(), table().iloc[:1]]),
        "^the loadings have several rows for 1 item .'i5'.; give each item one row$",
    ),
    "an item without a row": (table().iloc[1:], "have no row for 1 item .'i5'.; give each"),
    "an unknown item": (
        pd.concat([table(), table().iloc[:1].assign(item_id="i9")]),
        "^the loadings have rows for 1 item .'i9'. that the data do not have; give each item",
    ),
    "a misspelt item": (
        table().replace("i5", "I5"),
        "no row for 1 item .'i5'. and rows for 1 item .'I5'. that the data do not have",
    ),
    "another number": (table(verbal=[1, 1, 0.5, 0, 0, 0]), "item 'i2' has 0.5 in 'verbal'"),
    "nothing": (table(verbal=[1, 1, None, 0, 0, 0]), "item 'i2' has nan in 'verbal'"),
    "a word": (table(verbal=[1, 1, "yes", 0, 0, 0]), "item 'i2' has 'yes' in 'verbal'"),
    "too few rows": (EXPECTED[1:], r"shape \(5, 2\), for 6 items x dims"),
    "one axis": (EXPECTED[:, 0], r"shape \(6,\), for 6 items x dims"),
    "rows of different lengths": ([[1, 0], [1]], "for each dim in every item's row"),
    "an item on no dim": (EXPECTED & (np.arange(6) != 4)[:, None], "'i4' loads on no dim"),
    "a dim of one item": (table(verbal=[1, 0, 0, 0, 0, 0]), "'verbal' has 1 item;"),
    "two dims alike": (table(other=[0, 0, 1, 1, 1, 1]), "'number' and 'other' have the same items"),
}


@pytest.mark.parametrize("case", list(BAD))
def test_what_is_no_mask_is_refused_in_one_line(case):
    given, message = BAD[case]
    with pytest.raises(InputError, match=message) as caught:
        make_loadings(small(), given)
    assert "\n" not in str(caught.value)


def test_a_general_factor_beside_one_benchmark_is_refused():
    with pytest.raises(InputError, match="'general' and 'dim1' have the same items"):
        make_loadings(small(), np.ones((6, 1)), has_general=True)
    with pytest.raises(InputError, match="two dims are named 'general'"):
        make_loadings(small(), table().rename(columns={"verbal": "general"}), has_general=True)


def test_a_file_that_is_no_table_is_refused(tmp_path):
    for name, content in (
        ("empty.csv", b""),
        ("binary.csv", b"\xff\xfe\x00\x01"),
        ("jagged.csv", b"a\n1,2\n1,2,3\n"),
    ):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(InputError, match=name) as caught:
            make_loadings(small(), path)
        assert "\n" not in str(caught.value)


def test_a_file_must_have_the_items_of_the_data_and_no_others(tmp_path):
    path = tmp_path / "mask.csv"
    more = pd.concat([table(), table().assign(item_id=[f"x{k}" for k in range(6)])])
    more.to_csv(path, index=False)
    with pytest.raises(InputError) as caught:
        make_loadings(small(), str(path))
    assert str(caught.value) == (
        f"the loadings in {path} have rows for 6 items (first: 'x0', 'x1', 'x2') that the data do "
        "not have; give each item of the data one row"
    )
    pd.concat([table(), table()]).to_csv(path, index=False)
    with pytest.raises(InputError, match=r"several rows for 6 items \(first: 'i5', 'i4', 'i3'\)"):
        make_loadings(small(), path)


def test_ids_in_a_file_are_taken_as_they_stand(tmp_path):
    data = ResponseMatrix.from_dense(np.eye(4), item_ids=["NA", "007", "1.0", "nan"])
    path = tmp_path / "mask.csv"
    path.write_text("item_id,x,y\nNA,1,0\n007,1,0\nnan,0,1\n1.0,0,1\n")
    np.testing.assert_array_equal(make_loadings(data, path).mask[:, 0], [1, 1, 0, 0])


def test_the_spec_gets_the_dims_of_the_mask():
    found = make_loadings(small(), "benchmark")
    assert spec_with(ModelSpec("3pl"), found) == ModelSpec("3pl", 3)
    assert spec_with(ModelSpec("3pl", 3), found) == ModelSpec("3pl", 3)
    with pytest.raises(InputError, match="loadings have 3 dims, the spec 2"):
        spec_with(ModelSpec("2pl", 2), found)
    with pytest.raises(InputError, match="1pl with a general factor is not identified"):
        spec_with(ModelSpec("1pl"), make_loadings(small(), "benchmark", has_general=True))


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"general": True, "loadings": None}, "general factor needs loadings"),
        ({"correlated": True, "loadings": None}, "correlated dims need loadings"),
        ({"general": True, "correlated": True}, "general factor is uncorrelated with the others"),
        ({"group": "benchmark"}, "group 'benchmark' does not go with loadings"),
        ({"estimator": "joint-map"}, "joint-map does not go with loadings"),
        ({"item_distribution": "empirical"}, "empirical does not go with loadings"),
        ({"item_distribution": "mixture"}, "mixture does not go with loadings"),
        ({"spec": ModelSpec("2pl", 2)}, "loadings have 3 dims, the spec 2"),
        ({"spec": ModelSpec("1pl"), "estimator": "marginal-models"}, "needs estimator marginal-it"),
        ({"quadrature": "fixed"}, "takes at most 2 dims, not 3"),
    ],
)
def test_what_does_not_go_with_loadings_is_refused(settings, message):
    with pytest.raises(InputError, match=message) as caught:
        quiet_fit(small(), **({"loadings": "benchmark"} | settings))
    assert "\n" not in str(caught.value)


def test_a_checkpoint_of_another_mask_is_not_continued(tmp_path):
    data = truth("fixed")[2]
    settings = {"nodes": 15, "correlated": True, "quadrature": "fixed"}
    save = Checkpoints(tmp_path, every=1)
    quiet_fit(data, loadings="benchmark", checkpoints=save, max_steps=10, **settings)
    other = make_loadings(data, "benchmark").mask
    other[0] = True
    with pytest.raises(InputError, match="another fit: its loadings"):
        quiet_fit(data, loadings=other, checkpoints=Checkpoints(tmp_path, resume=True), **settings)


# ---------------------------------------------------------------------------------------------
# What a fit recovers


def _own(kind):
    """Items x dims: whether an item loads."""
    return truth(kind)[1] > 0


@pytest.mark.parametrize("kind", list(_FITS))
def test_slopes_that_an_item_may_not_have_are_exactly_0(kind):
    fit, own = fitted(kind), _own(kind)
    assert fit.status == "converged"
    items = fit.item_parameters()
    for what in ("slope", "loading"):
        names = [f"dim{k + 1}_{what}" for k in range(own.shape[1])]
        assert np.all(items[names].to_numpy()[~own] == 0)
        assert np.all(items[names].to_numpy()[own] != 0)
        errors = items[[f"{name}_se" for name in names]].to_numpy()
        assert np.all(errors[~own] == 0)
        assert np.all(errors[own] > 0)


@pytest.mark.parametrize("kind", ["fixed", "variational", "wide"])
def test_the_correlation_of_two_dims(kind):
    theta = truth(kind)[0]
    # Of these models: among 1,000 it is off the population's by .03, among 100 by .08.
    actual = np.corrcoef(theta.T)[0, 1]
    assert fitted(kind).ability_correlations()[0, 1] == pytest.approx(actual, abs=0.05)
    np.testing.assert_allclose(np.diag(fitted(kind).ability_correlations()), 1, rtol=1e-6)


def test_without_correlated_the_dims_of_models_are_uncorrelated():
    fit = quiet_fit(truth("fixed")[2], loadings="benchmark", quadrature="fixed", nodes=15)
    np.testing.assert_array_equal(fit.ability_correlations(), np.eye(2))
    # One parameter less, for a likelihood that it raised by far more than its price.
    free = fitted("fixed").report
    assert free["n_parameters"] == fit.report["n_parameters"] + 1
    assert free["log_likelihood"] > fit.report["log_likelihood"] + 50


def test_fixed_and_variational_agree():
    one, two = fitted("fixed"), fitted("variational")
    np.testing.assert_allclose(one.parameters.ability, two.parameters.ability, atol=0.05)
    assert one.ability_correlations()[0, 1] == pytest.approx(
        two.ability_correlations()[0, 1], abs=0.01
    )
    assert two.report["log_likelihood"] < one.report["log_likelihood"]


@pytest.mark.parametrize("kind", ["fixed", "variational", "bifactor"])
def test_true_slopes_lie_within_their_errors(kind):
    items, own = fitted(kind).item_parameters(), _own(kind)
    names = [f"dim{k + 1}_slope" for k in range(own.shape[1])]
    errors = items[[f"{name}_se" for name in names]].to_numpy()[own]
    away = (items[names].to_numpy() - truth(kind)[1])[own] / errors
    # Mean square of n standard normals: 1 with an error of sqrt(2 / n).
    assert np.mean(away**2) == pytest.approx(1, abs=5 * np.sqrt(2 / len(away)))


@pytest.mark.parametrize("kind", ["fixed", "variational", "bifactor"])
def test_abilities_are_as_near_as_their_errors_say(kind):
    theta, fit = truth(kind)[0], fitted(kind)
    away = fit.parameters.ability - theta
    told = np.diagonal(fit.parameters.ability_covariance, axis1=1, axis2=2)
    np.testing.assert_allclose(np.mean(away**2, axis=0), np.mean(told, axis=0), rtol=0.15)


@pytest.mark.parametrize("kind", ["wide", "wide-bifactor"])
def test_abilities_of_few_models_on_many_items(kind):
    theta, ability = truth(kind)[0], np.asarray(fitted(kind).parameters.ability)
    for k in range(theta.shape[1]):
        assert np.corrcoef(theta[:, k], ability[:, k])[0, 1] > 0.9


def test_abilities_of_many_models_on_a_bifactor_test():
    # With 36 and 12 items a dim, posterior means of the dims' own parts cannot come nearer: the
    # correlation with the truth is the root of what the posterior variance leaves.
    theta, ability = truth("bifactor")[0], np.asarray(fitted("bifactor").parameters.ability)
    told = np.diagonal(fitted("bifactor").parameters.ability_covariance, axis1=1, axis2=2)
    for k, reliability in enumerate(1 - np.mean(told, axis=0)):
        found = np.corrcoef(theta[:, k], ability[:, k])[0, 1]
        assert found == pytest.approx(np.sqrt(reliability), abs=0.03)


@pytest.mark.parametrize("kind", ["bifactor", "wide-bifactor"])
def test_the_general_factor_is_uncorrelated_with_the_others(kind):
    fit = fitted(kind)
    assert fit.report["dim_names"][0] == "general"
    np.testing.assert_allclose(fit.ability_correlations()[0, 1:], 0, atol=1e-5)
    if fit.integrated == "items":
        correlation = np.corrcoef(np.asarray(fit.parameters.ability, np.float64).T)
        np.testing.assert_allclose(correlation[0, 1:], 0, atol=1e-5)


def test_a_1pl_with_a_mask_has_one_slope_a_dim():
    theta = truth("wide")[0]
    data = _drawn(theta, 1.0 * _own("wide"), seed=2)
    fit = quiet_fit(data, ModelSpec("1pl"), loadings="benchmark", estimator="marginal-items")
    slope = slope_and_intercept(fit)[0]
    own = _own("wide")
    for k in range(2):
        np.testing.assert_allclose(slope[own[:, k], k], slope[own[:, k], k][0], rtol=1e-6)
        assert slope[own[:, k], k][0] == pytest.approx(np.std(theta[:, k]), abs=0.1)
        assert np.all(slope[~own[:, k], k] == 0)
        assert np.corrcoef(theta[:, k], fit.parameters.ability[:, k])[0, 1] > 0.95


# ---------------------------------------------------------------------------------------------
# What stays the same


@pytest.mark.parametrize("kind", ["fixed", "wide-bifactor"])
def test_saved_and_loaded_it_predicts_the_same(kind, tmp_path):
    fit = fitted(kind)
    fit.save(tmp_path / "run")
    loaded = FitResult.load(tmp_path / "run")
    np.testing.assert_array_equal(everything(loaded), everything(fit))
    np.testing.assert_array_equal(loaded.ability_correlations(), fit.ability_correlations())
    pd.testing.assert_frame_equal(loaded.item_parameters(), fit.item_parameters())
    assert loaded.report["dim_names"] == fit.report["dim_names"]
    assert (
        loaded.report["loadings"]
        == make_loadings(
            fit.data, "benchmark", has_general="general" in fit.report["dim_names"]
        ).digest()
    )


@pytest.mark.parametrize("kind", ["fixed", "wide"])
def test_the_order_of_the_items_does_not_matter(kind):
    fit, data = fitted(kind), truth(kind)[2]
    order = np.random.default_rng(3).permutation(data.n_items)
    # The benchmarks keep the order of the dims: an array, not the column.
    mask = make_loadings(data, "benchmark").mask[order]
    moved = ResponseMatrix.from_dense(
        data.to_dense()[:, order],
        item_ids=data.item_ids[order].tolist(),
        item_metadata=data.item_metadata.iloc[order].reset_index(drop=True),
    )
    other = quiet_fit(moved, loadings=mask, **_FITS[kind][2])
    np.testing.assert_allclose(everything(other), everything(fit)[:, order], atol=1e-3)


@pytest.mark.parametrize("kind", ["fixed", "wide"])
def test_derived_columns_use_the_correlation_of_the_dims(kind):
    fit = fitted(kind)
    slope, intercept, covariance = slope_and_intercept(fit)
    phi, items = fit.ability_correlations(), fit.item_parameters()
    assert abs(phi[0, 1]) > 0.3
    # Items of one dim have no cross term: let each have two.
    slope = slope + 0.3 * slope[::-1]

    def derived(z):
        discrimination = np.sqrt(np.einsum("jk,kl,jl->j", z[:, :-1], phi, z[:, :-1]))
        loading = z[:, :-1] / np.sqrt(SCALE**2 + discrimination**2)[:, None]
        return np.column_stack([-z[:, -1] / discrimination, discrimination, loading])

    z, step = np.column_stack([slope, intercept]), 1e-5
    rise = [derived(z + step * e) - derived(z - step * e) for e in np.eye(3)]
    gradient = np.stack(rise, axis=2) / (2 * step)
    errors = np.sqrt(np.einsum("jpa,jab,jpb->jp", gradient, covariance, gradient))
    names = ["difficulty", "discrimination", "dim1_loading", "dim2_loading"]
    mean = np.array(fit.parameters.mean)
    mean[:, 0, :2] = slope
    changed = FitResult(
        fit.data, fit.spec, fit.parameters.__class__(**vars(fit.parameters) | {"mean": mean})
    )
    changed.report["integrated"] = fit.integrated
    items = changed.item_parameters()
    np.testing.assert_allclose(items[names], derived(z), rtol=1e-4)
    np.testing.assert_allclose(items[[f"{name}_se" for name in names]], errors, rtol=1e-4)
