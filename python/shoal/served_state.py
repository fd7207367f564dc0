"""The optimizer's state that servers hold, as PyTorch's optimizers have it, and back.

Behind the values of a row of w elements lies its state (shoal/table/rule.h): for sgd with momentum the momentum; for adagrad the sum of squares; for
adaptive revision the sum of gradients, that of their revised squares and the greatest that this was, which alone is Adagrad's; for adam both moments, and how many steps the row has taken, which is the same for all rows of a group.
"""

import torch

from .errors import mistake

_MOMENTS = {"sgd": ["momentum_buffer"], "adagrad": ["sum"], "adam": ["exp_avg", "exp_avg_sq"],
            "adaptive-revision": ["gradients", "revised", "sum"]}
_WITHOUT = {"revised": "sum"}  # where an optimizer that stepped alone has no such state


def of_rows(rule: str, rows: torch.Tensor, width: int, places) -> list[dict]:
    """For each parameter what optimizer.state has of it. places: rows of w elements -> views of the parameters' shapes."""
    names = _names(rule, rows, width)
    moments = {name: places(rows[:, (1 + i) * width : (2 + i) * width].contiguous()) for i, name in enumerate(names)}
    count = len(places(rows[:, :width].contiguous()))
    states = [{name: moments[name][number].clone() for name in names} for number in range(count)]
    if not rule.startswith("sgd"):
        steps = rows[0, -1].item() if rule.startswith("adam:") else 0.0
        for state in states:
            state["step"] = torch.tensor(steps, device="cpu")
    return states


def into_rows(rule: str, rows: torch.Tensor, width: int, places, states: list[dict]) -> None:
    """The opposite; `states` of parameters that have taken no step are empty."""
    for i, name in enumerate(_names(rule, rows, width)):
        moments = torch.zeros(len(rows), width, device="cpu")
        for place, state in zip(places(moments), states):
            found = state.get(name, state.get(_WITHOUT.get(name)))
            if found is not None:
                if found.shape != place.shape:
                    raise mistake("optimizer.load_state_dict()", f"{name} of shape {list(found.shape)} for a parameter of {list(place.shape)}")
                place.copy_(found)
        rows[:, (1 + i) * width : (2 + i) * width] = moments
    if rule.startswith("adam:"):
        steps = {float(state.get("step", 0)) for state in states}
        if len(steps) > 1:
            raise mistake("optimizer.load_state_dict()", "parameters of one group have taken different numbers of steps",
                          "servers count them together; choose another plan")
        rows[:, -1] = steps.pop() if steps else 0


def _names(rule: str, rows: torch.Tensor, width: int) -> list[str]:
    return _MOMENTS[rule.partition(":")[0]] if rows.shape[1] > width else []
