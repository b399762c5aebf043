"""Races that a console tells of: which they are, and whose."""

import races

CONSOLE = """\
[   12.000100] ==================================================================\r
[   12.000200] BUG: KCSAN: data-race in folio_lruvec_lock_irqsave / lru_add\r
[   12.000300] write to 0xffff88800 of 8 bytes by task 12 on cpu 1:\r
[   12.000400]  cohort_block_free+0x12/0x34\r
[   13.000200][  T101] BUG: KCSAN: data-race in __cohort_mm_exit.isra.0 / cohort_take\r
[   14.000200] BUG: KCSAN: data-race in folio_lruvec_lock_irqsave / lru_add\r
[   15.000200] BUG: KCSAN: data-race in cohort_take+0x12/0x34\r
[   16.000200] BUG: KCSAN: assert: race in rcu_gp_cohort_x / y\r
[   17.000200] BUG: KASAN: use-after-free in cohort_take\r
"""


def test_each_place_is_told_once_with_how_often() -> None:
    found = races.told(CONSOLE)
    assert len(found) == 4
    assert found["folio_lruvec_lock_irqsave / lru_add"] == 2
    assert races.report(found).splitlines()[0] == "     2 folio_lruvec_lock_irqsave / lru_add"


def test_a_race_is_of_the_functions_that_it_names() -> None:
    """A stack below it may have Cohort's, as most have in a storm."""
    assert [x for x in races.told(CONSOLE) if races.ours(x)] == [
        "__cohort_mm_exit.isra.0 / cohort_take",
        "cohort_take+0x12/0x34",
    ]
