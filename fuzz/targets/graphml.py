"""GraphML, as a network and as node features."""

from pathlib import Path

from fuzz.inputs import network_or_features
from fuzz.outcome import Target

_HEAD = b'<?xml version="1.0" encoding="utf-8"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
SEEDS = [
    b"\0"
    + _HEAD
    + b'<key id="d0" for="edge" attr.name="weight" attr.type="double"><default>1.0</default></key>'
    b'<key id="d1" for="node" attr.name="age" attr.type="int"/><graph edgedefault="undirected">'
    b'<node id="0"><data key="d1">3</data></node><node id="1"/>'
    b'<edge source="0" target="1"><data key="d0">2.5</data></edge></graph></graphml>',
    b"\0" + _HEAD + b'<graph edgedefault="directed"><node id="a"/><node id="b"/>'
    b'<edge source="a" target="b"/><edge source="b" target="a"/></graph></graphml>',
    b"\1"
    + _HEAD
    + b'<key id="d1" for="node" attr.name="t" attr.type="string"/><graph edgedefault="undirected">'
    b'<node id="0"><data key="d1">x</data></node><node id="1"><data key="d1">y</data></node>'
    b'<node id="2"/></graph></graphml>',
    b'\0<!DOCTYPE lolz [<!ENTITY lol "lol">]><graphml><graph><node id="&lol;"/></graph></graphml>',
]


def begin(folder: Path) -> Target:
    """Return a function that reads bytes as GraphML."""
    return network_or_features(folder, "network.graphml")
