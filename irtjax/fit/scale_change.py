"""Another scale for finished estimates: abilities, items, errors and populations move together."""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float

from irtjax.fit.packed import pair_index, unpack_index
from irtjax.fit.result import FittedParameters
from irtjax.fit.tower_frame import split_tower, with_frame

__all__ = ["ScaleChange"]


@dataclasses.dataclass(frozen=True, eq=False)
class ScaleChange:
    """`theta' = matrix theta + shift`, and what it makes of items so that no logit changes.

    Slopes become `matrix^-T slope`, intercepts `intercept - shift . slope'`.

    Attributes:
        matrix: dims x dims, float64, not singular.
        shift: dims, in standard deviations of the new scale.
    """

    matrix: Float[np.ndarray, "dims dims"]
    shift: Float[np.ndarray, " dims"]

    @property
    def of_items(self) -> Float[np.ndarray, "coordinates coordinates"]:
        """The matrix that acts on `(slope, intercept)`."""
        dims = len(self.shift)
        full = np.eye(dims + 1)
        full[:dims, :dims] = np.linalg.inv(self.matrix).T
        full[dims, :dims] = -self.shift @ full[:dims, :dims]
        return full

    def apply_to_coordinates(
        self, coordinates: Float[np.ndarray, "... coordinates"]
    ) -> Float[np.ndarray, "... coordinates"]:
        """Slopes and intercepts on the new scale."""
        return coordinates @ self.of_items.T

    def apply_to_item_covariance(
        self, covariance: Float[np.ndarray, "... coordinates coordinates"]
    ) -> Float[np.ndarray, "... coordinates coordinates"]:
        """Covariances of `(slope, intercept)` on the new scale."""
        return self.of_items @ covariance @ self.of_items.T

    def apply_to_abilities(
        self, ability: Float[np.ndarray, "... dims"]
    ) -> Float[np.ndarray, "... dims"]:
        """Abilities (or means of populations) on the new scale."""
        return ability @ self.matrix.T + self.shift

    def apply_to_ability_covariance(
        self, covariance: Float[np.ndarray, "... dims dims"]
    ) -> Float[np.ndarray, "... dims dims"]:
        """Covariances of abilities on the new scale."""
        return self.matrix @ covariance @ self.matrix.T

    def apply_to_fit(self, fitted: FittedParameters) -> FittedParameters:
        """All estimates and errors on the new scale, in their own dtype.

        Clustered errors are standard errors without covariances: on a scale that mixes dims they
        are not known (NaN).
        """
        clustered, freedom = self._clustered(fitted)
        moved: dict[str, Any] = {
            "ability": self.apply_to_abilities(_exact(fitted.ability)),
            "ability_covariance": self.apply_to_ability_covariance(
                _exact(fitted.ability_covariance)
            ),
            "ability_se_clustered": clustered,
            "clustered_degrees_of_freedom": freedom,
            "mean": self.apply_to_coordinates(_exact(fitted.mean)),
            "covariance": self._packed(fitted.covariance),
            "population_mean": self.apply_to_abilities(_exact(fitted.population_mean)),
            "population_covariance": self.apply_to_ability_covariance(
                _exact(fitted.population_covariance)
            ),
        }
        if fitted.item_spread is not None:
            moved["item_spread"] = self._packed(fitted.item_spread)
        if fitted.group_mean is not None and fitted.group_covariance is not None:
            moved["group_mean"] = self.apply_to_coordinates(_exact(fitted.group_mean))
            moved["group_covariance"] = self.apply_to_item_covariance(
                _exact(fitted.group_covariance)
            )
        moved |= self._towers(fitted)
        dtypes = {name: np.asarray(getattr(fitted, name)).dtype for name in moved}
        cast: Any = {name: value.astype(dtypes[name]) for name, value in moved.items()}
        return dataclasses.replace(fitted, **cast)

    def _clustered(self, fitted: FittedParameters) -> tuple[np.ndarray, np.ndarray]:
        """Clustered errors and their degrees of freedom, each dim's from the dim it was."""
        clustered = _exact(fitted.ability_se_clustered)
        freedom = _exact(fitted.clustered_degrees_of_freedom)
        if np.any(np.count_nonzero(self.matrix, axis=1) > 1):
            return np.full_like(clustered, np.nan), np.full_like(freedom, np.nan)
        # Not a matrix product: one dim's NaN would spread to the others.
        was = np.argmax(np.abs(self.matrix), axis=1)
        return clustered[:, was] * np.max(np.abs(self.matrix), axis=1), freedom[:, was]

    def _towers(self, fitted: FittedParameters) -> dict[str, Any]:
        """The networks of a fit with features, which put out what the estimates are."""
        moved: dict[str, Any] = {}
        if fitted.item_tower is not None:
            vector = np.asarray(fitted.item_tower)
            frame = split_tower(vector, len(self.shift), "item")[1]
            moved["item_tower"] = with_frame(vector, self.apply_to_coordinates(frame))
        if fitted.model_tower is not None:
            vector = np.asarray(fitted.model_tower)
            frame = split_tower(vector, len(self.shift), "model")[1] @ self.matrix.T
            frame[-1] += self.shift
            moved["model_tower"] = with_frame(vector, frame)
        return moved

    def _packed(self, covariance: Any) -> np.ndarray:
        """`apply_to_item_covariance` of packed lower triangles."""
        size = len(self.shift) + 1
        full = _exact(covariance)[..., unpack_index(size)]
        rows, columns = pair_index(size)
        return self.apply_to_item_covariance(full)[..., rows, columns]


def _exact(values: Any) -> np.ndarray:
    return np.asarray(values, np.float64)
