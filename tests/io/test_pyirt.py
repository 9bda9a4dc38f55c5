"""py-irt's JSON Lines."""

from irtjax.io import read_responses


def test_models_items_and_missing(save):
    rows = [
        {"subject_id": "b", "responses": {"q2": 1, "q1": 0}},
        {"subject_id": 3, "responses": {"q1": 1.0, "q3": None}},
        {"subject_id": "empty", "responses": {}},
    ]
    matrix = read_responses(save(rows, "r.jsonlines.jsonl"))
    assert list(matrix.model_ids) == ["b", "3", "empty"]
    assert list(matrix.item_ids) == ["q2", "q1", "q3"]
    assert matrix.to_dense().tolist() == [[1, 0, -1], [-1, 1, -1], [-1, -1, -1]]
    assert matrix.provenance.choices["format"] == "pyirt"


def test_bad_values_name_the_line(save, refused):
    rows = [{"subject_id": "a", "responses": {"q": 1}}, {"subject_id": "b", "responses": {"q": 2}}]
    message = refused(save(rows, "r.jsonl"))
    assert "'2'" in message
    assert "line 2 of" in message


def test_a_model_on_two_lines_is_a_duplicate(save, refused):
    rows = [{"subject_id": "a", "responses": {"q": k}} for k in (0, 1)]
    path = save(rows, "r.jsonl")
    assert "lines 1 and 2" in refused(path)
    assert read_responses(path, duplicates="last").to_dense()[0, 0] == 1


def test_an_item_twice_on_a_line_is_refused(save, refused):
    text = '{"subject_id": "a", "responses": {"q": 1, "q": 0}}\n'
    message = refused(save(text, "r.jsonl"))
    assert "'q'" in message
    assert "line 1" in message


def test_a_line_of_another_shape_is_refused(save, refused):
    rows = [{"subject_id": "a", "responses": {"q": 1}}, {"subject_id": "b"}]
    assert "line 2" in refused(save(rows, "r.jsonl"))
    rows[1] = {"subject_id": "b", "responses": {"": 1}}
    assert "line 2" in refused(save(rows, "r.jsonl"))
    assert "no responses" in refused(save([{"subject_id": "a", "responses": {}}], "r.jsonl"))
