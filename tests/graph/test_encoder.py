import copy
import json
import subprocess
import sys
import warnings
from datetime import UTC, date, datetime, time

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import StandardScaler, normalize

from spinegraph.errors import (
    GraphFormatError,
    MissingFeaturesError,
    ModelFormatError,
    ParameterError,
    SkippedColumnWarning,
    SpineError,
    SpineWarning,
)
from spinegraph.graph.encoder import FeatureEncoder, bucket

PEOPLE = {
    "team": ["north", "south", None, "north", "west"],
    "age": [31.0, 45.0, None, 28.0, 61.0],
    "remote": [True, False, True, None, False],
    "joined": [date(2020, 1, 1), date(2021, 6, 1), None, date(2019, 3, 9), date(2024, 2, 29)],
    "level": [1, 2, 3, 4, 5],
}


def as_pandas(columns):
    return pd.DataFrame(columns)


def as_polars(columns):
    return pl.DataFrame(columns)


def as_rows(columns):
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def column_of(encoder, matrix, name):
    return matrix.toarray()[:, encoder.feature_names_.index(name)]


def test_a_frame_that_arrow_cannot_hold_is_refused():
    class Frame:
        columns, dtypes = ["a", "b"], ["Int128", "Int64"]  # as those of polars

        def __arrow_c_stream__(self, schema=None):
            raise pa.ArrowInvalid("Invalid or unsupported format string: '_pli128'")

    with pytest.raises(GraphFormatError, match=r"one type each: .*_pli128"):
        FeatureEncoder().fit(Frame())


@pytest.mark.parametrize("form", [dict, pa.table, as_pandas, as_polars, as_rows])
def test_every_form_of_a_table_gives_the_same_features(form):
    expected = FeatureEncoder().fit(PEOPLE)
    encoder = FeatureEncoder().fit(form(PEOPLE))
    assert encoder.feature_names_ == expected.feature_names_
    assert encoder.kinds_ == expected.kinds_
    np.testing.assert_array_equal(
        encoder.transform(form(PEOPLE)).toarray(), expected.transform(PEOPLE).toarray()
    )


def test_output_is_a_sparse_float32_matrix_with_named_columns():
    encoder = FeatureEncoder()
    matrix = encoder.fit_transform(PEOPLE)
    assert encoder.scaling_ is None
    assert isinstance(matrix, sp.csr_array)
    assert matrix.dtype == np.float32
    assert matrix.shape == (5, len(encoder.feature_names_)) == (5, encoder.num_features)


def test_numbers_are_standardised_as_scikit_learn_does():
    values = np.random.default_rng(0).normal(50, 9, size=200)
    expected = StandardScaler().fit_transform(values[:, None])[:, 0]
    np.testing.assert_allclose(
        FeatureEncoder().fit_transform({"x": values}).toarray()[:, 0], expected, rtol=1e-5, atol=1e-6
    )


def test_categories_are_one_hot_as_pandas_does():
    column = ["b", "a", "c", "a"]
    encoder = FeatureEncoder().fit({"x": column})
    assert encoder.feature_names_ == ("x = a", "x = b", "x = c")
    np.testing.assert_array_equal(
        encoder.transform({"x": column}).toarray(), pd.get_dummies(column).to_numpy(dtype=np.float32)
    )


def test_a_number_gap_becomes_the_mean_and_raises_its_own_flag():
    encoder = FeatureEncoder()
    matrix = encoder.fit_transform(PEOPLE)
    assert column_of(encoder, matrix, "age")[2] == 0.0
    assert column_of(encoder, matrix, "age is missing").tolist() == [0, 0, 1, 0, 0]
    assert column_of(encoder, matrix, "team is missing").tolist() == [0, 0, 1, 0, 0]
    assert column_of(encoder, matrix, "remote")[3] == 0.5
    assert "level is missing" not in encoder.feature_names_


def test_a_gap_in_a_column_that_had_none_is_filled_and_counted():
    encoder = FeatureEncoder().fit({"age": [20.0, 40.0], "team": ["a", "b"]})
    matrix, report = encoder.transform_report({"age": [None, 40.0], "team": ["a", None]})
    assert matrix.toarray().tolist() == [[0, 1, 0], [1, 0, 0]]
    assert report.missing == {"age": 1, "team": 1}


def test_nan_counts_as_missing_in_every_form():
    for form in (dict, as_pandas, as_polars):
        encoder = FeatureEncoder().fit(form({"x": [1.5, float("nan"), 3.5]}))
        assert encoder.feature_names_ == ("x", "x is missing")


def test_unknown_categories_are_all_zero_and_counted():
    encoder = FeatureEncoder().fit({"team": ["north", "south"]})
    matrix, report = encoder.transform_report({"team": ["east", "north", "east", "up"]})
    assert matrix.toarray().tolist() == [[0, 0], [1, 0], [0, 0], [0, 0]]
    assert report.unknown == {"team": 3}


def test_a_category_of_many_values_keeps_the_commonest_and_one_for_all_others():
    zips = [f"z{number}" for number in range(200) for _ in range(2 + 3 * (number < 10))]
    encoder = FeatureEncoder(max_levels=10).fit({"zip": zips})
    assert encoder.kinds_ == {"zip": "category"}
    assert encoder.feature_names_ == (*(f"zip = z{number}" for number in range(10)), "zip = other")
    matrix, report = encoder.transform_report({"zip": ["z3", "z150", "never seen", None]})
    assert matrix.indices.tolist() == [3, 10, 10]
    assert report.unknown == {}
    again = FeatureEncoder.from_state(*encoder.state())
    assert (again.transform({"zip": zips}) != encoder.transform({"zip": zips})).nnz == 0


def test_a_value_called_other_is_one_of_the_others():
    encoder = FeatureEncoder({"x": "category"}, max_levels=2).fit(
        {"x": ["other"] * 5 + ["a"] * 4 + ["b", "c"]}
    )
    assert encoder.feature_names_ == ("x = a", "x = other")
    assert encoder.transform({"x": ["other", "b", "a"]}).indices.tolist() == [1, 1, 0]


TOPICS = {"money": "invoices audit ledger budget tax", "code": "compiler kernel patch release server"}


def writing(count, seed=0):
    """Texts of five to nine words: those of one topic, and common ones."""
    rng, topics = np.random.default_rng(seed), list(TOPICS)
    common = ["the", "and", "of", "we", "with", "our", "team", "writes", "about", "for"]
    texts, labels = [], []
    for number in range(count):
        label = topics[number % 2]
        words = [*rng.choice(TOPICS[label].split(), 3), *rng.choice(common, rng.integers(2, 7))]
        texts.append(" ".join(rng.permutation(words)).capitalize() + ".")
        labels.append(label)
    return texts, labels


def test_text_is_the_tfidf_of_scikit_learn():
    texts = [*writing(80)[0], "Ärger über Öl, Ärger über öl", "snake_case 42 x", "x y", "nothing usual"]
    later = ["invoices Invoices AUDIT of a kernel", "words never seen", ""]
    encoder = FeatureEncoder({"about": "text"}).fit({"about": texts})
    peer = TfidfVectorizer(min_df=2, max_df=0.5).fit(texts)
    assert encoder.feature_names_ == tuple(f"about: {word}" for word in peer.get_feature_names_out())
    for some in (texts, later):
        found = encoder.transform({"about": some})
        assert isinstance(found, sp.csr_array)
        np.testing.assert_allclose(found.toarray(), peer.transform(some).toarray(), rtol=1e-6, atol=1e-7)


def test_the_words_in_most_rows_are_kept_and_those_in_more_than_half_are_not():
    texts = ["usual audit tax"] * 4 + ["usual audit"] * 3 + ["usual tax plan"] * 2 + ["plan b c"] * 9
    encoder = FeatureEncoder({"about": "text"}, max_words=2).fit({"about": texts})
    assert encoder.feature_names_ == ("about: audit", "about: usual")


def test_chinese_and_japanese_are_read_by_character():
    texts = ["税务审计报告", "税务发票", "カーネル開発", "服务器 kernel", "审计发票", "カーネル"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder = FeatureEncoder().fit({"about": texts})
    assert encoder.kinds_ == {"about": "text"}
    assert {"about: 税", "about: 审", "about: カ"} <= set(encoder.feature_names_)


def test_a_gap_in_text_has_no_words_and_its_own_flag():
    texts = ["audit of invoices", None, "invoices and audit", "", "kernel"]
    encoder = FeatureEncoder({"about": "text"}).fit({"about": texts})
    matrix, report = encoder.transform_report({"about": texts})
    assert column_of(encoder, matrix, "about is missing").tolist() == [0, 1, 0, 0, 0]
    assert matrix.sum(axis=1)[3:].tolist() == [0, 0]
    assert (report.missing, report.unknown) == ({"about": 1}, {"about": 2})
    assert encoder.is_word.tolist() == [True] * encoder.num_features


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (writing(40)[0], "text"),
        (writing(4)[0], "text"),
        (["Senior Accountant", "Head of Audit", "Clerk"] * 20, "category"),
        ([f"Clerk {number % 90} level" for number in range(300)], "text"),
        ([f"street-{number % 90}" for number in range(300)], "category"),
        ([f"user{number}@mail.org" for number in range(100)], "ignore"),
        ([f"https://pages.net/{number}" for number in range(100)], "ignore"),
        ([f"word{number} other{number} third{number}" for number in range(30)], "ignore"),
        (["2024-01-01", "2024-01-02"] * 5, "date"),
    ],
)
def test_what_strings_are_taken_for(column, kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkippedColumnWarning)
        found = FeatureEncoder().fit({"x": column, "y": np.arange(len(column)) + 0.5})
    assert found.kinds_["x"] == kind


@pytest.mark.parametrize("column", [["$5", "$7", "n/a"], ["31/01/2024", "28/02/2024", "-"], ["30", "41", ""]])
def test_a_gap_in_words_is_one_also_alone(column):
    encoder = FeatureEncoder().fit({"x": column})
    together = encoder.transform({"x": column}).toarray()
    for row, value in zip(together, column, strict=True):
        assert encoder.transform({"x": [value]}).toarray().tolist() == [row.tolist()]


@pytest.mark.parametrize(
    ("column", "numbers"),
    [
        (["2.765,72", "1.000,00", "3,5"], [2765.72, 1000, 3.5]),
        (["7,890.50", "12", "1,000"], [7890.5, 12, 1000]),
        (["7,890", "8,120"], [7890, 8120]),
        (["0,125", "0,250"], [0.125, 0.25]),
        (["0,5", "1,5e-10", ",25", "-2,5E+3"], [0.5, 1.5e-10, 0.25, -2500]),
        (["$424", "$1,300", "-$5"], [424, 1300, -5]),
        (["2765,72 €", "12 €", "EUR 1"], None),
        (["2765,72 €", "12 €", "?"], [2765.72, 12, np.nan]),
        (["39%", "12 %"], [39, 12]),
        (["39%", "0.4"], None),
        (["$5", "5 €"], None),
        (["1 234", "5'678", "9"], [1234, 5678, 9]),
        (["30", "41", "n/a", "NA", "-", "?", "unknown", "None"], [30, 41, *[np.nan] * 6]),
        ([30, 41, "n/a", None], [30, 41, np.nan, np.nan]),
        (["30", "41", "abc"], None),
        (["007", "012"], None),
        (["1.2.3", "1.2.4"], None),
        (["n/a", "-"], None),
    ],
)
def test_texts_of_numbers_are_numbers(column, numbers):
    encoder = FeatureEncoder().fit({"x": column, "y": np.arange(len(column)) + 0.5})
    if numbers is None:
        assert encoder.kinds_["x"] == "category"
        return
    known = np.array(numbers)
    plain = FeatureEncoder().fit({"x": known, "y": np.arange(len(column)) + 0.5})
    assert encoder.kinds_ == plain.kinds_
    assert encoder.feature_names_ == plain.feature_names_
    asked = {"x": column, "y": [1] * len(column)}
    found = FeatureEncoder.from_state(*encoder.state()).transform(asked).toarray()
    np.testing.assert_array_equal(found, plain.transform(asked | {"x": known}).toarray())


@pytest.mark.parametrize(
    ("column", "days"),
    [
        (["18.02.2024", "1.3.2024"], ["2024-02-18", "2024-03-01"]),
        (["01/09/2020", "25/09/2020", "n/a"], ["2020-09-01", "2020-09-25", None]),
        (["01/09/2020", "09/25/2020"], ["2020-01-09", "2020-09-25"]),
        (["2024-02-18", "-", "2024-03-01 10:30"], ["2024-02-18", None, "2024-03-01T10:30"]),
    ],
)
def test_texts_of_dates_are_dates_in_the_order_of_their_column(column, days):
    encoder, plain = FeatureEncoder().fit({"x": column}), FeatureEncoder().fit({"x": days})
    assert encoder.kinds_ == plain.kinds_ == {"x": "date"}
    np.testing.assert_array_equal(
        encoder.transform({"x": column}).toarray(), plain.transform({"x": days}).toarray()
    )


def test_how_a_column_is_written_is_learned_once():
    encoder = FeatureEncoder().fit({"pay": ["2.765,72", "1,5"], "since": ["01/09/2020", "25/09/2020"]})
    again = FeatureEncoder.from_state(*encoder.state())
    found = [
        each.transform({"pay": ["1.234"], "since": ["02/03/2021"]}).toarray() for each in (encoder, again)
    ]
    plain = encoder.transform({"pay": [1234.0], "since": [date(2021, 3, 2)]}).toarray()
    np.testing.assert_array_equal(found, [plain, plain])


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (
            [*map(str, range(30, 60)), "abc"] * 2,
            "is read as words because of 'abc'; if those are gaps, empty them",
        ),
        (
            ["01/09/2020", "02/03/2020"],
            "is read as words, since '01/09/2020' may begin with the day or the month",
        ),
        (["31.02.2024"] + ["18.02.2024", "1.1.2024"] * 15, "is read as words because of '31.02.2024'"),
    ],
)
def test_columns_that_are_nearly_numbers_or_dates_are_told(column, words):
    with pytest.warns(SpineWarning, match=words):
        assert FeatureEncoder().fit({"x": column}).kinds_ == {"x": "category"}


def test_a_column_of_numbers_and_one_word_gets_one_warning():
    column = [*map(str, range(61)), "abc"]
    with pytest.warns(SpineWarning) as caught:
        FeatureEncoder().fit({"x": column, "y": [1.0, 2.0] * 31})
    (message,) = (str(each.message) for each in caught)
    assert message.startswith(
        "column 'x' is left out: read as words because of 'abc'; if those are gaps, empty"
    )


def test_a_categorical_of_numbers_stays_one_and_words_that_hold_a_number_are_no_fault():
    assert FeatureEncoder().fit(pd.DataFrame({"x": pd.Categorical(["1", "2"])})).kinds_ == {"x": "category"}
    assert FeatureEncoder().fit({"x": ["red", "blue", "5"] * 40}).kinds_ == {"x": "category"}


def test_numbers_mixed_with_text_in_a_data_frame_are_read_as_in_a_file():
    frame = pd.DataFrame({"age": [30, 41.5, "n/a", None], "floor": [1, "two", 1.0, True]})
    encoder = FeatureEncoder().fit(frame)
    assert encoder.feature_names_ == ("age", "age is missing", "floor = 1", "floor = true", "floor = two")


def test_columns_are_summed_up_by_kind_with_the_values_that_share_one():
    table = {
        "city": [f"c{i % 200}" for i in range(400)],
        "age": range(400),
        "id": [f"x{i}y" for i in range(400)],
    }
    with pytest.warns(SkippedColumnWarning):
        encoder = FeatureEncoder().fit(table)
    summary = ["city category (136 values share one column)", "age number", "id left out"]
    assert encoder.summary_ == FeatureEncoder.from_state(*encoder.state()).summary_ == summary


def test_rows_without_any_value_are_filled_and_share_one_flag():
    words = {f"word {number}": [1.0, 0.0, None, 0.0, 0.0] for number in range(20)}
    table = PEOPLE | {"remote": [True, False, None, None, False], "level": [1, 2, None, 4, 5], **words}
    encoder = FeatureEncoder().fit(table)
    assert encoder.kinds_["word 3"] == "count"
    assert encoder.feature_names_[-1] == "no row in the table"
    assert [name for name in encoder.feature_names_ if "missing" in name] == ["remote is missing"]
    matrix, report = encoder.transform_report(table)
    empty = dict(zip(encoder.feature_names_, matrix.toarray()[2].tolist(), strict=True))
    filled = {"remote": pytest.approx(1 / 3), "remote is missing": 1, "no row in the table": 1}
    assert {name: value for name, value in empty.items() if value} == filled
    assert report.missing == dict.fromkeys(table, 1) | {"remote": 2}
    assert len(encoder.column_of_feature) == len(encoder.is_word) == encoder.num_features
    again = FeatureEncoder.from_state(*encoder.state())
    np.testing.assert_array_equal(again.transform(table).toarray(), matrix.toarray())


def test_a_row_without_values_needs_no_flag_where_there_was_none():
    encoder = FeatureEncoder().fit({"age": [20.0, 40.0], "team": ["a", "b"]})
    assert encoder.transform({"age": [None], "team": [None]}).toarray().tolist() == [[0, 0, 0]]


def test_the_hash_is_the_same_in_another_process():
    code = "from spinegraph.graph.encoder import bucket; print(bucket('Lisbon', 2**20))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(found.stdout) == bucket("Lisbon", 2**20) == 831475


def test_dates_are_standardised_seconds_however_they_are_written():
    days = ["2024-01-01", "2024-01-03", "2024-01-05"]
    typed = FeatureEncoder().fit({"when": [date.fromisoformat(day) for day in days]})
    written = FeatureEncoder().fit({"when": days})
    assert typed.kinds_ == written.kinds_ == {"when": "date"}
    ask = {"when": ["2024-01-03T00:00:00Z", "2024-01-03T02:00:00+02:00", "2024-01-03"]}
    assert typed.transform(ask).toarray().tolist() == [[0.0]] * 3
    exact = np.array([-1, 0, 1]) * np.sqrt(1.5)
    np.testing.assert_allclose(typed.transform({"when": days}).toarray()[:, 0], exact, rtol=1e-5)
    moments = pd.DataFrame({"when": pd.to_datetime(days)})
    np.testing.assert_allclose(typed.transform(moments).toarray()[:, 0], exact, rtol=1e-5)


def test_times_of_day_and_durations_are_numbers():
    encoder = FeatureEncoder().fit({"start": [time(8), time(10)]})
    assert encoder.kinds_ == {"start": "number"}
    assert encoder.transform({"start": [time(9)]}).toarray().tolist() == [[0.0]]


def test_identifiers_are_ignored_with_a_warning_that_says_how_to_include_them():
    table = {"note": [f"user-{number}" for number in range(50)], "level": list(range(50))}
    said = (
        r"'note' is left out: 50 of 50 values differ, so it looks like an identifier; columns=\{'note': 'cat"
    )
    with pytest.warns(SkippedColumnWarning, match=said):
        encoder = FeatureEncoder().fit(table)
    assert encoder.feature_names_ == ("level",)
    assert encoder.kinds_ == {"level": "number", "note": "ignore"}
    assert encoder.transform(table).shape == (50, 1)
    assert encoder.transform({"level": [3]}).shape == (1, 1)  # what was left out is not asked for


def test_the_users_word_overrides_the_choice_without_a_warning():
    table = {"note": [f"user-{number}" for number in range(50)], "floor": list(range(50)), "raw": [2.5] * 50}
    encoder = FeatureEncoder({"note": "category", "floor": "category", "raw": "raw"}).fit(table)
    assert encoder.kinds_ == {"note": "category", "floor": "category", "raw": "raw"}
    assert (column_of(encoder, encoder.transform(table), "raw") == 2.5).all()
    assert FeatureEncoder({"note": "ignore", "floor": "ignore"}).fit(table).feature_names_ == ("raw",)


def test_empty_and_nested_columns_are_left_out_with_a_warning():
    with pytest.warns(SkippedColumnWarning) as caught:
        encoder = FeatureEncoder().fit({"empty": [None, None], "tags": [["a"], ["b"]], "x": [1.0, 2.0]})
    assert len(caught) == 2
    assert encoder.feature_names_ == ("x",)


def test_a_constant_column_is_zero_not_noise():
    for value in (0.0, 0.1, 1e-300, 1e300, -7.3):
        matrix = FeatureEncoder({"x": "number"}).fit_transform({"x": [value] * 7})
        assert matrix.nnz == 0
    assert (FeatureEncoder.for_matrix(np.full((7, 2), 0.1)).transform(np.full((7, 2), 0.1)) == 0).all()


def test_an_integer_a_float_and_a_text_are_one_level():
    encoder = FeatureEncoder({"code": "category"}).fit({"code": [1, 2, 3]})
    for column in ([2], [2.0], ["2"], np.array([2], dtype=np.uint8)):
        assert encoder.transform({"code": column}).toarray().tolist() == [[0, 1, 0]]
    flags = FeatureEncoder().fit({"flag": [True, False]})
    for column in ([True], [1], ["true"], ["1"]):
        assert flags.transform({"flag": column}).toarray().tolist() == [[1]]


def test_a_far_value_stays_finite():
    encoder = FeatureEncoder().fit({"x": [0.0, 1.0, 2.0]})
    assert np.isfinite(encoder.transform({"x": [1e300]}).toarray()).all()
    assert FeatureEncoder().fit_transform({"x": [1.7e308, -1.7e308]}).toarray().tolist() == [[1], [-1]]


def test_many_mostly_empty_columns_are_scaled_by_row_like_a_matrix():
    counts = np.random.default_rng(0).poisson(0.2, size=(40, 30)).astype(float)
    table = {f"word {number}": counts[:, number] for number in range(30)} | {"age": np.arange(40) + 20.0}
    encoder = FeatureEncoder()
    matrix = encoder.fit_transform(table)
    assert encoder.feature_names_[0] == "age"
    np.testing.assert_allclose(matrix.toarray()[:, 1:], normalize(counts), rtol=1e-6)


def test_sparse_counts_are_scaled_to_unit_rows_and_zero_rows_stay():
    dense = np.random.default_rng(1).poisson(0.1, size=(30, 50))
    dense[3] = 0
    counts = sp.csr_array(dense)
    encoder = FeatureEncoder.for_matrix(counts)
    scaled = encoder.transform(counts)
    assert encoder.scaling_ == "row"
    assert isinstance(scaled, sp.csr_array)
    np.testing.assert_allclose(scaled.toarray(), normalize(counts).toarray(), rtol=1e-6)
    sums = FeatureEncoder.for_matrix(counts, "row_sum").transform(counts)
    np.testing.assert_allclose(sums.toarray(), normalize(counts, norm="l1").toarray(), rtol=1e-6)


def test_dense_numbers_are_standardised_by_column_and_stay_dense():
    numbers = np.random.default_rng(2).normal(4, 3, size=(50, 4))
    encoder = FeatureEncoder.for_matrix(numbers)
    scaled = encoder.transform(numbers)
    assert encoder.scaling_ == "column"
    assert isinstance(scaled, np.ndarray)
    np.testing.assert_allclose(scaled, StandardScaler().fit_transform(numbers), rtol=1e-4, atol=1e-5)


def test_sparse_numbers_below_zero_keep_their_zeros():
    numbers = sp.csr_array(np.array([[1.0, 0.0], [-3.0, 0.0], [0.0, 2.0]]))
    encoder = FeatureEncoder.for_matrix(numbers)
    scaled = encoder.transform(numbers)
    assert scaled.nnz == 3
    np.testing.assert_allclose(scaled.power(2).mean(axis=0), 1.0, rtol=1e-6)
    np.testing.assert_allclose(encoder.transform(numbers.toarray()), scaled.toarray(), rtol=1e-6)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_raw_matrix_passes_untouched_when_asked(form):
    numbers = form(np.array([[1.0, -200.5], [0.0, 3.25]], dtype=np.float32))
    found = FeatureEncoder.for_matrix(numbers, scaling="none").transform(numbers)
    assert type(found) is type(numbers)
    assert (found != numbers).sum() == 0


def test_matrix_features_are_named_by_the_caller_or_by_place():
    numbers = np.ones((3, 2))
    assert FeatureEncoder().fit(numbers).feature_names_ == ("feature 0", "feature 1")
    named = FeatureEncoder.for_matrix(numbers, feature_names=["a", "b"])
    assert FeatureEncoder.from_state(*named.state()).feature_names_ == ("a", "b")
    with pytest.raises(ParameterError, match="must have 2 names; got 1"):
        FeatureEncoder.for_matrix(numbers, feature_names=["a"])


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_matrix_with_unusable_values_names_the_place(value, form):
    with pytest.raises(GraphFormatError, match=r"features\[1, 2\] is"):
        FeatureEncoder.for_matrix(form(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, value]])))


@pytest.mark.parametrize(
    "wrong", [np.ones(3), np.ones((2, 2, 2)), np.array([["a", "b"]]), np.ones((1, 1), "c16")]
)
def test_a_matrix_of_the_wrong_kind_is_refused(wrong):
    with pytest.raises(GraphFormatError, match=r"features must (have shape \(n, f\)|be real numbers)"):
        FeatureEncoder.for_matrix(wrong)


def test_a_matrix_of_another_width_is_refused():
    encoder = FeatureEncoder.for_matrix(np.ones((3, 4)))
    with pytest.raises(MissingFeaturesError, match="fitted on 4 features per node, but this matrix has 5"):
        encoder.transform(np.ones((3, 5)))


def test_missing_and_extra_columns_are_named():
    encoder = FeatureEncoder().fit({"age": [1.0, 2.0], "team": ["a", "b"]})
    with pytest.raises(MissingFeaturesError, match="missing 'team'; unknown 'town'"):
        encoder.transform({"age": [1.0], "town": ["x"]})
    with pytest.raises(MissingFeaturesError, match="unknown 'town'"):
        encoder.transform({"age": [1.0], "team": ["a"], "town": ["x"]})
    lenient = FeatureEncoder(extra="ignore").fit({"age": [1.0, 2.0]})
    matrix = lenient.transform({"age": [1.5], "town": ["x"]})
    assert matrix.shape == (1, 1)
    with pytest.raises(MissingFeaturesError, match="missing 'age'"):
        lenient.transform({"town": ["x"]})


@pytest.mark.parametrize(
    ("columns", "table", "message"),
    [
        ({}, {"x": [1.0, np.inf]}, "column 'x', row 1: inf is not finite"),
        ({"x": "raw"}, {"x": [1.0, None]}, "column 'x', row 1: gap in a raw column"),
        ({"x": "count"}, {"x": [1.0, -2.0]}, "column 'x', row 1: count -2"),
        (
            {"x": "number"},
            {"x": ["1", "two"]},
            "column 'x': expected numbers, got 'two'; correct it, or empty it",
        ),
        ({"x": "number"}, {"x": ["1,5", "-", "high"]}, "column 'x': expected numbers, got 'high'"),
        ({"x": "boolean"}, {"x": ["yes", "true"]}, "true, false, 1 or 0; got 'yes'"),
        ({"x": "date"}, {"x": ["2024-01-01", "soon"]}, "ISO 8601 date.*got 'soon'"),
        ({"x": "number"}, {"x": [date(2024, 1, 1)]}, "expected numbers, got date32"),
        ({"x": "category"}, {"x": [["a"], ["b"]]}, "expected single values"),
        ({}, {"x": [1, ["two"]]}, "column 'x': values must have one type"),
        ({}, {"x": [1, 2], "y": [1]}, "the same length"),
        ({}, {"x": np.ones((2, 2))}, "column 'x': expected one dimension"),
        ({}, {"x": 5}, "column 'x': expected a sequence"),
        ({}, [{"x": 1}, 5], "row 1: expected a dict"),
        ({}, "words", "got str"),
        ({}, {"x": []}, "without rows"),
        ({"x": "ignore"}, {"x": [1, 2]}, "no column is left"),
        ({}, pa.table([[1], [2]], names=["x", "x"]), "got 'x' more than once"),
        ({}, {1: [1], "1": [2]}, "also differ as text"),
        ({"x": "raw"}, {"x": [1e300]}, "does not fit in float32"),
    ],
)
def test_bad_tables_are_refused_with_the_column_and_the_rule(columns, table, message):
    with pytest.raises(GraphFormatError, match=message):
        FeatureEncoder(columns).fit_transform(table)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"columns": {"x": "colour"}}, "column 'x': kind must be one of .*got 'colour'"),
        ({"columns": {"y": "number"}}, "columns: the table has x; got 'y'"),
        ({"max_levels": 0}, "max_levels must be"),
        ({"max_words": 2**21}, "max_words must be"),
        ({"scaling": "tall"}, "scaling must be one of"),
        ({"extra": "drop"}, "extra must be"),
    ],
)
def test_bad_settings_are_refused_at_fit(settings, message):
    with pytest.raises(ParameterError, match=message):
        FeatureEncoder(**settings).fit({"x": [1, 2]})


def test_an_encoder_that_is_not_fitted_says_so():
    with pytest.raises(ParameterError, match="call fit"):
        FeatureEncoder().transform({"x": [1]})


def test_a_failed_fit_leaves_the_earlier_one():
    encoder = FeatureEncoder().fit({"x": [1.0, 2.0]})
    with pytest.raises(GraphFormatError):
        encoder.fit({"x": [np.inf]})
    assert encoder.transform({"x": [1.5]}).shape == (1, 1)


def test_no_rows_give_no_rows():
    encoder = FeatureEncoder().fit(PEOPLE)
    assert encoder.transform([]).shape == (0, encoder.num_features)
    assert encoder.transform({name: [] for name in PEOPLE}).shape == (0, encoder.num_features)


def test_categorical_types_and_zoned_times_are_understood():
    moments = pd.to_datetime(["2024-01-01T00:00:00.123456789Z", "2024-01-02T00:00:00Z"], format="ISO8601")
    frame = pd.DataFrame({"team": pd.Categorical(["a", "b"]), "when": moments})
    encoder = FeatureEncoder({"when": "category"}).fit(frame)
    assert encoder.kinds_ == {"team": "category", "when": "category"}
    again = encoder.transform({"team": ["b"], "when": [datetime(2024, 1, 2, tzinfo=UTC)]})
    assert again.sum() == 2


values = {
    "number": st.floats(allow_nan=True, allow_infinity=False, width=32) | st.none(),
    "category": st.text(max_size=3) | st.none(),
    "boolean": st.booleans() | st.none(),
    "date": st.dates(date(1900, 1, 1), date(2100, 1, 1)) | st.none(),
    "text": st.text(max_size=9) | st.sampled_from(["to be", "or not to be", "not 42"]) | st.none(),
}


@st.composite
def tables(draw):
    count = draw(st.integers(1, 8))
    kinds = draw(
        st.dictionaries(st.text(max_size=4), st.sampled_from(sorted(values)), min_size=1, max_size=5)
    )
    table = {
        name: draw(st.lists(values[kind], min_size=count, max_size=count)) for name, kind in kinds.items()
    }
    return kinds, table


@given(tables())
def test_a_saved_encoder_replays_exactly(made):
    kinds, table = made
    encoder = FeatureEncoder(kinds, max_levels=3, max_words=8).fit(table)
    meta, arrays = encoder.state()
    again = FeatureEncoder.from_state(json.loads(json.dumps(meta)), arrays)
    assert again.feature_names_ == encoder.feature_names_
    first, second = encoder.transform(table), again.transform(table)
    assert np.isfinite(first.toarray()).all()
    np.testing.assert_array_equal(first.toarray(), second.toarray())


@given(tables())
def test_rows_are_encoded_one_by_one_as_together(made):
    kinds, table = made
    encoder = FeatureEncoder(kinds, max_levels=3, max_words=8).fit(table)
    together = encoder.transform(table).toarray()
    for row, expected in zip(as_rows(table), together, strict=True):
        np.testing.assert_array_equal(encoder.transform([row]).toarray()[0], expected)


def test_a_saved_matrix_encoder_replays_exactly():
    numbers = np.random.default_rng(3).normal(size=(9, 3))
    for matrix in (numbers, sp.csr_array(numbers), np.eye(9)):
        encoder = FeatureEncoder.for_matrix(matrix)
        again = FeatureEncoder.from_state(*encoder.state())
        difference = encoder.transform(matrix) - again.transform(matrix)
        assert abs(difference).sum() == 0


@pytest.mark.parametrize("scaling", ["row", "row_sum", "column", "none"])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_a_matrix_encoder_that_comes_back_scales_as_before(scaling, kind):
    matrix = kind(np.array([[3, 4, 0], [0, 2, 5]], dtype=np.float32))
    encoder = FeatureEncoder.for_matrix(matrix, scaling)
    again = FeatureEncoder.from_state(*encoder.state()).transform(matrix)
    before = encoder.transform(matrix)
    assert type(again) is type(before)
    dense = [each.toarray() if kind is sp.csr_array else each for each in (again, before)]
    np.testing.assert_array_equal(*dense)


TEXT = {
    "name": "about",
    "kind": "text",
    "has_gaps": True,
    "words": ["audit", "tax"],
    "rows_with": [2, 3],
    "rows": 4,
}
HASHED = {"name": "town", "kind": "hashed", "has_gaps": False, "width": 8}  # as 0.1.0 wrote it
TABLE_STATE = FeatureEncoder({"level": "category"}).fit(PEOPLE).state()[0]
MATRIX_STATE = FeatureEncoder.for_matrix([[1.0, 2.0], [3.0, 5.0]]).state()


@pytest.mark.parametrize(
    "change",
    [
        {"format": "pickle"},
        {"version": 2},
        {"version": True},
        {"extra": "run"},
        {"source": "elsewhere"},
        {"columns": []},
        {"columns": "all"},
        {"columns": [5]},
        {"columns": TABLE_STATE["columns"] * 2},
        {"columns": [TABLE_STATE["columns"][0] | {"kind": "eval"}]},
        {"columns": [TABLE_STATE["columns"][0] | {"levels": ["a", "a"]}]},
        {"columns": [TABLE_STATE["columns"][0] | {"levels": ["a", 5]}]},
        {"columns": [TABLE_STATE["columns"][1] | {"mean": float("nan")}]},
        {"columns": [TABLE_STATE["columns"][1] | {"mean": "0"}]},
        {"columns": [TABLE_STATE["columns"][1] | {"mean": 10**400}]},
        {"columns": [TABLE_STATE["columns"][1] | {"scale": 0.0}]},
        {"columns": [TABLE_STATE["columns"][1] | {"kind": "raw", "has_gaps": True}]},
        {"columns": [TABLE_STATE["columns"][0] | {"has_other": True}]},
        {"columns": [HASHED | {"width": 10**12}]},
        {"columns": [HASHED | {"has_gaps": 1}]},
        {"columns": [TEXT | {"words": ["audit", "audit"]}]},
        {"columns": [TEXT | {"words": ["audit"]}]},
        {"columns": [TEXT | {"rows_with": [0, 1]}]},
        {"columns": [TEXT | {"rows_with": [2, 5]}]},
        {"columns": [TEXT | {"rows_with": [2, True]}]},
        {"columns": [TEXT | {"rows": -1}]},
        {"missing_rows": 1},
        {"left_out": {"note": "number"}},
        {"left_out": {"team": "ignore"}},
        {"left_out": None},
    ],
)
def test_a_hostile_table_state_is_refused(change):
    with pytest.raises(ModelFormatError, match="encoder"):
        FeatureEncoder.from_state(TABLE_STATE | change, {})


def test_a_state_whose_counts_do_not_come_last_is_refused():
    meta, _ = FeatureEncoder({"x": "raw", "y": "count"}).fit({"x": [1.0], "y": [2.0]}).state()
    meta["columns"].reverse()
    with pytest.raises(ModelFormatError, match="count columns must come last"):
        FeatureEncoder.from_state(meta, {})


@pytest.mark.parametrize(
    ("change", "arrays"),
    [
        ({"scaling": "auto"}, {}),
        ({"width": -1}, {}),
        ({"width": 3}, {}),
        ({"names": ["one"]}, {}),
        ({"names": [1, 2]}, {}),
        ({}, {"mean": np.zeros(3)}),
        ({}, {"scale": None}),
        ({}, {"scale": np.zeros(2)}),
        ({}, {"scale": np.array([1.0, np.nan])}),
        ({}, {"mean": np.array([1.0, np.inf])}),
        ({}, {"mean": np.array([1, 2])}),
    ],
)
def test_a_hostile_matrix_state_is_refused(change, arrays):
    given_arrays = {key: value for key, value in (MATRIX_STATE[1] | arrays).items() if value is not None}
    with pytest.raises(ModelFormatError, match="encoder"):
        FeatureEncoder.from_state(MATRIX_STATE[0] | change, given_arrays)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(json_values, st.sampled_from(sorted(TABLE_STATE)), st.sampled_from(sorted(TABLE_STATE["columns"][1])))
def test_any_changed_state_is_refused_or_works(value, key, column_key):
    changed = copy.deepcopy(TABLE_STATE) | {key: value}
    inner = copy.deepcopy(TABLE_STATE)
    inner["columns"][1][column_key] = value
    for meta in (value, changed, inner):
        try:
            encoder = FeatureEncoder.from_state(meta, {})
            encoder.transform(PEOPLE)
        except SpineError:
            pass


def test_a_state_of_0_1_0_makes_the_columns_it_made():
    old = {key: TABLE_STATE[key] for key in TABLE_STATE if key != "missing_rows"}
    team = {key: value for key, value in TABLE_STATE["columns"][0].items() if key != "has_other"}
    old |= {"columns": [team, HASHED], "left_out": {"note": "text", "id": "skip"}}
    encoder = FeatureEncoder.from_state(old, {})
    assert encoder.kinds_ == {"team": "category", "town": "hashed", "note": "ignore", "id": "ignore"}
    assert encoder.feature_names_[-1] == "town # 7"
    matrix = encoder.transform({"team": ["nowhere"], "town": ["Lisbon"]})
    assert matrix.indices.tolist() == [4 + bucket("Lisbon", 8)]


def test_advice_to_include_a_column_is_given_only_where_it_can_be():
    with pytest.warns(SkippedColumnWarning) as warned:
        FeatureEncoder().fit({"x": [[1], [2]], "nothing": [None, None], "y": [1.5, 2.5]})
    assert [str(warning.message).rpartition("; ")[2] for warning in warned] == [
        "columns={'x': 'ignore'} silences this warning",
        "columns={'nothing': 'ignore'} silences this warning",
    ]
    assert not any("includes" in str(warning.message) for warning in warned)


def test_two_columns_of_one_name_in_a_data_frame_are_called_that():
    with pytest.raises(GraphFormatError, match="columns must have unique names"):
        FeatureEncoder().fit(pd.DataFrame([[1, 2]], columns=["a", "a"]))
