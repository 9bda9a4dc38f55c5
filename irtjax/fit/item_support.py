"""How many items a model needs: refused before anything is laid out."""

from irtjax.errors import InputError
from irtjax.fit.settings import FitSettings
from irtjax.model.spec import ModelSpec

__all__ = ["check_items"]


def check_items(n_items: int, spec: ModelSpec, settings: FitSettings, where: str = "") -> None:
    """Refuse more dims or components than the items can support.

    Args:
        n_items: items with responses.
        spec: family and dims.
        settings: whether the item distribution is a mixture, and of how many normals.
        where: what the items are those of, for the message.

    Raises:
        InputError: as many dims as items or more (one item has one dim), or fewer items a component
            than its mean and covariance need.
    """
    if spec.dims >= max(n_items, 2):
        raise InputError(
            f"{spec.dims} dims need more than {spec.dims} items with responses; there are "
            f"{n_items}{where}; use fewer dims"
        )
    each = spec.dims + 2
    if settings.item_distribution == "mixture" and settings.components * each > n_items:
        raise InputError(
            f"{settings.components} components of {each} items, the fewest that have a covariance "
            f"at {spec.dims} dim{'s' * (spec.dims > 1)}, need {settings.components * each:,} "
            f"items; there are {n_items:,}{where}; use at most {max(n_items // each, 1)}"
        )
