"""The one exception of bad input: a single clear line, raised before anything is written."""

__all__ = ["IrtjaxWarning", "InputError"]


class InputError(ValueError):
    """What the user gave cannot be used; the message is one line.

    It says what is wrong, where (file, line or id) and what to do. The command line prints it on
    stderr and exits with code 2; from Python it is a `ValueError`.
    """


class IrtjaxWarning(UserWarning):
    """Something was counted and reported, not refused.

    `--strict` turns those about the fit's end and about weakly connected data into exit code 3.
    """
