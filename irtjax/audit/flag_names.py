"""The vocabulary of item flags, in the order in which they are worth a look."""

__all__ = ["FLAGS"]

# The names that `items.csv` also has mean the same there, but that its totals are of the responses
# fitted, and those here of all.
FLAGS: dict[str, str] = {
    "wrong_key": "the recorded key is likely not the right answer",
    "identical_responses": "another item has the same responses, which chance does not explain",
    "local_dependence": "residuals go along with another item: asked twice, or one shared text",
    "negative_slope": "better models do worse",
    "low_feasibility": "even the best models miss it often: ambiguous, or several right answers",
    "high_guessing": "weak models get it right: a shortcut, or contamination",
    "no_responses": "no model answered it",
    "few_responses": "5 responses fitted or fewer: an estimate is mostly its prior",
    "all_wrong": "no model gets it right",
    "all_right": "all models get it right",
    "floor": "hardly any model gets it right",
    "ceiling": "hardly any model misses it",
    "weak_slope": "discrimination is below its standard error: it says little about ability",
    "no_headroom": "models better than the best would gain nothing on it",
}
