"""Groups of items and populations of models, from columns of metadata."""

import numpy as np
import pandas as pd
import pytest

from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError


def test_groups_are_numbered_in_order_of_first_appearance():
    metadata = pd.DataFrame({"benchmark": ["z", "a", "z"], "number": [2, 2, 10]})
    made = ResponseMatrix.from_dense([[1, 0, 1]], item_metadata=metadata)
    codes, names = made.groups("benchmark")
    assert codes.tolist() == [0, 1, 0]
    assert codes.dtype == np.int32
    assert names == ["z", "a"]
    assert made.groups("number")[1] == ["2", "10"]
    with pytest.raises(InputError, match="column 'topic' to group by; columns: benchmark, number"):
        made.groups("topic")
    gap = made.replace(item_metadata=pd.DataFrame({"benchmark": ["z", None, "z"]}))
    with pytest.raises(InputError, match="item 'item-1' has no value in column 'benchmark'"):
        gap.groups("benchmark")
