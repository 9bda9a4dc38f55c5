"""`marginal-items` between its steps: settings, and what continues from one to the next."""

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from irtjax.fit.frame import FrameChange
from irtjax.fit.guarded import Guarded, start_guarded
from irtjax.fit.item_pass import ItemPosteriors, PassContext, pass_context
from irtjax.fit.outer import OuterParameters, vector_form
from irtjax.fit.start import free_coordinates
from irtjax.model.priors import Priors
from irtjax.model.pytree import pytree_dataclass, static_field
from irtjax.model.response import Asymptotes
from irtjax.model.spec import ModelSpec

__all__ = ["HeldItems", "ItemsSettings", "State", "start_state"]


@dataclasses.dataclass(frozen=True)
class ItemsSettings:
    """Settings of `MarginalItems`.

    Args:
        has_effects: estimate model x group effects (with more than one group) and one item
            distribution a group; without, all share one distribution, and groups only serve
            the clustered errors.
        has_loadings: confirmatory: groups are of items that load on the same dims, each with an
            item distribution of its own.
        has_general: the first dim is a general factor, and the others are its residuals.
        n_components: normals in each group's item distribution; 1 is the normal distribution.
        n_nodes: Gauss-Hermite nodes for the expectations over a logit.
        acceleration: past steps that Anderson acceleration looks at.
        compiles_soon: compile what loops over the responses as matrix products are (see
            `compiling`): for data so small that compiling takes longer than all steps.
    """

    has_effects: bool = False
    has_loadings: bool = False
    has_general: bool = False
    n_components: int = 1
    n_nodes: int = 9
    acceleration: int = 5
    compiles_soon: bool = False

    @property
    def has_distributions(self) -> bool:
        """Whether each group has an item distribution of its own."""
        return self.has_effects or self.has_loadings

    def context(self, state: "State") -> PassContext:
        """The parameters of a state in the form the blocks use."""
        outer = state.outer
        return pass_context(
            outer.ability,
            outer.effect,
            outer.distribution,
            outer.asymptotes,
            free_coordinates(state.spec),
            self.n_nodes,
            outer.ability_covariance,
            outer.effect_spread,
        )


@pytree_dataclass
class HeldItems:
    """Items whose posteriors are those of another fit, on that fit's scale, and stay so.

    Others have mean and covariance 0 here, and scale 0. An item that follows its answers may stand
    in the bound with its posterior; one that does not would hold models back from where their
    answers put them. So models meet the curve `E[P]` of each, whose logit is `scale` times that at
    the mean. `asymptotes` are those of each group of items (of all,
    where they share one), which stay where `is_held_group` says that items of it are held.
    """

    items: ItemPosteriors
    scale: Float[Array, "blocks items"]
    asymptotes: Asymptotes | None
    is_held_group: Bool[Array, " groups"]

    @property
    def is_held(self) -> Bool[Array, "blocks items"]:
        """Which items are held."""
        return self.scale > 0

    def within(
        self,
        items: ItemPosteriors,
        frame: Float[Array, "coordinates coordinates"],
        group: Int[Array, "blocks items"],
    ) -> ItemPosteriors:
        """The items of a state with those that are held, in the state's frame, in their place."""
        nowhere = jnp.zeros((len(self.is_held_group), frame.shape[0]), frame.dtype)
        held = FrameChange(frame, nowhere).apply_to_items(self.items, group)
        place = self.is_held[:, None, None]
        return ItemPosteriors(
            jnp.where(place, held.mean, items.mean),
            jnp.where(place, held.covariance, items.covariance),
            items.share,
        )

    def held_asymptotes(self, asymptotes: Asymptotes | None) -> Asymptotes | None:
        """Asymptotes with those of the groups that have held items in their place."""
        return jax.tree.map(
            lambda own, new: jnp.where(self.is_held_group, own, new), self.asymptotes, asymptotes
        )


@pytree_dataclass
class State:
    """What continues from step to step.

    `outer` is what the next pass holds fixed, and `guarded` has it as a vector (but for the
    variances of posteriors, which follow from a pass), with what to go back to where the bound
    falls. `is_scored` marks models with responses.
    Items of another fit that are held are in `items` as well, in the frame of `outer`.
    """

    outer: OuterParameters
    items: ItemPosteriors
    guarded: Guarded
    is_scored: Bool[Array, " models"]
    spec: ModelSpec = static_field()
    priors: Priors = static_field()
    is_loading: Float[Array, "groups dims"] | None = None
    held: HeldItems | None = None

    @property
    def held_scale(self) -> Float[Array, "blocks items"] | None:
        """`scale` of the items held, None where none are."""
        return None if self.held is None else self.held.scale


def start_state(
    settings: ItemsSettings,
    outer: OuterParameters,
    items: ItemPosteriors,
    is_scored: Bool[Array, " models"],
    spec: ModelSpec,
    priors: Priors,
    is_loading: Float[Array, "groups dims"] | None,
    held: HeldItems | None = None,
) -> State:
    """A state without a past."""
    vector, _ = vector_form(outer, free_coordinates(spec))
    guarded = start_guarded(vector, settings.acceleration)
    return State(outer, items, guarded, is_scored, spec, priors, is_loading, held)
