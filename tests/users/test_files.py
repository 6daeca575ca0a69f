"""Files of a folder: which count, what they are called, what identifies them."""

from hashlib import blake2b
from pathlib import Path

import pytest

from steptp_dagster.sources.registry import SOURCES
from steptp_dagster.users.files import LARGEST, PREFIX, Content, file_of, files_in, read, safe
from steptp_dagster.users.refusal import REASONS, UserRefusal


def test_only_program_files_of_the_folder_itself_count(tmp_path: Path) -> None:
    for name in ("b.py", "a.py", "_helper.py", ".hidden.py", "notes.txt", "deep/c.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "gone.py").symlink_to(tmp_path / "nowhere")
    assert [file.name for file in files_in(tmp_path)] == ["a.py", "b.py", "gone.py"]
    gone = read(file_of(tmp_path / "gone.py"))
    assert isinstance(gone, UserRefusal)
    assert gone.reason == "unreadable"


@pytest.mark.parametrize(
    "text", ["../../etc", "a/b", "a b", "ä", "x" * 300, "a\nb", "a|b,[c]", "~"]
)
def test_no_text_of_a_user_becomes_an_unsafe_name(text: str) -> None:
    name = safe(text)
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-~")
    assert len(name) < 80
    assert name != safe(text + "_") != safe(text)


def test_names_do_not_meet() -> None:
    texts = ["a b", "a_b", "a-b", "a.b", "a__b", "A_b", f"a_b~{safe('a b')[-8:]}"]
    assert len({safe(text) for text in texts}) == len(texts)
    assert not [program for program in SOURCES if program.startswith(PREFIX)]


def test_programs_of_a_file() -> None:
    file = file_of(Path("my nets.py"))
    assert file.program("") == file.partition == "user_" + safe("my nets")
    assert file.program("Net") == f"{file.partition}.Net"


def digest(folder: Path) -> str:
    content = read(file_of(folder / "main.py"))
    assert isinstance(content, Content)
    return content.code_hash


def test_the_digest_covers_the_text_and_what_it_imports_from_the_folder(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("import torch\nfrom _parts import layer\n")
    alone = digest(tmp_path)
    (tmp_path / "other.py").write_text("x = 1")
    assert digest(tmp_path) == alone
    (tmp_path / "_parts.py").write_text("def f():\n    import blocks.inner\n")
    first = digest(tmp_path)
    (tmp_path / "blocks").mkdir()
    (tmp_path / "blocks" / "inner.py").write_text("x = 1")
    second = digest(tmp_path)
    (tmp_path / "blocks" / "inner.py").write_text("x = 2")
    third = digest(tmp_path)
    (tmp_path / "main.py").write_text("import torch\nfrom _parts import layer  # \n")
    assert len({alone, first, second, third, digest(tmp_path)}) == 5


def test_the_digest_of_a_file_alone_is_that_of_its_text(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("def broken(:")
    assert digest(tmp_path) == blake2b(b"def broken(:", digest_size=16).hexdigest()


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_bytes(b"\xff\xfe")
    refused = read(file_of(tmp_path / "main.py"))
    assert isinstance(refused, UserRefusal)
    assert refused.reason == "unreadable"
    assert str(refused).startswith("main.py: cannot be read: ")
    assert str(refused).endswith(REASONS["unreadable"])


def test_a_file_that_is_no_text_by_its_size_is_not_read(tmp_path: Path) -> None:
    """A hole on the disk: reading it would take the memory that it stands for."""
    with (tmp_path / "huge.py").open("w") as out:
        out.truncate(1 << 40)
    found = read(file_of(tmp_path / "huge.py"))
    assert isinstance(found, UserRefusal)
    assert str(found).startswith(f"huge.py: is no program: {1 << 40} bytes, more than 4194304; ")


@pytest.mark.parametrize("text", ["import huge", "import torch, _parts"])
def test_a_helper_that_is_too_large_to_be_read_is_said(tmp_path: Path, text: str) -> None:
    """It would be imported all the same, and a change in it would not be seen."""
    (tmp_path / "main.py").write_text(f"{text}\n")
    (tmp_path / "_parts.py").write_text("def f():\n    from huge import x\n")
    (tmp_path / "huge.py").write_text(f"x = 1{'0' * (LARGEST - 5)}")
    assert isinstance(read(file_of(tmp_path / "main.py")), Content)
    with (tmp_path / "huge.py").open("a") as out:
        out.write("\n")
    found = read(file_of(tmp_path / "main.py"))
    assert isinstance(found, UserRefusal)
    assert str(found).startswith("huge.py: is no program: 4194305 bytes, more than 4194304; ")


def test_a_helper_that_cannot_be_read_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "helper.py").write_text("x = 1\n")
    (tmp_path / "main.py").write_text("import helper\n")
    plain = Path.read_bytes

    def refused(self: Path) -> bytes:
        if self.name == "helper.py":
            raise PermissionError(13, "Permission denied", str(self))
        return plain(self)

    monkeypatch.setattr(Path, "read_bytes", refused)
    found = read(file_of(tmp_path / "main.py"))
    assert isinstance(found, UserRefusal)
    assert "helper.py" in found.message
