from __future__ import annotations

import pytest

from specdec_operator.cluster.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    Expired,
    Forbidden,
    Invalid,
    NameTaken,
    NotFound,
    ServerUnavailable,
    TooManyRequests,
    error_from_status,
)

KINDS = [
    (400, "BadRequest", BadRequest),
    (403, "Forbidden", Forbidden),
    (404, "NotFound", NotFound),
    (409, "AlreadyExists", AlreadyExists),
    (409, "Conflict", Conflict),
    (410, "Expired", Expired),
    (422, "Invalid", Invalid),
    (429, "TooManyRequests", TooManyRequests),
    (500, "InternalError", ServerUnavailable),
    (503, "ServiceUnavailable", ServerUnavailable),
]


@pytest.mark.parametrize(("status", "reason", "kind"), KINDS)
def test_each_answer_has_its_error(status: int, reason: str, kind: type[ApiError]) -> None:
    assert type(error_from_status(status=status, body={"reason": reason}, request="get pods")) is kind


def test_an_apply_of_a_field_that_the_schema_lacks_is_invalid_though_the_server_says_500() -> None:
    body = {"message": "failed to create typed patch object (a/b): .spec.x: field not declared in schema"}
    assert isinstance(error_from_status(status=500, body=body, request="apply"), Invalid)


def test_an_error_says_what_was_asked_and_what_was_answered() -> None:
    body = {"reason": "Forbidden", "message": 'User "x" cannot create'}
    error = error_from_status(status=403, body=body, request="create jobs.batch (/apis)")
    assert str(error) == 'create jobs.batch (/apis): 403 Forbidden: User "x" cannot create'


def test_too_many_requests_says_when_to_return() -> None:
    error = error_from_status(status=429, body={}, request="get", retry_after=3.0)
    assert isinstance(error, TooManyRequests)
    assert error.retry_after == 3.0


def test_a_taken_name_says_whose_it_is_and_what_to_do() -> None:
    error = NameTaken(kind="Service", namespace="a", name="b", controller="Other/c")
    assert "Service a/b exists and is controlled by Other/c; rename or delete it" in str(error)
