"""What members divide among each other: fully connected layers ("hybrid:GROUPS", shoal/exchange/strips.h), and the optimizer's step ("owners",
shoal/exchange/owned_parts.h).

The module stays an nn.Linear with a whole weight, of which only this member's strip of rows is live: it computes with it, and the optimizer
steps it alone, with strips of its state. After a step every member lays its strips out in registered memory (net/regions.h) and tells the
group so. Whoever looks at the whole, be it one member alone, fetches the others' strips as they were after that step; nobody has to help.

By "owners" every member computes with whole parameters, and steps a part of each with that part's state. The new values go to everybody behind the step, while
the next forward pass begins; gradients and state are laid out as strips are.

Two laid-out versions suffice, and of gradients one: who lays out a third has taken part in an iteration's backward pass, and so has
everybody who might still have looked at the first.
"""

import weakref

import torch
import torch.nn.functional as F

from . import _C, compiled, factored, next_use, session, state_use
from .by_parameter import treats_each_element
from .errors import PeerLost, mistake
from .strips import Counter, Part, Strip, plain

_grad = torch.Tensor.grad


class Divided:
    """What of one model is divided: nothing until a plan says so. Stands between a parameter's .grad and its mean (pending.Gates)."""

    def __init__(self, core, module, optimizer, parameters, names, replayed: bool):
        self._replayed = replayed  # a saved plan says which are divided
        self._core, self._module, self._optimizer, self._names = core, module, optimizer, names
        self._parameters = parameters
        self._layers = _layers(module, optimizer, parameters)
        self._steppable = _steppable(optimizer, parameters)
        self._no_layers = None    # why no layer is, though the step may be
        self._waits_at_once = False
        self._forbidden = None if treats_each_element(optimizer) else f"{type(optimizer).__name__} is not known to step each element by itself"
        self._told = False
        self._strips = {}         # number of a divided weight -> Strip
        self._counter = None
        self._sequence = 0        # of what was told to the group; the same on all members
        self._laid_out = 0        # when the newest values were
        self._steps = 0
        self._stale = set()       # weights of which only this member's strip is as it should be
        self._state_is_stale = False
        self._means = {}          # number -> strip's mean, which nobody has dropped or made whole
        self._collected = True    # the latest iteration's means are in _means or in .grad
        self._watched = []        # weights of which a look would be told, while the plan is to be chosen
        self._stepping = []       # (group, all its parameters) while the optimizer sees strips
        self._stand_ins = {}      # number -> its strip as a parameter, meanwhile
        self.offer()
        session.add_user(self)

    # --- which may be

    def forbid(self, why: str) -> None:
        """From here on: no plan divides anything."""
        if not self._forbidden:
            self._forbidden = why
            self.offer()

    def discourage(self, why: str) -> None:
        """Seen while the plan is to be chosen: dividing layers would be right, and slow."""
        if not self._core.plan_is_final and not self._replayed:
            self._no_layers = self._no_layers or why
            self.offer()

    def wait_at_once(self) -> None:
        """Code that nobody sees uses parameters: none may be on its way behind the step."""
        self._waits_at_once = True

    def offer(self) -> None:
        """What the coming plan may divide."""
        self._core.set_divisible(self._offered())
        self._core.set_by_element([] if self._forbidden else self._steppable)

    def _offered(self) -> list:
        return [] if self._forbidden or self._no_layers or compiled.is_compiled(self._module) else sorted(self._layers)

    def watch(self) -> None:
        """Between two steps, while the plan is to be chosen. Who looks at a weight after every step would wait for the others' strips each time."""
        if not self._core.plan_is_final and not self._replayed:
            self._watched = [n for n in self._offered() if not next_use.waits(self._parameters[n])]
            for number in self._watched:
                next_use.wait(self, number, self._parameters[number])

    def watch_no_more(self) -> None:
        for number in self._watched:
            next_use.done(self._parameters[number])
        self._watched = []

    def follow(self, gates) -> None:
        """The plan may be a new one."""
        self._widen()
        if not self._core.plan_is_final:
            return self.offer()
        numbers = self._core.divided
        if not self._told:
            self._told = True
            why = self._forbidden or self._no_layers or "none of the model may be (docs/ways.md)"
            if not any(not self._core.is_owned(n) for n in numbers) and _C.wants_strips(self._core.plan()):
                _C.note(f"no layer is divided among members because {why}")
            if not any(self._core.is_owned(n) for n in numbers) and _C.wants_parts(self._core.plan()):
                _C.note(f"every member steps all parameters because {self._forbidden or 'none of the model may be divided (docs/ways.md)'}")
        if numbers == list(self._strips):
            return
        if self._counter is None:
            self._counter = Counter()
            self._ends = weakref.finalize(self, self._core.end)  # it stays until all are here: who takes another step instead must hear it
            self._ends.atexit = False
        self._strips = {n: self._strip(n) for n in numbers}
        self._collected = not self._core.is_open
        gates.hold(numbers)

    def _strip(self, number) -> Strip:
        kind = Part if self._core.is_owned(number) else Strip
        return kind(self._core, number, self._parameters[number], self._layers.get(number), self._counter)

    # --- forward

    def open(self) -> None:
        """To factored.Layers, whose forward ours replaces; that closes both."""
        for number, strip in self._strips.items():
            if not isinstance(strip, Part) and isinstance(strip.layer.__dict__.get("forward"), factored.Forward):  # none of the user's own
                strip.layer.__dict__["forward"] = _Forward(self._core, strip.layer, number)
        if self._strips and compiled.is_compiled(self._module):
            self.make_whole()

    # --- whoever looks at a weight

    def used(self, numbers, function) -> bool:
        if function in (next_use.READ, next_use.WRITE, next_use.DELETE):
            return True  # the gates have seen to it
        if self._watched:
            self.discourage("the script looks at weights between two steps")
            self.watch_no_more()
        for number in numbers:
            self._fetch(number)
        return False

    def make_whole(self) -> None:
        for number in list(self._stale):
            self._fetch(number)

    def _fetch(self, number) -> None:
        if number in self._stale:
            self._require_others(number)
            strip = self._strips[number]
            if isinstance(strip, Part):
                self._core.returned(number)
            else:
                strip.get("weight", plain(strip.parameter), self._laid_out, self._steps % 2)
            self._stale.discard(number)
        next_use.done(self._parameters[number])

    def _require_others(self, number) -> None:
        if self._counter is None:
            raise PeerLost(f"parameter {self._names[number]}: this member has a strip of it alone, and the others have ended (load a checkpoint)")

    # --- whoever looks at a gradient

    def install(self, number) -> bool:
        early = self._core.install(number)
        if early:
            self.discourage("the script reads .grad between backward() and step()")
        if number in self._strips and torch._C._current_graph_task_id() == -1:
            self._collect_early()
            if next_use.only_drops_gradients():
                self._means.pop(number, None)
            elif number in self._means:
                self._whole_gradient(number)
        return early

    def overwrite(self, number) -> bool:
        early = self._core.install(number)
        if number in self._strips and torch._C._current_graph_task_id() == -1:
            self._collect_early()
            self._means.pop(number, None)
        return early

    def whole_gradients(self) -> None:
        """An iteration begins. Who has not dropped the gradients of the one before adds to them."""
        if not self._strips:
            return
        self._collect()
        for number in list(self._means):
            self._whole_gradient(number)
        self._collected = False

    def _collect_early(self) -> None:
        if self._core.is_open and not self._collected:
            self._core.finish()
            self._collect()

    def _collect(self) -> None:
        """All means are here: takes this member's strips of them, and lays them out."""
        if self._collected:
            return
        self._collected = True
        self._means = {n: mean for n in self._strips if (mean := self._core.own_mean(n)) is not None}
        for number, mean in self._means.items():
            self._strips[number].lay_out("gradient", mean, 0)
        self._tell()

    def _whole_gradient(self, number) -> None:
        self._require_others(number)
        strip = self._strips[number]
        whole = torch.empty_like(plain(strip.parameter))
        strip.own(whole).copy_(self._means[number])
        strip.get("gradient", whole, self._gradients_at, 0)
        with torch._C.DisableTorchFunctionSubclass():
            _grad.__set__(strip.parameter, whole)
        del self._means[number]

    _gradients_at = property(lambda self: self._sequence, doc="Between collecting and the next step nothing else is told.")

    # --- around the optimizer's step

    def step_begins(self, closure: bool) -> None:
        """All means are installed. The optimizer gets strips to step, with strips of its state; with a closure, which uses the weights, all."""
        if not self._strips:
            return
        state_use.done(self._optimizer, self)
        self._collect()
        if closure:
            self.make_whole()
            self.make_state_whole()
            return
        for number, strip in self._strips.items():
            self._stand_ins[number] = strip.stand_in(self._optimizer, self._means.get(number), (self._steps + 1) % 2)
        instead = {id(self._strips[n].parameter): stand_in for n, stand_in in self._stand_ins.items()}
        for group in self._optimizer.param_groups:
            self._stepping.append((group, group["params"]))
            group["params"] = [instead.get(id(p), p) for p in group["params"]]

    def step_ends(self) -> None:
        if not self._strips:
            return
        divided = bool(self._stepping)
        for number, stand_in in self._stand_ins.items():
            self._strips[number].take_state(self._optimizer, stand_in)
        self._widen()
        self._steps += 1
        held = set(self._core.aliased()) if any(map(self._core.is_owned, self._strips)) else ()
        for number, strip in self._strips.items():
            if not isinstance(strip, Part):
                strip.lay_out("weight", strip.own(plain(strip.parameter)), self._steps % 2)
            elif divided:
                self._core.give_back(number)
            for name, value in strip.state(self._optimizer).items():
                strip.lay_out(name, value, self._steps % 2)
        self._tell()
        self._laid_out = self._sequence
        if divided:
            self._state_is_stale = True
            self._stale.update(self._strips)
            for number, strip in self._strips.items():
                if isinstance(strip, Part) and (self._waits_at_once or number in held):
                    self._fetch(number)
                elif not next_use.waits(strip.parameter):
                    next_use.wait(self, number, strip.parameter)
            state_use.wait(self._optimizer, self)

    def _widen(self) -> None:
        for group, parameters in self._stepping:
            group["params"] = parameters
        for stand_in in self._stand_ins.values():
            self._optimizer.state.pop(stand_in, None)
        self._stepping, self._stand_ins = [], {}

    def _tell(self) -> None:
        self._sequence += 1
        self._counter.tell(self._sequence)

    # --- the optimizer's state

    def make_state_whole(self) -> None:
        state_use.done(self._optimizer, self)
        if not self._state_is_stale:
            return
        for number, strip in self._strips.items():
            self._require_others(number)
            strip.make_state_whole(self._optimizer, self._laid_out, self._steps % 2)
        self._state_is_stale = False

    settle_all = make_state_whole  # for whoever uses the state past state_dict()

    def state_is_loaded(self) -> None:
        state_use.done(self._optimizer, self)
        self._state_is_stale = False

    # --- the end

    def undivide(self, why: str, gates) -> None:
        """From here on all members compute with whole weights, and step them. All of them call it, between two steps."""
        self.forbid(why)
        if not self._strips:
            return
        if self._core.is_open:
            raise mistake("model.join()", "a backward pass has no step yet", "enter it between two steps")
        self.whole_gradients()
        self._end()
        self._core.undivide()
        gates.hold(())
        _C.note(f"nothing is divided among members any more because {why}")

    def settle(self) -> None:
        """What is told is told."""

    def release(self) -> None:
        self.watch_no_more()
        if self._counter is not None:
            if session.failed():
                self._ends.detach()
            else:
                self._ends()
                self._end()
        self._counter = self._core = None

    def _end(self) -> None:
        self.make_whole()
        self.make_state_whole()
        self._strips = {}


class _Forward(factored.Forward):
    def __init__(self, core, layer, number):
        super().__init__(core, layer, number)
        self._core, self._number = core, number

    def __call__(self, input):
        x, layer = input, self._layer
        if not self._all_take_part(x):
            return F.linear(x, layer.weight, layer.bias)
        rows = self._core.count_rows(self._number, x.numel() // x.size(-1))
        if rows is None:  # some member of the group takes another way through the model
            return F.linear(x, layer.weight, layer.bias)
        next_use.tell(layer.bias)
        return self._core.divided_linear(self._number, x, layer.weight, layer.bias, rows)

    def _all_take_part(self, x) -> bool:
        """Not in an evaluation, in a pass whose gradients stay here, nor in one that autograd does not record as we know it."""
        layer, weight = self._layer, self._layer.weight
        return (torch.is_grad_enabled() and layer.training and self._core.synchronizes and weight is self._weight
                and x.dtype == torch.float32 and x.is_cpu and not torch.is_autocast_enabled("cpu") and not torch.compiler.is_compiling()
                and torch._C._functorch.peek_interpreter_stack() is None)


def _steppable(optimizer, parameters) -> list:
    """Parameters of which each member may step a part, by number."""
    stepped = {id(p) for group in optimizer.param_groups for p in group["params"]}
    return [n for n, p in enumerate(parameters) if id(p) in stepped and p.is_cpu and p.is_contiguous() and not p._post_accumulate_grad_hooks]


def _layers(module, optimizer, parameters) -> dict:
    """Layers that may be divided, by the number of their weight: used by one module, stepped here, by nobody watched."""
    number = {id(p): i for i, p in enumerate(parameters)}
    stepped = {id(p) for group in optimizer.param_groups for p in group["params"]}
    users = {}
    for part in module.modules():
        for p in part._parameters.values():
            users[id(p)] = users.get(id(p), 0) + 1

    def may_be(weight) -> bool:
        return (id(weight) in number and id(weight) in stepped and users[id(weight)] == 1 and weight.is_cpu and weight.is_contiguous()
                and not weight._backward_hooks and not weight._post_accumulate_grad_hooks)

    return {number[id(layer.weight)]: layer for layer in factored.candidates(module, parameters) if may_be(layer.weight)}
