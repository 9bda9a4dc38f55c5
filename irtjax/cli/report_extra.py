"""Pictures and pages need the extra `report`."""

import importlib.util

from irtjax.errors import InputError

__all__ = ["require_report_extra"]


def require_report_extra() -> None:
    """Refuse to go on where matplotlib or jinja2 is not installed.

    Raises:
        InputError: says how to install them.
    """
    missing = [name for name in ("matplotlib", "jinja2") if importlib.util.find_spec(name) is None]
    if missing:
        raise InputError(
            f"{' and '.join(missing)} cannot be imported; install irtjax[report] (pip install "
            "'irtjax[report]')"
        )
