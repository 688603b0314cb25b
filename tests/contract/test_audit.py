"""The audit of licences: words count, not letters."""

import pytest
from audit.__main__ import is_allowed


@pytest.mark.parametrize(
    "licence", ["MIT", "BSD-3-Clause", "Apache 2.0", "LGPLv3+", "0BSD", "MPL-2.0", "PSF-2.0"]
)
def test_permissive_licences_are_allowed(licence):
    assert is_allowed(licence)


@pytest.mark.parametrize("licence", ["GPL-3.0", "AGPLv3", "Proprietary, limited use", "Miscellaneous", ""])
def test_others_are_not_even_where_they_hold_the_letters(licence):
    assert not is_allowed(licence)
