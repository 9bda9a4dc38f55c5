"""Files of loadings: ids as they are written, numbers as numbers, the rest as text."""

import gzip

import numpy as np
import pandas as pd

from irtjax.io.loadings import read_loadings

TEXT = "item_id,verbal,number\n007,1,0\nNA,,true\n1.0,0.0,yes\n"


def test_ids_stay_and_values_are_numbers_or_text(save):
    found = read_loadings(save(TEXT))
    assert found["item_id"].tolist() == ["007", "NA", "1.0"]
    np.testing.assert_array_equal(found["verbal"].astype(float), [1, np.nan, 0])
    assert found["number"].tolist() == [0, 1, "yes"]


def test_compressed_files_and_parquet_are_read_likewise(save, tmp_path):
    expected = read_loadings(save(TEXT))
    found = read_loadings(save(gzip.compress(TEXT.encode()), "r.csv.gz"))
    pd.testing.assert_frame_equal(found, expected)
    table = pd.DataFrame({"item_id": ["a", "b"], "verbal": [1, 0], "number": [False, True]})
    table.to_parquet(tmp_path / "r.parquet")
    found = read_loadings(tmp_path / "r.parquet")
    assert found["verbal"].tolist() == [1, 0]
    assert found["number"].tolist() == [0, 1]


def test_what_has_no_ids_is_refused(save, refused):
    assert "needs a column 'item_id'" in refused(save("item,verbal\na,1\n"), read_loadings)
    message = refused(save("item_id,verbal\na,1\n,0\n"), read_loadings)
    assert "item id is empty in column 'item_id' (line 3 of " in message
