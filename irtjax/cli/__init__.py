"""The `irtjax` command: one file a command, nothing heavy imported before it is needed."""

from irtjax.cli.app import main

__all__ = ["main"]
