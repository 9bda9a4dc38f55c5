"""Results as a table in the terminal."""

from typing import Any

from rich.table import Table

__all__ = ["results_table"]

# Title, key in the row, format; a column that no row has is left out.
_COLUMNS = (
    ("CPU s", "cpu_seconds", "{:.3g}"),
    ("whole run", "extrapolated_cpu_seconds", "{:,.0f}"),
    ("x irtjax", "ratio", "{:,.3g}"),
    ("cold s", "cold_cpu_seconds", "{:.3g}"),
    ("x cold", "cold_ratio", "{:,.3g}"),
    ("MiB", "peak_mebibytes", "{:,.0f}"),
    ("ms a pick", "ms_per_pick", "{:.3g}"),
    ("log-loss", "log_loss", "{:.4f}"),
    ("ACC", "accuracy", "{:.4f}"),
    ("AUC", "auc", "{:.4f}"),
    ("ICC RMSE", "icc_rmse", "{:.4f}"),
    ("slope", "slope_rmse", "{:.3f}"),
    ("difficulty", "difficulty_rmse", "{:.3f}"),
    ("guessing", "guessing_rmse", "{:.3f}"),
    ("feasibility", "feasibility_rmse", "{:.3f}"),
)


def results_table(result: dict[str, Any]) -> Table:
    """One row a run: seconds, ratio against irtjax, memory, quality; or the reason it has none.

    Args:
        result: as `compared` returns it.
    """
    rows = result["rows"]
    shown = [column for column in _COLUMNS if any(_has(row, column[1]) for row in rows)]
    table = Table(title=f"{result['problem']}, {result['date']}", title_justify="left")
    table.add_column("who", no_wrap=True)
    table.add_column("what")
    for title, _, _ in shown:
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("note")
    for row in rows:
        cells = [_shown(row, key, form) for _, key, form in shown]
        table.add_row(row["who"], row["label"], *cells, _note(row))
    return table


def _has(row: dict[str, Any], key: str) -> bool:
    return isinstance(row.get(key), int | float)


def _shown(row: dict[str, Any], key: str, form: str) -> str:
    return form.format(row[key]) if _has(row, key) else ""


def _note(row: dict[str, Any]) -> str:
    if "error" in row:
        return str(row["error"])
    status = row.get("status", "")
    steps = f"{row['n_steps']} steps" if "n_steps" in row else ""
    again = ""
    if "again_ratio" in row:
        seconds, ratio = row["again_cpu_seconds"], row["again_ratio"]
        again = f"compiles at every call: {seconds:.3g} CPU s, x {ratio:,.3g}"
    failed = f"{len(row['failed_turns'])} turns failed" if "failed_turns" in row else ""
    return ", ".join(filter(None, [str(status), steps, again, failed, row.get("note", "")]))
