"""The lines of Cython that a coverage report counts."""

from __future__ import annotations

from collections import defaultdict

from fuzz import coverage

C = """static int f(void) {
  /* "sums.pyx":7
 *     return 1             # <<<<<<<<<<<<<<
 */
  r = 1;
  goto exit;
  /* function exit code */
  exit:;
}
int other(void) {
  /* "other/sums.pyx":9
 */
  r = 2;
}
"""


def test_lines_of_c_count_for_the_cython_line_before_them(tmp_path):
    path = tmp_path / "sums.c"
    path.write_text(C)
    places = coverage.cython_lines(path)
    assert [places[at] for at in (5, 6, 8, 10, 13)] == [
        ("sums.pyx", 7),
        ("sums.pyx", 7),
        None,
        None,
        ("other/sums.pyx", 9),
    ]


def test_executions_add_up_over_files_that_include_a_loop(tmp_path):
    found = defaultdict(lambda: defaultdict(int))
    loop = coverage.SOURCES / "engine" / "grid_loop.h"
    for count in (0, 3, 4):
        coverage.add(found, loop, [{"line_number": 12, "count": count}])
    coverage.add(found, tmp_path / "stdio.h", [{"line_number": 1, "count": 1}])
    assert found == {"engine/grid_loop.h": {12: 7}}
