"""What requests and responses look like, and their limits: the source of the OpenAPI document."""

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Discriminator, Field, StrictBool, StrictFloat, StrictInt, Tag


@dataclass(frozen=True)
class Limits:
    """Bounds on requests.

    Attributes
    ----------
    body : int
        Bytes of a request's body.
    requests : int
        Requests worked on at the same time.
    changes : int
        Changes that wait for the writer.
    seconds : float
        Until a request is given up; exports may take longer.
    """

    body: int = 4 * 2**20
    requests: int = 256
    changes: int = 1024
    seconds: float = 30.0


MOST_NODES = 1_000  # a request
MOST_EDGES = 10_000  # a request
MOST_MATCHES = 1_000
MOST_AROUND = 500  # nodes of a neighbourhood
MOST_NAME = 256  # characters


def is_loopback(host: str) -> bool:
    """Say whether only this machine reaches an address to listen on."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


_LARGEST = 3.4e38  # what float32 holds
Text = Annotated[
    str,
    Field(strict=True, min_length=1, max_length=MOST_NAME, pattern=r"^[^\x00-\x1f\x7f]+$", examples=["ann"]),
]
Whole = Annotated[StrictInt, Field(ge=-(2**63), le=2**63 - 1)]
Name = Text | Whole
Number = Annotated[StrictFloat | StrictInt, Field(ge=-_LARGEST, le=_LARGEST, allow_inf_nan=False)]
Value = Number | StrictBool | Annotated[str, Field(strict=True, max_length=MOST_NAME)] | None
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
        default_factory=list, max_length=MOST_EDGES, description="Names it is linked to, known or also new."
    )
    features: list[Number] | dict[str, Value] | None = Field(
        default=None,
        description="All columns in order, or some by column name (by number where columns have no names). "
        "Where the model was fitted on a table of mixed columns, an object is a row of that table, "
        "and what is left out is a gap. Needed exactly when the model reads features.",
    )


class NewNodes(_Request):
    """Several nodes at once; they may be linked to each other."""

    nodes: list[NewNode] = Field(min_length=1, max_length=MOST_NODES)


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

    edges: list[Edge] = Field(min_length=1, max_length=MOST_EDGES)


class Vector(BaseModel):
    """A node's vector."""

    name: str | int
    vector: list[float]


class Added(BaseModel):
    """Nodes that are stored now."""

    version: int = Field(description="Changes since the store began, this one included.")
    refreshed: int = Field(description="How many vectors were computed anew.")
    nodes: list[Vector]


class Changed(BaseModel):
    """A change that is stored now."""

    version: int
    refreshed: int


class Node(BaseModel):
    """A node and its vector."""

    name: str | int
    version: int
    degree: int
    vector: list[float]


class Match(BaseModel):
    """A node that is like another."""

    name: str | int
    score: float


class Matches(BaseModel):
    """Nodes by how much they are like one, most alike first."""

    name: str | int
    version: int
    matches: list[Match]


class Tried(BaseModel):
    """A node that was tried out."""

    name: str | int
    vector: list[float]
    place: tuple[float, float] | None = Field(description="Where it lands on the map, once that is drawn.")
    nearest: list[Match]
    warnings: list[str] = Field(description="How it is unlike what the model was fitted on.")


class TriedNodes(BaseModel):
    """Nodes that were tried out; nothing is stored."""

    version: int
    nodes: list[Tried]


class Role(BaseModel):
    """The role a node plays."""

    name: str | int
    version: int
    role: int
    title: str
    description: str
    memberships: list[float]
    titles: list[str]


class Explanation(BaseModel):
    """Why two nodes are alike, or not: sentences and numbers."""

    model_config = ConfigDict(extra="allow")
    version: int
    words: list[str]


class Profile(BaseModel):
    """The largest rooted-PageRank values of a node and who holds them."""

    name: str | int
    version: int
    weights: list[float]
    nodes: list[str | int | None]
    mass: float


class Around(BaseModel):
    """The small network around a node; the node itself comes first."""

    name: str | int
    version: int
    names: list[str | int]
    hops: list[int]
    degrees: list[int]
    x: list[float]
    y: list[float]
    edges: list[tuple[int, int]] = Field(description="Pairs of places in names.")
    left_out: int


class Map(BaseModel):
    """Every node's place on the map, as columns."""

    version: int
    method: str
    names: list[str | int]
    x: list[float]
    y: list[float]
    degree: list[int]
    role: list[int] | None = Field(description="Numbers of titles; null until roles are found.")
    titles: list[str]
    descriptions: list[str]
    label: list[int] | None = Field(description="Numbers of labels, -1 where a node has none.")
    labels: list[str]


class Found(BaseModel):
    """Names that begin with what was typed."""

    version: int
    names: list[str | int]
    total: int


class Columns(BaseModel):
    """The feature columns that a new node may have."""

    count: int
    names: list[str] | None
    table: dict[str, str] | None = Field(
        description="Columns of the table that the model was fitted on, and what each was taken for."
    )
    weighted: bool = Field(description="Whether edges carry weights.")


class Compacted(BaseModel):
    """A log that was folded into a new base graph."""

    version: int
    nodes: int
    edges: int


class Status(BaseModel):
    """Whether the service works."""

    status: str
    version: int
    nodes: int
    model: dict[str, Any]
