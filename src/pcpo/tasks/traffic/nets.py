"""The road networks: our own plain files, and what SUMO's netconvert makes of them.

Both are kept: the plain files to be read and changed, the built ones so that simulating needs libsumo alone. netconvert
comes with the package ``eclipse-sumo``, which weighs as much again; where it is installed,

    python -m pcpo.tasks.traffic.nets

builds the networks anew, and a test compares what it would build with what is kept.
"""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from xml.etree import ElementTree as ET

FOLDER = Path(__file__).parent.parent / "assets" / "traffic"

JUNCTION_RADII = {"grid-e1": 3.1, "grid-e3": 6.2, "bottleneck": None}
"""The networks, and the radii of their corners in metres; None where nodes say it. A stop line is a lane's width
farther than that from the middle of its junction."""

_OPTIONS = ("--no-turnarounds", "true", "--no-internal-links", "false")


def path(name: str) -> Path:
    """Where a built network is kept."""
    return FOLDER / f"{name}.net.xml"


def fault(file: Path) -> str | None:
    """What is wrong with a file that holds no network at all: SUMO may end the process on reading such a one.

    Returns:
        A few words; None for a file that SUMO can judge by itself.
    """
    try:
        root = ET.parse(file).getroot()
    except (OSError, ET.ParseError) as error:
        return str(error)
    if root.tag != "net" or "version" not in root.attrib or root.find("edge") is None:
        return "it holds no network"
    return None


def build(name: str) -> str:
    """The network as netconvert builds it now, without the comment that says when and by whom.

    Raises:
        FileNotFoundError: There is no netconvert.
    """
    program = shutil.which("netconvert")
    if program is None:
        raise FileNotFoundError("there is no netconvert on the path; pip install eclipse-sumo brings it")
    plain, radius = name.partition("-")[0], JUNCTION_RADII[name]
    command = [program, "-n", f"{plain}.nod.xml", "-e", f"{plain}.edg.xml", "-x", f"{plain}.con.xml", *_OPTIONS]
    if radius is not None:
        command += ["--default.junctions.radius", str(radius)]
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder) / "built.net.xml"
        subprocess.run([*command, "-o", str(built)], cwd=FOLDER, check=True, capture_output=True)
        return re.sub(r"<!--.*?-->\s*", "", built.read_text(), flags=re.DOTALL)


if __name__ == "__main__":
    for network in JUNCTION_RADII:
        path(network).write_text(build(network))
