"""Requests, responses and their limits: the source of the OpenAPI document."""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Discriminator, Field, StrictBool, StrictFloat, StrictInt, Tag


@dataclass(frozen=True)
class Limits:
    """Bounds on requests."""

    body: int = 4 * 2**20  # bytes
    requests: int = 256  # that read, and as many that write, active at the same time
    changes: int = 1024  # waiting for the writer
    seconds: float = 30.0  # timeout; exports may take longer
    body_seconds: float = 20.0  # for a body to arrive


MAX_NODES = 1_000  # a request
MAX_EDGES = 10_000  # a request
MAX_MATCHES = 1_000
MAX_AROUND = 500  # nodes of a neighbourhood
MAX_NAME = 256  # characters
MAX_WEIGHTS = 100  # characters of a query
_LARGEST = 3.4e38  # in float32
Text = Annotated[
    str,
    Field(strict=True, min_length=1, max_length=MAX_NAME, pattern=r"^[^\x00-\x1f\x7f]+$", examples=["ann"]),
]
Whole = Annotated[StrictInt, Field(ge=-(2**63), le=2**63 - 1)]
Name = Text | Whole
Number = Annotated[StrictFloat | StrictInt, Field(ge=-_LARGEST, le=_LARGEST, allow_inf_nan=False)]
Value = Number | StrictBool | Annotated[str, Field(strict=True, max_length=MAX_NAME)] | None
Weight = Annotated[StrictFloat | StrictInt, Field(ge=1e-37, le=_LARGEST, allow_inf_nan=False)]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Link(_Request):
    """An edge from a new node."""

    to: Name
    weight: Weight | None = Field(default=None, description="Needed exactly when the graph is weighted.")


class NewNode(_Request):
    """A node to add or to try out."""

    name: Name
    edges: list[Name | Link] = Field(
        default_factory=list, max_length=MAX_EDGES, description="Names it is linked to, known or also new."
    )
    features: list[Number] | dict[str, Value] | None = Field(
        default=None,
        description="All columns in order, or some by column name (by number where columns have no names). "
        "Where the model was fitted on a table of mixed columns, an object is a row of that table, "
        "and a column that is left out is missing. Needed exactly when the model reads features.",
    )


class NewNodes(_Request):
    """Several nodes at once; they may be linked to each other."""

    nodes: list[NewNode] = Field(min_length=1, max_length=MAX_NODES)


def _one_or_many(body: Any) -> str:
    return "many" if isinstance(body, NewNodes) or (isinstance(body, dict) and "nodes" in body) else "one"


OneOrMany = Annotated[
    Annotated[NewNode, Tag("one")] | Annotated[NewNodes, Tag("many")], Discriminator(_one_or_many)
]


class Edge(_Request):
    """An edge between two nodes."""

    source: Name
    target: Name
    weight: Weight | None = Field(default=None, description="Needed exactly when the graph is weighted.")


class NewEdges(_Request):
    """Edges to add."""

    edges: list[Edge] = Field(min_length=1, max_length=MAX_EDGES)


class OfMoment(BaseModel):
    """What every answer carries; fields that only the explorer reads are not listed."""

    model_config = ConfigDict(extra="allow")
    version: int = Field(description="Changes since the store was created that the answer knows of.")
    refreshed_to: int = Field(
        description="Version up to which all vectors were updated. Below version, some nodes near later "
        "changes may have moved further than the tolerance."
    )


class _OfNode(OfMoment):
    name: str | int


class Vector(BaseModel):
    """A node's vector."""

    name: str | int
    vector: list[float]


class Changed(OfMoment):
    """A change that was stored."""

    refreshed: int = Field(description="Number of vectors that were updated before the answer.")


class Added(Changed):
    """Nodes that were stored."""

    nodes: list[Vector]


class Node(_OfNode):
    """A node and its vector."""

    degree: int
    vector: list[float]
    parts: dict[str, tuple[int, int]] = Field(
        description="Where each part of the vector begins and ends, such as role: [180, 200]."
    )


class Match(BaseModel):
    """A node that is similar to another."""

    name: str | int
    score: float


class Matches(_OfNode):
    """The nodes most similar to one, best first."""

    matches: list[Match]


class Tried(Vector):
    """A node that was tried out."""

    place: tuple[float, float] | None = Field(description="Coordinates on the map, once that is drawn.")
    nearest: list[Match]
    warnings: list[str] = Field(description="How it differs from what the model was fitted on.")
    role: "RoleOf | None" = Field(
        default=None, description="Its role, if asked why and once roles are found."
    )
    nearest_by_part: dict[str, Match] | None = Field(default=None, description="If asked why.")
    words: list[str] | None = Field(
        default=None, description="Why it is like the nearest node, if asked why."
    )


class TriedNodes(OfMoment):
    """Nodes that were tried out; nothing is stored."""

    nodes: list[Tried]


class RoleOf(BaseModel):
    """The role a node plays."""

    role: int
    title: str
    description: str
    memberships: list[float]
    titles: list[str]


class Role(_OfNode, RoleOf):
    """The role that a known node plays."""


class Explanation(OfMoment):
    """Why two nodes are similar, or not: sentences and numbers."""

    words: list[str]


class Profile(_OfNode):
    """The largest rooted-PageRank values of a node, and the nodes they belong to."""

    weights: list[float]
    nodes: list[str | int | None]
    mass: float


class Around(_OfNode):
    """The neighbourhood of a node; the node itself comes first."""

    names: list[str | int]
    hops: list[int]
    degrees: list[int]
    x: list[float]
    y: list[float]
    edges: list[tuple[int, int]] = Field(description="Pairs of indices into names.")
    left_out: int


class Found(OfMoment):
    """Names that hold what was typed."""

    names: list[str | int]
    total: int


class Columns(BaseModel):
    """The feature columns that a new node may have."""

    count: int
    names: list[str] | None
    table: dict[str, str] | None = Field(description="Columns of the model's table, and their kinds.")
    weighted: bool = Field(description="Whether edges carry weights.")
    fields: list[dict[str, Any]] = Field(description="Of the model's table; empty without one.")


class Compacted(OfMoment):
    """A log that was merged into a new base graph."""

    nodes: int
    edges: int


class Status(OfMoment):
    """Whether the service works."""

    status: str
    nodes: int
    model: dict[str, Any]
