"""Which columns describe items, which models, and which are left out."""

import pandas as pd
import pytest

from irtjax.errors import IrtjaxWarning
from irtjax.io import read_responses


def test_columns_find_their_owner(save):
    text = (
        "model_id,item_id,response,family,note,benchmark,format\n"
        "a,p,1,x,1,mmlu,mc\nb,p,0,y,2,mmlu,mc\na,q,1,x,3,gsm,free\nb,q,1,y,4,gsm,free\n"
    )
    matrix = read_responses(save(text))
    assert list(matrix.item_metadata.columns) == ["benchmark", "format"]
    assert list(matrix.item_metadata["benchmark"]) == ["mmlu", "gsm"]
    assert list(matrix.model_metadata["family"]) == ["x", "y"]
    assert list(matrix.provenance.choices["columns_not_kept"]) == ["note"]


def test_a_constant_column_describes_items(save):
    text = "model_id,item_id,response,lang\na,p,1,en\nb,p,0,en\n"
    matrix = read_responses(save(text))
    assert list(matrix.item_metadata["lang"]) == ["en"]
    assert "lang" not in matrix.model_metadata


def test_a_missing_value_contradicts_nothing(save):
    text = "model_id,item_id,response,kind\na,p,1,\nb,p,0,x\na,q,1,\n"
    kinds = read_responses(save(text)).item_metadata["kind"]
    assert kinds[0] == "x"
    assert kinds.isna()[1]


def test_text_metadata_stay_as_written(save):
    text = "model_id,item_id,response,level\na,p,1,01\nb,p,0,01\na,q,1,1.0\n"
    assert list(read_responses(save(text)).item_metadata["level"]) == ["01", "1.0"]


def test_typed_metadata_keep_their_type(tmp_path):
    frame = pd.DataFrame(
        {
            "model_id": ["a", "b", "a", "b"],
            "item_id": ["p", "p", "q", "q"],
            "response": [1, 0, 1, 1],
            "size": [7, 70, 7, 70],
            "hard": [0.25, 0.25, float("nan"), float("nan")],
            "tags": [["x"], ["x"], ["y"], ["y"]],
        }
    )
    frame.to_parquet(tmp_path / "r.parquet")
    matrix = read_responses(tmp_path / "r.parquet")
    assert matrix.model_metadata["size"].tolist() == [7, 70]
    assert matrix.model_metadata["size"].dtype.kind == "i"
    assert matrix.item_metadata["hard"][0] == 0.25
    assert matrix.item_metadata["hard"].isna()[1]
    assert matrix.provenance.choices["columns_not_kept"] == {"tags": "lists or objects"}


@pytest.mark.parametrize("alias", ["dataset", "task", "subject", "category"])
def test_one_alias_is_the_benchmark_too(save, alias):
    text = f"model_id,item_id,response,{alias}\na,p,1,x\na,q,0,y\n"
    matrix = read_responses(save(text))
    assert list(matrix.item_metadata.columns) == ["benchmark", alias]
    assert list(matrix.item_metadata["benchmark"]) == ["x", "y"]


def test_two_aliases_are_metadata_and_no_benchmark(save):
    text = "model_id,item_id,response,task,category\na,p,1,x,u\na,q,0,y,v\n"
    with pytest.warns(IrtjaxWarning, match="--group"):
        matrix = read_responses(save(text))
    assert list(matrix.item_metadata.columns) == ["task", "category"]
    assert len(matrix.provenance.warnings) == 1


def test_canonical_benchmark_wins(save):
    text = "model_id,item_id,response,task,category,benchmark\na,p,1,x,u,B\n"
    matrix = read_responses(save(text))
    assert list(matrix.item_metadata.columns) == ["benchmark", "task", "category"]


@pytest.mark.parametrize("column", ["benchmark", "task", "dataset"])
def test_one_id_in_two_benchmarks_is_refused(save, refused, column):
    text = f"model_id,item_id,response,{column}\na,0,1,gsm\nb,0,0,mmlu\n"
    message = refused(save(text))
    assert "'gsm'" in message
    assert "'mmlu'" in message
    assert "lines 2 and 3" in message
    assert "'gsm/0'" in message


def test_one_id_with_two_hashes_is_refused(save, refused):
    text = "model_id,item_id,response,item_hash\na,p,1,abc\nb,q,1,\nb,p,0,abd\n"
    message = refused(save(text))
    assert "item 'p'" in message
    assert "lines 2 and 4" in message


@pytest.mark.parametrize("role", ["metric", "filter"])
def test_case_11_two_metrics_or_filters_of_a_task_are_refused(save, refused, role):
    text = (
        f"model_id,item_id,response,benchmark,{role}\n"
        "a,p,1,gsm,strict\na,p,0,gsm,flexible\na,q,1,arc,strict\n"
    )
    message = refused(save(text))
    assert "'strict'" in message
    assert "'flexible'" in message
    assert f"--{role}" in message
    matrix = read_responses(save(text), **{role: "flexible"})
    assert matrix.to_dense().tolist() == [[0, 1]]
    assert matrix.provenance.choices[role] == {"gsm": "flexible", "arc": "strict"}
    assert matrix.provenance.choices[f"rows_of_other_{role}s"] == 1
    assert "'x'" in refused(save(text), **{role: "x"})


def test_case_11_one_metric_in_all_files(save, refused):
    head = "model_id,item_id,response,benchmark,metric\n"
    one = save(f"{head}a,p,1,gsm,acc\n", "1.csv")
    two = save(f"{head}b,p,0,gsm,acc\nb,p,17.5,gsm,bleu\n", "2.csv")
    three = save("model_id,item_id,response,benchmark\nc,p,1,gsm\n", "3.csv")
    assert "'acc', 'bleu'" in refused([one, two, three])
    matrix = read_responses([one, two, three], metric="acc")
    assert matrix.to_dense().tolist() == [[1], [0], [1]]
    assert matrix.provenance.choices["rows_of_other_metrics"] == 1
    assert "'17.5'" in refused([one, two], metric="bleu")


def test_metric_without_such_a_column_is_refused(save, refused):
    message = refused(save("model_id,item_id,response\na,p,1\n"), metric="acc")
    assert "--metric" in message


def test_metadata_of_two_files_are_joined(save):
    one = save("model_id,item_id,response,benchmark\na,p,1,x\n", "1.csv")
    two = save("model_id,item_id,response,level\nb,p,1,3\nb,q,1,4\n", "2.csv")
    metadata = read_responses([one, two]).item_metadata
    assert list(metadata.columns) == ["benchmark", "level"]
    assert list(metadata["level"]) == ["3", "4"]
    assert metadata["benchmark"].isna().tolist() == [False, True]
