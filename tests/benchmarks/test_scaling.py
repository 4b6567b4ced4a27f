"""The plot of `python -m benchmarks engines --scaling`."""

from xml.etree import ElementTree as ET

from benchmarks.engines.scaling import draw

_SVG = '{http://www.w3.org/2000/svg}'


def test_the_plot_has_a_line_for_each_kind_of_work_and_one_for_linear_scaling() -> None:
    drawn = ET.fromstring(
        draw({'sandboxes': [(1, 100.0), (2, 180.0), (4, 300.0)], 'runs': [(1, 10.0), (2, 20.0), (4, 21.0)]})
    )
    lines = [line.attrib['points'].split() for line in drawn.iter(f'{_SVG}polyline')]
    assert [len(line) for line in lines] == [3, 3, 3, 3]
    assert lines[2][:2] == lines[3][:2], 'twice as much with two is linear'
    labels = [text.text for text in drawn.iter(f'{_SVG}text')]
    assert {'sandboxes: 300', 'runs: 21', '1', '2', '4'} <= set(labels)
