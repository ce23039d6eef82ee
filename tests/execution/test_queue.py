"""Which request a worker gets next, and how often it is asked what it can run."""

from conformance.execution.queue import Queue, Request


def requests(*devices: str) -> list[Request]:
    return [Request(number=number, program={"device": device}) for number, device in enumerate(devices)]


def filled(*devices: str) -> Queue:
    queue = Queue()
    for request in requests(*devices):
        queue.add(request)
    return queue


def numbers(queue: Queue, device: str) -> list[int]:
    """Take all that a worker which can run one device gets."""
    taken = iter(lambda: queue.take(keeps_order=True, is_idle=True, can_run=lambda each: each == device), None)
    return [request.number for request in taken]


def asked_for(queue: Queue) -> list[str]:
    """Return the devices that a worker which can run none is asked for."""
    asked: list[str] = []

    def can_run(device: str) -> bool:
        asked.append(device)
        return False

    assert queue.take(keeps_order=False, is_idle=True, can_run=can_run) is None
    return asked


def test_each_worker_gets_what_it_can_run_in_order() -> None:
    queue = filled("cpu", "cuda", "cuda", "cpu")
    assert numbers(queue, "cuda") == [1, 2]
    assert queue
    assert numbers(queue, "cpu") == [0, 3]
    assert not queue


def test_a_worker_is_asked_for_each_device_and_not_for_each_request() -> None:
    queue = filled(*["xla"] * 1000, *["cpu"] * 1000)
    assert asked_for(queue) == ["xla", "cpu"]


def test_a_device_of_which_nothing_waits_is_not_asked_for() -> None:
    queue = filled("xla", "cpu")
    numbers(queue, "xla")
    assert asked_for(queue) == ["cpu"]


def test_what_is_put_back_or_taken_all_at_once_counts() -> None:
    queue = filled("xla", "cpu")
    first = queue.take(keeps_order=True, is_idle=True, can_run=bool)
    assert first is not None
    queue.put_back([first])
    assert numbers(queue, "xla") == [0]
    assert [request.number for request in queue.take_all()] == [1]
    assert numbers(queue, "cpu") == []


def test_graphs_are_recorded_last_and_can_be_taken_back() -> None:
    queue = filled("cpu")
    queue.add(Request(number=7, program={"device": "cpu", "sketch": True}))
    queue.add(Request(number=8, program={"device": "cpu", "sketch": True}))
    assert [
        request.number
        for request in (queue.take(keeps_order=True, is_idle=True, can_run=bool) for _ in range(2))
        if request
    ] == [0, 7]
    assert [request.number for request in queue.take_sketches()] == [8]
    assert queue.take(keeps_order=True, is_idle=True, can_run=bool) is None


def test_long_requests_come_first_except_to_the_worker_that_keeps_the_order() -> None:
    queue = Queue()
    queue.tells_long = True
    for number, seconds in enumerate((0.01, 2.0, 5.0)):
        queue.add(Request(number=number, program={"device": "cpu"}, seconds=seconds))
    queue.hurry(1)
    ordered = [queue.take(keeps_order=keeps, is_idle=True, can_run=bool) for keeps in (False, True, True)]
    assert [request.number for request in ordered if request] == [2, 1, 0]
