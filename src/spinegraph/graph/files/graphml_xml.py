"""Parses GraphML with the standard library's expat; entity declarations are refused, nothing is fetched."""

from dataclasses import dataclass, field
from typing import Any, BinaryIO, NoReturn
from xml.parsers import expat

from spinegraph.errors import GraphFormatError
from spinegraph.graph.files.text_blocks import shown

_STEP = 2**20
_DEEPEST = 64


@dataclass(frozen=True)
class Attribute:
    """A declared ``key``: what it is called, its type and the value where an element has none."""

    name: str
    kind: str
    default: str | None = None


@dataclass
class GraphML:
    """What a GraphML file holds, as written.

    Attributes
    ----------
    nodes : dict of id to its data (key id to text)
    edges : list of (source id, target id, data, line)
    attributes : dict of (domain, key id) to Attribute
        The domain is ``"node"`` or ``"edge"``.
    directed : bool
    """

    nodes: dict[str, dict[str, str]] = field(default_factory=dict)
    edges: list[tuple[str, str, dict[str, str], int]] = field(default_factory=list)
    attributes: dict[tuple[str, str], Attribute] = field(default_factory=dict)
    directed: bool = False


def parse_graphml(stream: BinaryIO, path: str) -> GraphML:
    """Parse an open GraphML file.

    Examples
    --------
    >>> import io
    >>> parse_graphml(io.BytesIO(b'<graphml><graph><node id="ann"/></graph></graphml>'), "tiny.graphml").nodes
    {'ann': {}}
    """
    handler = _Handler(path)
    try:
        while piece := stream.read(_STEP):
            handler.parser.Parse(piece, False)
        handler.parser.Parse(b"", True)
    except expat.ExpatError as fault:
        message = expat.errors.messages.get(fault.code, str(fault))
        raise GraphFormatError(
            f"{path}:{fault.lineno}: not well-formed XML ({message}); write it again"
        ) from fault
    except (ValueError, LookupError) as fault:  # an encoding that Python does not know
        if isinstance(fault, GraphFormatError):
            raise
        raise GraphFormatError(f"{path}: not readable as XML: {fault}") from fault
    if handler.graphs == 0:
        raise GraphFormatError(f"{path}: XML without a <graph> element; expected GraphML")
    return handler.found


class _Handler:
    """Collects nodes, edges and data as expat meets them."""

    def __init__(self, path: str) -> None:
        self.path, self.found, self.graphs = path, GraphML(), 0
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.text
        self.parser.EntityDeclHandler = self.refuse_entity
        self._stack: list[str] = []
        self._owner: dict[str, str] | None = None  # where <data> of the current node or edge goes
        self._key = ""  # what the text being read belongs to
        self._pieces: list[str] | None = None

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition(" ")[2]
        self._stack.append(tag)
        if len(self._stack) > _DEEPEST:
            self.fail(f"elements nested more than {_DEEPEST} deep; GraphML needs a handful")
        if len(self._stack) == 1 and tag != "graphml":
            self.fail(f"the document is <{tag}>, expected <graphml>")
        if tag == "graph":
            self._start_graph(attributes)
        elif tag == "key":
            self._declare(attributes)
        elif tag == "node":
            node = self.need(attributes, "id")
            if node in self.found.nodes:
                self.fail(f"node {shown(node)} is given twice; ids must be unique")
            self._owner = self.found.nodes[node] = {}
        elif tag == "edge":
            self._start_edge(attributes)
        elif tag == "hyperedge":
            self.fail("hyperedges are not supported; list them as edges between two nodes")
        elif tag in ("data", "default"):
            self._key = attributes.get("key", self._key)
            self._pieces = []

    def end(self, tag: str) -> None:
        tag = tag.rpartition(" ")[2]
        self._stack.pop()
        if tag in ("node", "edge"):
            self._owner = None
        elif tag in ("data", "default") and self._pieces is not None:
            value = "".join(self._pieces).strip()
            self._pieces = None
            if tag == "data" and self._owner is not None:
                self._owner[self._key] = value
            elif tag == "default":
                for domain in ("node", "edge"):
                    if (known := self.found.attributes.get((domain, self._key))) is not None:
                        self.found.attributes[domain, self._key] = Attribute(known.name, known.kind, value)

    def text(self, text: str) -> None:
        if self._pieces is not None:
            self._pieces.append(text)

    def refuse_entity(self, name: str, *rest: Any) -> None:
        self.fail(f"declares the entity {shown(name)}, which is refused: entities can swell without bound")

    def need(self, attributes: dict[str, str], key: str) -> str:
        if key not in attributes:
            self.fail(f"<{self._stack[-1]}> without {key}=...; GraphML requires it")
        return attributes[key]

    def fail(self, message: str) -> NoReturn:
        raise GraphFormatError(f"{self.path}:{self.parser.CurrentLineNumber}: {message}")

    def _start_graph(self, attributes: dict[str, str]) -> None:
        self.graphs += 1
        if self.graphs > 1:
            self.fail("a second <graph>; only one flat graph a file is read: split the file")
        self.found.directed = attributes.get("edgedefault") == "directed"

    def _start_edge(self, attributes: dict[str, str]) -> None:
        self._owner = {}
        source, target = self.need(attributes, "source"), self.need(attributes, "target")
        self.found.edges.append((source, target, self._owner, self.parser.CurrentLineNumber))
        if attributes.get("directed") == "true":
            self.found.directed = True

    def _declare(self, attributes: dict[str, str]) -> None:
        self._key = self.need(attributes, "id")
        attribute = Attribute(attributes.get("attr.name", self._key), attributes.get("attr.type", "string"))
        domain = attributes.get("for", "all")
        for known in ("node", "edge"):
            if domain in (known, "all"):
                self.found.attributes[known, self._key] = attribute
