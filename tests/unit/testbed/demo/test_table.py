from __future__ import annotations

import re

from testbed.demo.models import Row, Tone
from testbed.demo.table import plain_line, table

PAIR = Row(
    name="draft-target",
    status="Building",
    tone=Tone.WAITING,
    artifacts="3/5",
    placement="2 GPUs, draft 0 | target 1, ranks 1 | 2 of 3",
    short_placement="2 GPUs 0|1, ranks 1|2",
    ready="0/1",
    seconds=41.4,
)
SERVING = Row("eagle3", "Serving", Tone.GOOD, "3/3", "1 GPU, target 0", "1 GPU 0", "1/1", 25.0)


def test_a_wide_terminal_shows_the_whole_placement() -> None:
    assert PAIR.placement in "\n".join(table([PAIR, SERVING], width=99))


def test_a_narrow_terminal_shows_the_short_placement() -> None:
    shown = "\n".join(table([PAIR, SERVING], width=79))
    assert PAIR.short_placement in shown
    assert "draft 0" not in shown


def test_no_line_is_wider_than_the_terminal() -> None:
    for width in (20, 60, 79, 99):
        assert max(map(len, table([PAIR, SERVING], width=width))) <= width


def test_each_model_has_one_line_below_the_title() -> None:
    lines = table([PAIR, SERVING], width=99)
    assert [line.split()[0] for line in lines] == ["MODEL", "draft-target", "eagle3"]


def test_columns_begin_below_their_titles() -> None:
    title, pair, serving = table([PAIR, SERVING], width=99)
    assert title.index("READY") == pair.index("0/1") == serving.index("1/1")


def test_color_changes_nothing_but_color() -> None:
    plain = table([PAIR, SERVING], width=99)
    colored = table([PAIR, SERVING], width=99, colored=True)
    assert [re.sub("\x1b\\[[0-9]*m", "", line) for line in colored] == plain


def test_a_plain_line_says_all_in_one() -> None:
    assert plain_line(PAIR).strip() == f"41 s  draft-target  Building  3/5 made  {PAIR.placement}  0/1 ready"
