"""The OpenAPI document keeps its word: whatever is sent, no fault and no answer that it does not tell of."""

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from running_service import Running

CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)


@pytest.fixture(scope="module")
def probed(model_folder, tmp_path_factory):
    with Running(model_folder, tmp_path_factory.mktemp("probed") / "store") as running:
        yield running


def probe(running, examples):
    schema = schemathesis.openapi.from_url(f"{running.url}/openapi.json")
    headers = {"Authorization": f"Bearer {running.token}"}
    tried = 0
    for result in schema.get_all_operations():
        operation = result.ok()

        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def check(case):
            nonlocal tried
            tried += 1
            answer = case.call(headers=headers)
            if answer.status_code != 503:  # what is not ready yet says so
                case.validate_response(answer, checks=CHECKS)

        check()
    return tried


def test_random_requests_find_no_fault(probed):
    assert probe(probed, 15) > 100
    assert probed.client.get("/readyz").status_code == 200


@pytest.mark.slow
def test_many_random_requests_find_no_fault(probed):
    assert probe(probed, 500) > 1000
    assert probed.client.get("/readyz").status_code == 200
