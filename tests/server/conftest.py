"""One small model for all tests of the service, and one process for those that do not mind its state."""

import pytest

from running_service import Running, small_model


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory):
    return small_model(tmp_path_factory.mktemp("service") / "model")


@pytest.fixture(scope="session")
def shared_service(model_folder, tmp_path_factory):
    store = tmp_path_factory.mktemp("shared") / "store"
    with Running(model_folder, store, draws=True, is_fresh=True) as running:
        yield running


@pytest.fixture
def service(model_folder, tmp_path):
    with Running(model_folder, tmp_path / "store") as running:
        yield running
