"""Films: what is written can be read back; what cannot be written says so and leaves nothing behind."""

import stat

import numpy as np
import pytest
from PIL import Image

from pcpo.training import video
from pcpo.training.video import checked_format, save_animation


def pictures(count=4):
    """A square that moves to the right."""
    frames = np.full((count, 48, 64, 3), 255, np.uint8)
    for i, frame in enumerate(frames):
        frame[10:20, 5 * i : 5 * i + 10] = (0, 114, 178)
    return list(frames)


def test_a_gif_holds_the_pictures(tmp_path):
    path = save_animation(iter(pictures()), tmp_path / "new" / "film.gif", fps=20)
    with Image.open(path) as film:
        assert getattr(film, "n_frames") == 4  # noqa: B009
        assert film.info["loop"] == 0
        durations = []
        for i, expected in enumerate(pictures()):
            film.seek(i)
            durations.append(film.info["duration"])
            np.testing.assert_array_equal(np.asarray(film.convert("RGB")), expected)
    assert durations == [50, 50, 50, 1500]


def test_it_replaces_what_was_there_whole_or_not_at_all(tmp_path):
    path = tmp_path / "film.gif"
    path.write_text("before")

    def broken():
        yield pictures()[0]
        raise RuntimeError("the simulator fell over")

    with pytest.raises(RuntimeError):
        save_animation(broken(), path)
    assert path.read_text() == "before"
    save_animation(pictures(), str(path))
    assert path.read_bytes()[:3] == b"GIF"
    assert [file.name for file in tmp_path.iterdir()] == ["film.gif"]


@pytest.mark.parametrize(
    ("name", "message"),
    [("film.avi", "film.avi ends in .avi; choose a name that ends in .gif or .mp4"), ("film", "ends in nothing")],
)
def test_other_names_are_refused_before_a_picture_is_taken(tmp_path, name, message):
    def never():
        pytest.fail("a picture was taken")
        yield

    with pytest.raises(ValueError, match=message):
        save_animation(never(), tmp_path / "new" / name)
    assert not (tmp_path / "new").exists()


def test_no_pictures_make_no_film(tmp_path):
    with pytest.raises(ValueError, match="no pictures"):
        save_animation([], tmp_path / "film.gif")
    assert not (tmp_path / "film.gif").exists()


def test_mp4_without_ffmpeg_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValueError, match=r"film.mp4 needs ffmpeg, which is not installed; .* \.gif"):
        save_animation(pictures(), tmp_path / "film.mp4")


def fake_ffmpeg(folder, monkeypatch, script):
    """A program of that name in front of the path: what is asked of ffmpeg can be tested without it."""
    program = folder / "ffmpeg"
    program.write_text("#!/bin/sh\n" + script)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


def test_mp4_gives_ffmpeg_the_pictures_as_they_are(tmp_path, monkeypatch):
    fake_ffmpeg(tmp_path, monkeypatch, 'echo "$@" > "$(dirname "$0")/asked"\ncat\n')
    path = save_animation(pictures(), tmp_path / "film.MP4", fps=25)
    assert path.read_bytes() == b"".join(picture.tobytes() for picture in pictures())
    asked = (tmp_path / "asked").read_text()
    assert "-s 64x48 -r 25" in asked
    assert "yuv420p" in asked


def test_mp4_reports_what_ffmpeg_says(tmp_path, monkeypatch):
    fake_ffmpeg(tmp_path, monkeypatch, "cat > /dev/null\necho 'Unknown encoder libx264' >&2\nexit 1\n")
    with pytest.raises(ValueError, match=r"code 1 \(Unknown encoder libx264\).*\.gif"):
        save_animation(pictures(), tmp_path / "film.mp4")
    assert not (tmp_path / "film.mp4").exists()
    with pytest.raises(ValueError, match="no pictures"):
        save_animation([], tmp_path / "film.mp4")


def test_the_format_can_be_asked_for_beforehand(tmp_path):
    assert checked_format(tmp_path / "film.gif") is video._gif
