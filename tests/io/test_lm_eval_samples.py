"""Documents by task as lm-evaluation-harness takes them, and what the reader reads from them."""

import pytest

from irtjax.errors import InputError
from irtjax.io.lm_eval_samples import samples_of


def test_a_task_may_have_slashes_and_numbers_ascend():
    ids = ["a/b/10", "a/b/9", "c/0"]
    assert samples_of(ids) == {"a/b": [9, 10], "c": [0]}
    assert samples_of(ids, ["a/b", "a/b", "c"]) == {"a/b": [9, 10], "c": [0]}


def test_two_ids_of_one_document_are_refused():
    with pytest.raises(InputError, match=r"items 't/7' and 't/07' are one document .*, 7 of 't'"):
        samples_of(["t/7", "u/07", "t/07"])


@pytest.mark.parametrize("item", ["item-3", "gsm8k/x1", "/3", "gsm8k/-1", "gsm8k/"])
def test_other_ids_are_refused(item):
    with pytest.raises(InputError, match="no document of lm-evaluation-harness"):
        samples_of(["gsm8k/1", item])
