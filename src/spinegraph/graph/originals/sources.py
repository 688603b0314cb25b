"""Where each network's public original lies, what it must hold, and how it is converted."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from spinegraph.errors import DownloadError
from spinegraph.graph.files.npz import write_npz
from spinegraph.graph.originals import airports, amazon, planetoid, ppi, snap
from spinegraph.graph.originals.download import Original, Progress, fetch
from spinegraph.graph.originals.fingerprint import fingerprint
from spinegraph.graph.originals.layout import Arrays

_SNAP = "https://snap.stanford.edu/data"
_STRUC2VEC = "https://raw.githubusercontent.com/leoribeiro/struc2vec/master/graph"
_PLANETOID = (
    "https://raw.githubusercontent.com/kimiyoung/planetoid/af6abf468a772cc055bec88c52e4d6f51b7c37e3/data"
)

# In the order of planetoid.PARTS: x, y, tx, ty, allx, ally, graph, test.index.
_PLANETOID_SHA256 = {
    "cora": (
        "23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab",
        "94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1",
        "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a",
        "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad",
        "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543",
        "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71",
        "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d",
        "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875",
    ),
    "citeseer": (
        "d20de19150741e555de0ed037195630fc194114ebc7fd72ced62810148aa22f6",
        "8ba87e515d8e3ee3cf52f6d2c5b86aa73f11ecad825a808455209ec26cd54924",
        "539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21",
        "55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce",
        "2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668",
        "f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95",
        "d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7",
        "2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4",
    ),
    "pubmed": (
        "fbe9cb5c47200d1b7769a26e579be3b7130b556831f9d850e77c4c74f2599b33",
        "e6c807633307a07ed659249006536a147c7999c797f11a2560752990181b41b3",
        "4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d",
        "ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd",
        "508e538e2abdccdd54c4d3e9f49d638b4af7107d85845f66ddea5a5152658b7e",
        "0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e",
        "5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9",
        "b101d421688bbaecbd82e8a18f1e282378d6830f3a37666f28ebc47f844341b5",
    ),
}


@dataclass(frozen=True)
class Source:
    """A network's original files, their conversion, and the fingerprint of what they hold."""

    originals: tuple[Original, ...]
    convert: Callable[[list[Path]], Arrays]
    fingerprint: str
    parts: tuple[str, ...] = ("features", "labels")


def convert_original(name: str, folder: Path, progress: Progress | None = None) -> Path:
    """Fetch a network's originals, convert and check them, and return ``folder/<name>.npz``.

    Three things are checked. A file's SHA-256, where unrelated public sources agree on it (Planetoid, PPI).
    Elsewhere the checksum is pinned on first download and verified ever after. And, for every network, that
    the converted content has the fingerprint that this package knows.

    Examples
    --------
    >>> convert_original("cora", Path("cache"))   # doctest: +SKIP
    PosixPath('cache/cora.npz')
    """
    source, target = SOURCES[name], folder / f"{name}.npz"
    files = [fetch(original, folder / "originals", progress) for original in source.originals]
    arrays = source.convert(files)
    found = fingerprint(arrays, source.parts)
    if found != source.fingerprint:
        listed = ", ".join(original.url for original in source.originals[:2])
        raise DownloadError(
            f"{name}: the content must have fingerprint {source.fingerprint}, got {found}: "
            f"{listed} ... no longer hold the published network. Nothing was kept but {folder / 'originals'}"
        )
    write_npz(target, arrays)
    return target


def _planetoid(name: str, content: str) -> Source:
    """Describe one of the three citation networks."""
    originals = tuple(
        Original(f"ind.{name}.{part}", f"{_PLANETOID}/ind.{name}.{part}", sha256)
        for part, sha256 in zip(planetoid.PARTS, _PLANETOID_SHA256[name], strict=True)
    )
    return Source(
        originals, lambda files: planetoid.convert(dict(zip(planetoid.PARTS, files, strict=True))), content
    )


def _facebook(ego: int, content: str) -> Source:
    """Describe one ego network."""
    original = Original("facebook.tar.gz", f"{_SNAP}/facebook.tar.gz")
    return Source((original,), lambda files: snap.convert_facebook(files[0], ego), content)


def _twitch(country: str, content: str) -> Source:
    """Describe one country."""
    original = Original("twitch.zip", f"{_SNAP}/twitch.zip")
    return Source((original,), lambda files: snap.convert_twitch(files[0], country), content)


def _airports(country: str, content: str) -> Source:
    """Describe one country's flights."""
    names = (f"{country}-airports.edgelist", f"labels-{country}-airports.txt")
    originals = tuple(Original(name, f"{_STRUC2VEC}/{name}") for name in names)
    return Source(originals, lambda files: airports.convert(*files), content)


SOURCES: Mapping[str, Source] = {
    "airports_brazil": _airports("brazil", "ba555d84548b23dc"),
    "airports_europe": _airports("europe", "c8829e7a8365d9c4"),
    "amazon_photo": Source(
        (
            Original(
                "amazon_electronics_photo.npz",
                "https://github.com/shchur/gnn-benchmark/raw/master/data/npz/amazon_electronics_photo.npz",
            ),
        ),
        lambda files: amazon.convert(files[0]),
        "bbe09fafd85f0049",
    ),
    "citeseer": _planetoid("citeseer", "f833d8761d217180"),
    "cora": _planetoid("cora", "31c73f0fc5b463f4"),
    "ego_twitter": Source(
        (Original("twitter_combined.txt.gz", f"{_SNAP}/twitter_combined.txt.gz"),),
        lambda files: snap.convert_twitter(files[0]),
        "6fd467709172a4fe",
    ),
    "fb686": _facebook(686, "7aca2941ac7c1b29"),
    "fb_ego_414": _facebook(414, "a59ac6d54e267b88"),
    "ppi": Source(
        (
            Original(
                "ppi.zip",
                "https://data.dgl.ai/dataset/ppi.zip",
                "1f5b2b09ac0f897fa6aa1338c64ab75a5473674cbba89380120bede8cddb2a6a",
            ),
        ),
        lambda files: ppi.convert(files[0]),
        "b28b6fefcea78af1",
        parts=(),
    ),
    "pubmed": _planetoid("pubmed", "5d2eed7a0765f6a5"),
    "twitch_ENGB": _twitch("ENGB", "dd6ae92d2a822d2a"),
    "twitch_ES": _twitch("ES", "fc85dcca8091269d"),
    "twitch_PTBR": _twitch("PTBR", "2885d5b849d33af3"),
    "twitch_RU": _twitch("RU", "e2f32d3a96e3e1a2"),
}
