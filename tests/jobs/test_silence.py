from __future__ import annotations

from contstim.jobs.executors.silence import SilenceWatch


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_who_is_silent_for_too_long_is_told_and_nobody_else() -> None:
    clock = Clock()
    watch = SilenceWatch(10, clock)
    told = []
    for second in range(1, 20):
        clock.now = second
        assert watch.due
        # The first beats always, the second until 5, the third begins at 8 and never beats
        signs: dict[int, object] = {0: second, 1: min(second, 5)}
        if second >= 8:
            signs[2] = "nothing"
        told += [(second, worker) for worker in watch.look(signs) if second <= 16]
    assert told == [(16, 1)]
    assert watch.look({0: 0, 1: 5, 2: "nothing"}) == [1, 2]
    assert not watch.due


def test_time_in_which_nobody_looked_is_no_silence() -> None:
    """As where the driver is stopped with Ctrl-Z, and its workers with it."""
    clock = Clock()
    watch = SilenceWatch(10, clock)
    for hour in range(5):
        clock.now = 3_600.0 * hour
        assert not watch.look({0: "the same"})


def test_a_new_worker_of_the_same_number_begins_anew() -> None:
    clock = Clock()
    watch = SilenceWatch(3, clock)
    for second in range(4):
        clock.now = second
        watch.look({0: "first"})
    clock.now = 4
    assert watch.look({0: "second"}) == []
    for second in range(5, 8):
        clock.now = second
        assert watch.look({0: "second"}) == []
    clock.now = 8
    assert watch.look({0: "second"}) == [0]
