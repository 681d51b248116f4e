"""What goes wrong with a call on its way, on demand. Each fault strikes so many times, on the calls it names."""

from dataclasses import dataclass

from fake_stripe.errors import ApiError
from fake_stripe.world import World

KINDS = {
    "fail_before": "500, nothing done and nothing kept: the same key works next time",
    "fail_after": "500 although it was done: the same key then gives the object",
    "fail_kept": "500 although it was done, and kept as the answer: the same key gives 500 for a day",
    "drop_before": "the connection closes without an answer, nothing done",
    "drop_after": "the connection closes without an answer although it was done",
    "rate_limit": "429, nothing done",
    "slow": "the answer comes `seconds` late",
}


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What strikes one call."""

    kind: str
    seconds: float = 0.0


def add_fault(
    world: World, *, kind: str, times: int = 1, method: str = "", path: str = "", seconds: float = 0.0
) -> None:
    """Have the next `times` calls of that method, whose path begins so, struck."""
    if kind not in KINDS:
        raise ApiError(f"No such fault: {kind}. There are: {', '.join(KINDS)}.", param="kind")
    entry = {"kind": kind, "times": times, "method": method.upper(), "path": path, "seconds": seconds}
    world.store.set_switch("faults", [*world.switch("faults"), entry])


def next_fault(world: World, method: str, path: str) -> Fault | None:
    """Take the fault that strikes this call, if one does."""
    faults = world.switch("faults")
    for entry in faults:
        if entry["method"] in ("", method) and path.startswith(entry["path"]):
            entry["times"] -= 1
            world.store.set_switch("faults", [fault for fault in faults if fault["times"] > 0])
            return Fault(kind=entry["kind"], seconds=float(entry["seconds"]))
    return None
