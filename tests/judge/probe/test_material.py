"""Files of texts are known by their columns; what is missing or unknown is said."""

from pathlib import Path

import numpy as np
import pytest

from judge.probe.cards import Library, read_material
from rating.errors import DataError

LONG = "one two three four five six seven eight nine ten eleven twelve"


def written(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def library_files(folder: Path, numbers: tuple[int, ...] = (1, 2)) -> list[Path]:
    docs = "".join(
        f"<doc><docno>{i}</docno><title>t{i}</title><text>text of\n {i} &amp; more</text></doc>"
        for i in range(1, 4)
    )
    topics = "".join(f"<top><num> {i}</num><title>\nask {i} ?</title></top>" for i in numbers)
    return [
        written(folder, "docs.xml", docs),
        written(folder, "topics.xml", f"<xml>{topics}</xml>"),
        written(folder, "relevant.txt", "1 0 2 1\n1 0 3 2\n2 0 1 1\n2 0 2 0\n"),
    ]


def library_of(files: list[Path]) -> Library:
    library = read_material(files).library
    assert library is not None
    return library


def test_pairs_with_ratings_are_known_by_their_columns(tmp_path: Path) -> None:
    file = written(
        tmp_path, "pairs.csv", "reference,text,fluency,who\na b,a c,3,ann\nd,e,4.5,bob\n"
    )
    (rated,) = read_material([file]).rated
    assert (rated.references, rated.texts) == (("a b", "d"), ("a c", "e"))
    assert (rated.dimensions, rated.ratings.tolist()) == (("fluency",), [[3.0], [4.5]])


def test_pairs_without_a_header_keep_their_first_row(tmp_path: Path) -> None:
    file = written(tmp_path, "pairs.csv", '"A man, running.",A man runs.,5.0\nx y,z,1.25\n')
    (rated,) = read_material([file]).rated
    assert rated.references == ("A man, running.", "x y")
    assert rated.ratings.tolist() == [[5.0], [1.25]]


def test_texts_of_documents_find_their_references_in_another_file(tmp_path: Path) -> None:
    files = [
        written(
            tmp_path, "rated.csv", "doc_id,system,summary,good\n7,s,short,1\n7,t,long,2\n8,s,x,3\n"
        ),
        written(
            tmp_path,
            "sources.csv",
            'doc_id,source,references\n7,all,"[""first"", ""b""]"\n8,all,r\n',
        ),
    ]
    (rated,) = read_material(files).rated
    assert (rated.references, rated.prompt.tolist()) == (("first", "first", "r"), [0, 0, 1])
    assert rated.dimensions == ("good",)
    with pytest.raises(DataError, match="no reference or source of doc_id '7'"):
        read_material(files[:1])
    with pytest.raises(DataError, match="no file that rates"):
        read_material(files[1:])


def test_texts_in_classes_are_known_by_theirs(tmp_path: Path) -> None:
    file = written(tmp_path, "classes.csv", "text,category\nlost card,card\nrate,money\n")
    classes = read_material([file]).classes
    assert classes is not None
    assert (classes.texts, classes.labels) == (("lost card", "rate"), ("card", "money"))


def test_a_library_is_read_from_trec_files(tmp_path: Path) -> None:
    library = library_of(library_files(tmp_path))
    assert (library.questions, library.texts[0]) == (("ask 1 ?", "ask 2 ?"), "text of 1 & more")
    assert library.relevant == {(0, 1): 1.0, (0, 2): 2.0, (1, 0): 1.0}


def test_topics_are_counted_where_their_numbers_are_not_those_of_the_judgements(
    tmp_path: Path,
) -> None:
    by_number = library_of(library_files(tmp_path, (2, 1)))
    assert (by_number.questions[0], by_number.relevant[0, 0]) == ("ask 2 ?", 1.0)
    by_place = library_of(library_files(tmp_path, (1, 4)))
    assert (by_place.questions, by_place.relevant[1, 0]) == (("ask 1 ?", "ask 4 ?"), 1.0)


@pytest.mark.parametrize("left_out", [0, 1, 2])
def test_a_library_takes_all_three_of_its_files(tmp_path: Path, left_out: int) -> None:
    files = library_files(tmp_path)
    del files[left_out]
    missing = ("docs", "questions", "relevance")[left_out]
    with pytest.raises(DataError, match=f"there are no {missing}"):
        read_material(files)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "x,y\n1,2\n", "The purpose of"),
        ("a.csv", "reference,text,who\na,b,ann\n", "holds a rating in every row"),
        ("a.xml", "<html></html>", "neither <doc> nor <top>"),
        ("a.txt", "1 0 2\n", "Line 1 of"),
    ],
)
def test_files_that_cannot_be_told_are_quoted(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        read_material([written(tmp_path, name, text)])


def test_long_texts_come_once_each_and_from_one_file(tmp_path: Path) -> None:
    pairs = f"reference,text,good\n{LONG},{LONG} a,1\n{LONG},short,2\n"
    material = read_material([written(tmp_path, "pairs.csv", pairs), *library_files(tmp_path)])
    assert material.long_texts(5)[0] == "docs.xml", "before those of pairs"
    assert material.long_texts(12) == ("pairs.csv", (LONG, f"{LONG} a"))
    assert material.long_texts(14) == ("", ())


@pytest.mark.published
def test_the_published_collections_are_read_whole(published_data: Path) -> None:
    folder = published_data / "similarity"
    names = ("stsb-en-dev.csv", "newsroom.csv.gz", "newsroom_sources.csv.gz")
    more = ("banking77_test.csv", "cran.all.1400.xml.gz", "cran.qry.xml", "cranqrel.trec.txt")
    material = read_material([folder / name for name in (*names, *more)])
    assert [len(one.texts) for one in material.rated] == [1500, 420]
    assert [len(one.dimensions) for one in material.rated] == [1, 4]
    assert np.unique(material.rated[1].prompt).size == 60
    assert material.classes is not None
    assert (len(material.classes.texts), len(set(material.classes.labels))) == (3080, 77)
    assert material.library is not None
    assert (len(material.library.questions), len(material.library.texts)) == (225, 1398)
