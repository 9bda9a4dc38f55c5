"""Folders of lm-evaluation-harness outputs: CASES 11, runs, hashes, metrics."""

import json

import pytest

from irtjax.errors import IrtjaxWarning
from irtjax.io import read_responses

T1, T2 = "2024-11-20T12-00-00.123456", "2024-12-01T08-30-00.000001"


def sample(doc_id, value, *, metric="acc", filter="none", doc_hash=True, **more):
    row = {
        "doc_id": doc_id,
        "doc": {"question": f"q{doc_id}", "n": doc_id if doc_id % 2 else str(doc_id)},
        "target": "x",
        "arguments": {"gen_args_0": {"arg_0": "..."}},
        "resps": [["a"]],
        "filtered_resps": ["a"],
        "filter": filter,
        "metrics": [metric],
        "doc_hash": f"hash{doc_id}",
        "prompt_hash": "p",
        "target_hash": "t",
        metric: value,
        **more,
    }
    if not doc_hash:
        del row["doc_hash"]
    return row


@pytest.fixture
def harness(save, tmp_path):
    def write(rows, *, folder="org__model", task="arc", time=T1, name="org/model"):
        suffix = f"_{time}" if time else ""
        save(rows, f"out/{folder}/samples_{task}{suffix}.jsonl")
        if name:
            text = json.dumps({"results": {}, "model_name": name})
            save(text, f"out/{folder}/results_{time}.json")
        return tmp_path / "out"

    return write


def test_models_items_and_benchmarks(harness, cells_of):
    harness([sample(1, 1.0), sample(0, 0.0)], task="arc")
    harness([sample(0, True), sample(2, False)], task="mmlu_law")
    path = harness([sample(0, 1)], folder="other", name=None)
    matrix = read_responses(path)
    assert list(matrix.model_ids) == ["org/model", "other"]
    assert list(matrix.item_ids) == ["arc/1", "arc/0", "mmlu_law/0", "mmlu_law/2"]
    assert list(matrix.item_metadata["benchmark"]) == ["arc", "arc", "mmlu_law", "mmlu_law"]
    assert matrix.item_metadata["item_hash"][0] == "hash1"
    assert cells_of(matrix)["other", "arc/0"] == 1
    assert matrix.provenance.choices["format"] == "lm-eval"
    assert matrix.provenance.choices["metric"] == {"arc": "acc", "mmlu_law": "acc"}
    assert len(matrix.provenance.files) == 3


def test_a_single_samples_file(harness):
    path = harness([sample(0, 1.0)])
    file = next(path.rglob("samples_*.jsonl"))
    assert list(read_responses(file).model_ids) == ["org/model"]
    other = file.rename(file.with_name("renamed.jsonl"))
    assert list(read_responses(other).item_ids) == ["renamed/0"]


GSM = [
    sample(k, value, metric="exact_match", filter=name)
    for name, values in (("strict-match", (0, 1)), ("flexible-extract", (1, 1)))
    for k, value in enumerate(values)
]


def test_case_11_two_filters_are_never_both_items(harness, refused):
    harness([sample(0, 1.0)], task="arc")
    path = harness(GSM, task="gsm8k")
    message = refused(path)
    assert "'gsm8k'" in message
    assert "'strict-match'" in message
    assert "'flexible-extract'" in message
    assert "--filter" in message
    matrix = read_responses(path, filter="strict-match")
    assert list(matrix.item_ids) == ["arc/0", "gsm8k/0", "gsm8k/1"]
    assert matrix.to_dense().tolist() == [[1, 0, 1]]
    assert matrix.provenance.choices["filter"] == {"arc": "none", "gsm8k": "strict-match"}
    assert "'x'" in refused(path, filter="x")


def test_two_metrics_need_a_choice(harness, refused):
    rows = [sample(k, 0.0, acc_norm=1.0, metrics=["acc", "acc_norm"]) for k in range(2)]
    harness(rows, task="arc")
    path = harness([sample(0, 0, metric="em", f1=0.5, metrics=["em", "f1"])], task="squad")
    message = refused(path)
    assert "'acc', 'acc_norm'" in message
    assert "--metric" in message
    assert "2 tasks have several" in message
    matrix = read_responses(path, metric="acc_norm,em")
    assert matrix.provenance.choices["metric"] == {"arc": "acc_norm", "squad": "em"}
    assert matrix.to_dense().tolist() == [[1, 1, 0]]
    assert read_responses(path, metric=["em", "acc"]).to_dense().tolist() == [[0, 0, 0]]


def test_files_without_hash_filter_and_metrics_keys(harness):
    rows = [sample(k, float(k)) for k in range(2)]
    for row in rows:
        for key in ("doc_hash", "prompt_hash", "target_hash", "filter", "metrics"):
            del row[key]
    matrix = read_responses(harness(rows, time=""))
    assert matrix.to_dense().tolist() == [[0, 1]]
    assert "item_hash" not in matrix.item_metadata


def test_old_files_with_two_lines_a_document_are_refused(harness, refused):
    rows = [dict(row) for row in GSM]
    for row in rows:
        del row["filter"]
    assert "two responses" in refused(harness(rows))


def test_lists_and_pairs_are_no_responses(harness, refused):
    rows = [sample(0, 1.0, inst=[True, False], metrics=["acc", "inst"])]
    assert read_responses(harness(rows)).provenance.choices["metric"] == {"arc": "acc"}
    assert "'inst'" in refused(harness(rows), metric="inst")
    message = refused(harness([sample(0, [-3.2, 5], metric="word_perplexity")]))
    assert "'word_perplexity'" in message
    assert read_responses(harness([sample(0, [1.0])])).to_dense()[0, 0] == 1


def test_values_follow_the_policies(harness, refused):
    assert "fractions" in refused(harness([sample(0, 1.0), sample(1, 0.25)]))
    message = refused(harness([sample(0, 1.0), sample(1, 17.5)]))
    assert "'17.5'" in message
    assert "line 2 of" in message
    matrix = read_responses(harness([sample(0, 1.0), sample(1, None), sample(2, float("nan"))]))
    assert matrix.to_dense().tolist() == [[1, -1, -1]]


def test_the_newest_run_is_read(harness, refused):
    harness([sample(0, 0.0)], time=T1)
    path = harness([sample(0, 1.0)], time=T2)
    matrix = read_responses(path)
    assert matrix.to_dense().tolist() == [[1]]
    assert len(matrix.provenance.files) == 1
    assert T1 in matrix.provenance.choices["older_runs_not_read"][0]
    assert "--duplicates" in refused(path, runs="all")
    trials = read_responses(path, runs="all", duplicates="mean")
    assert trials.cells().response.tolist() == [0.5]
    assert trials.cells().weight.tolist() == [2]


def test_an_older_run_in_another_folder_warns(harness):
    harness([sample(0, 0.0)], folder="a", time=T1)
    path = harness([sample(0, 1.0)], folder="b", time=T2)
    with pytest.warns(IrtjaxWarning, match="--runs all"):
        assert read_responses(path).to_dense().tolist() == [[1]]


def test_two_runs_of_one_time_are_refused(harness, refused):
    harness([sample(0, 0.0)], folder="a")
    message = refused(harness([sample(0, 1.0)], folder="b"))
    assert "same time" in message
    assert "--runs all" in message


def test_the_model_name_is_that_of_the_same_time(harness, refused, save):
    harness([sample(0, 0.0)], time=T1, name="one")
    path = harness([sample(0, 1.0)], time=T2, name="two")
    assert set(read_responses(path).model_ids) == {"one", "two"}
    save([sample(0, 1.0)], "out/org__model/samples_x_2025-01-01T00-00-00.jsonl")
    assert "several models" in refused(path)


def test_one_id_with_two_hashes_is_refused(harness, refused):
    harness([sample(0, 0.0), sample(1, 1.0)], folder="a", name="a")
    path = harness([sample(1, 1.0), sample(0, 1.0, doc_hash="")], folder="b", name="b")
    assert read_responses(path).n_items == 2
    message = refused(harness([sample(1, 1.0) | {"doc_hash": "changed"}], folder="b", name="b"))
    assert "'arc/1'" in message
    assert "hash1" in message
    assert "changed" in message
    assert "line 2 of" in message


def test_equal_documents_of_one_run_are_two_items(harness):
    twins = [sample(k, float(k)) | {"doc_hash": "same"} for k in range(2)]
    harness(twins, folder="a", name="a")
    matrix = read_responses(harness(twins[::-1], folder="b", name="b"))
    assert list(matrix.item_ids) == ["arc/0", "arc/1"]
    assert matrix.to_dense().tolist() == [[0, 1], [0, 1]]


def test_an_equal_document_under_another_number_is_the_same_item(harness):
    harness([sample(0, 1.0)], folder="a", name="a")
    path = harness([sample(7, 0.0) | {"doc_hash": "hash0"}], folder="b", name="b")
    matrix = read_responses(path)
    assert list(matrix.item_ids) == ["arc/0"]
    assert matrix.to_dense().tolist() == [[1], [0]]


def test_a_metric_or_filter_that_one_model_lacks_is_refused(harness, refused):
    harness([sample(0, 1.0)], folder="a", name="a")
    path = harness([sample(0, 1.0, metric="acc_norm")], folder="b", name="b")
    assert "--metric" in refused(path)
    message = refused(path, metric="acc")
    assert "'acc'" in message
    assert "'acc_norm'" in message
    path = harness([sample(0, 1.0, filter="f")], folder="b", name="b")
    assert "no samples of filter 'none'" in refused(path, filter="none")


def test_lines_that_are_no_samples(harness, refused, save):
    assert "'doc_id'" in refused(harness([{"x": 1}]))
    assert "line 1" in refused(harness("not json\n"))
    assert "no samples" in refused(harness("\n"))
    save("{", f"out/org__model/results_{T1}.json")
    assert "results_" in refused(harness([sample(0, 1.0)], name=None))
