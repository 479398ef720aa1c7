"""The built networks against the plain files that they were built from, without SUMO."""

from xml.etree import ElementTree as ET

import pytest

from pcpo.tasks.traffic import nets
from pcpo.tasks.traffic.scene import LANE


def entries(file, kind):
    """What a file says of one kind of thing, as dictionaries, without what netconvert adds inside junctions."""
    found = [entry.attrib for entry in ET.parse(file).getroot().iter(kind)]
    return [entry for entry in found if not entry.get("id", entry.get("from", "")).startswith(":")]


def plain(name, kind):
    """The same of our own files."""
    file = {"edge": "edg", "node": "nod", "connection": "con"}[kind]
    return entries(nets.FOLDER / f"{name.partition('-')[0]}.{file}.xml", kind)


@pytest.mark.parametrize("name", nets.JUNCTION_RADII)
def test_the_same_roads(name):
    """From and to where, how long, how fast, and with how many lanes."""
    built = {edge["id"]: edge for edge in entries(nets.path(name), "edge")}
    lanes = entries(nets.path(name), "lane")
    assert built.keys() == {edge["id"] for edge in plain(name, "edge")}
    for edge in plain(name, "edge"):
        other = built[edge["id"]]
        assert (other["from"], other["to"]) == (edge["from"], edge["to"])
        mine = [lane for lane in lanes if lane["id"].rpartition("_")[0] == edge["id"]]
        assert len(mine) == int(edge["numLanes"])
        for lane in mine:
            assert float(lane["length"]) == float(edge["length"])
            assert float(lane["speed"]) == float(edge["speed"])


@pytest.mark.parametrize("name", nets.JUNCTION_RADII)
def test_the_same_connections(name):
    """Lane by lane, and no others."""
    ours, built = (
        sorted((link["from"], link["fromLane"], link["to"], link["toLane"]) for link in links)
        for links in (plain(name, "connection"), entries(nets.path(name), "connection"))
    )
    assert built == ours


@pytest.mark.parametrize("name", nets.JUNCTION_RADII)
def test_the_same_junctions(name):
    """In the same places, seen from where the network begins; lights and zippers are what they are."""
    nodes, built = plain(name, "node"), {node["id"]: node for node in entries(nets.path(name), "junction")}
    assert built.keys() == {node["id"] for node in nodes}
    for axis in "xy":
        first = min(float(node[axis]) for node in nodes)
        assert all(float(built[node["id"]][axis]) == float(node[axis]) - first for node in nodes)
    for node in nodes:
        if node.get("type") in {"traffic_light", "zipper"}:
            assert built[node["id"]]["type"] == node["type"]


@pytest.mark.parametrize("name", ["grid-e1", "grid-e3"])
def test_links_of_lights_are_in_the_order_that_we_speak_to_them(name):
    """Downwards, to the left, upwards, to the right: the letters of every state that is shown."""
    links = [link for link in entries(nets.path(name), "connection") if "tl" in link]
    assert len(links) == 16
    ways = ("left", "top", "right", "bot")  # roads that lead there, see grid.approaches
    for link in links:
        assert link["from"].startswith(ways[int(link["linkIndex"])])
        assert link["tl"] in {f"center{i}" for i in range(4)}


@pytest.mark.parametrize(("name", "metres"), [("grid-e1", 6.3), ("grid-e3", 9.4)])
def test_stop_lines_by_hand(name, metres):
    """A lane's width beyond the corner's radius: where the road from the left ends before the light at x = 300."""
    (lane,) = (lane for lane in entries(nets.path(name), "lane") if lane["id"] == "bot0_0_0")
    x, _ = map(float, lane["shape"].split()[-1].split(","))
    assert 300 - x == pytest.approx(metres) == pytest.approx((nets.JUNCTION_RADII[name] or 0) + LANE)
