"""Requests, responses and their limits: the source of the OpenAPI document."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Discriminator, Field, StrictBool, StrictFloat, StrictInt, Tag

MAX_NODES, MAX_EDGES = 1_000, 10_000  # in a request
MAX_MATCHES = 1_000
MAX_AROUND = 500  # nodes in a neighbourhood
MAX_NAME = 256  # characters
MAX_WEIGHTS = 100  # characters
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
    weight: Weight | None = Field(default=None, description="Required exactly if the graph is weighted.")


class NewNode(_Request):
    """A node to add, or to embed without storing it."""

    name: Name
    edges: list[Name | Link] = Field(
        default_factory=list, max_length=MAX_EDGES, description="Names of its neighbours, existing or new."
    )
    features: list[Number] | dict[str, Value] | None = Field(
        default=None,
        description="All columns in order, or some by column name (by number if columns have no names). "
        "If the model was fitted on a table of mixed columns, an object is a row of that table, "
        "and a column that is left out is missing. Required exactly if the model uses features.",
    )


class NewNodes(_Request):
    """Several nodes, which may be linked to each other."""

    nodes: list[NewNode] = Field(min_length=1, max_length=MAX_NODES)


def _kind(body: Any) -> str:
    return "many" if isinstance(body, NewNodes) or (isinstance(body, dict) and "nodes" in body) else "one"


OneOrMany = Annotated[Annotated[NewNode, Tag("one")] | Annotated[NewNodes, Tag("many")], Discriminator(_kind)]


class Edge(_Request):
    """An edge between two nodes."""

    source: Name
    target: Name
    weight: Weight | None = Field(default=None, description="Required exactly if the graph is weighted.")


class NewEdges(_Request):
    """Edges to add."""

    edges: list[Edge] = Field(min_length=1, max_length=MAX_EDGES)


class VersionedResponse(BaseModel):
    """Version fields of every response; fields that only the explorer uses are not listed."""

    model_config = ConfigDict(extra="allow")
    version: int = Field(description="Number of changes since the store was created.")
    refreshed_to: int = Field(
        description="Version up to which all vectors are updated. If it is below version, vectors near later "
        "changes may be off by more than the tolerance."
    )


class _OfNode(VersionedResponse):
    name: str | int


class Vector(BaseModel):
    """A node's vector."""

    name: str | int
    vector: list[float]


class Changed(VersionedResponse):
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
        description="First column of each part of the vector and the one after its last: role: [180, 200]."
    )


class Match(BaseModel):
    """A node that is similar to another."""

    name: str | int
    score: float


class Matches(_OfNode):
    """The nodes most similar to one, best first."""

    matches: list[Match]


class HypotheticalNode(Vector):
    """The vector that a node would have."""

    place: tuple[float, float] | None = Field(description="Coordinates on the map, once it is drawn.")
    nearest: list[Match]
    warnings: list[str] = Field(description="How it differs from the training data.")
    role: "RoleOf | None" = Field(default=None, description="With why=true, once roles are found.")
    nearest_by_part: dict[str, Match] | None = Field(default=None, description="With why=true.")
    words: list[str] | None = Field(default=None, description="Why it is like the nearest, with why=true.")


class HypotheticalNodes(VersionedResponse):
    """Vectors that nodes would have; nothing is stored."""

    nodes: list[HypotheticalNode]


class RoleOf(BaseModel):
    """The role of a node."""

    role: int
    title: str
    description: str
    memberships: list[float]
    titles: list[str]


class Role(_OfNode, RoleOf):
    """The role of a stored node."""


class Explanation(VersionedResponse):
    """Why two nodes are similar, or not: sentences and numbers."""

    words: list[str]


class Profile(_OfNode):
    """The largest rooted-PageRank values of a node, and the nodes they belong to."""

    weights: list[float]
    nodes: list[str | int | None]
    mass: float


class Neighborhood(_OfNode):
    """The neighbourhood of a node; the node itself comes first."""

    names: list[str | int]
    hops: list[int]
    degrees: list[int]
    x: list[float]
    y: list[float]
    edges: list[tuple[int, int]] = Field(description="Pairs of indices into names.")
    left_out: int


class FoundNames(VersionedResponse):
    """Names that contain a text."""

    names: list[str | int]
    total: int


class Columns(BaseModel):
    """The feature columns that a new node may have."""

    count: int
    names: list[str] | None
    table: dict[str, str] | None = Field(description="Columns of the model's table, and their kinds.")
    weighted: bool = Field(description="Whether edges have weights.")
    fields: list[dict[str, Any]] = Field(description="Columns of the model's table, empty without one.")


class Compacted(VersionedResponse):
    """All changes merged into a new base graph."""

    nodes: int
    edges: int


class Status(VersionedResponse):
    """Whether the service is ready."""

    status: str
    nodes: int
    model: dict[str, Any]
