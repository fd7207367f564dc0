"""data_parallel(): a model whose members each see a part of the batch and all take the same steps."""

import os
import weakref
from contextlib import contextmanager

import torch

from . import _C, around_steps, compiled, divided, factored, given, join, next_use, nn, pending, recording, served, serving, session, signals, table
from .buffers import Buffers
from .errors import mistake
from .first_use import FirstUse
from .seldom import LocalSteps
from .served import Served
from .steps import Steps
from .wrapped import Wrapped, has_closure, tensors as _tensors, weak as _weak


def data_parallel(model: torch.nn.Module, optimizer: torch.optim.Optimizer, plan: str = "auto"):
    """Returns (model, optimizer) for training on all members of the run.

    Rank 0's parameters and buffers become everybody's. Between backward() and step() every `.grad` is the mean over
    members, weighted by samples. plan: "auto" (measured, then chosen), "poseidon", "wfbp", "p3", "ddp:25MB", a way such as
    "ring", any of them with overrides ("auto,embed*=ring": docs/plans.md), or the path of a saved plan.json, which gives
    the same bits again. By "local:8" or "diloco:16" members step by themselves and come together that seldom; by "ps:ssp:3" servers step. SHOAL_PLAN sets it from outside.

    From then on memory that a step frees stays with the process for the next one, unless MALLOC_ variables or GLIBC_TUNABLES say what does (shoal/core/heap.h).

    On a member that only serves (shoal run --servers) the call does not return: it ends the process when the others train no more.
    """
    if isinstance(plan, os.PathLike):
        plan = os.path.abspath(plan)  # a path, whatever it looks like
    here = session.everybody()
    if here.carries:
        raise mistake("data_parallel()", "a shoal.State or a table was made before it",
                      "wrap all models first: who comes in place of a lost member takes over all there is at once, or tables alone (--on-peer-lost shrink has both)")
    where = "plan"
    if plan == "auto" and "SHOAL_PLAN" in os.environ:
        plan, where = os.environ["SHOAL_PLAN"], "SHOAL_PLAN"
    given.check(model, optimizer, plan)
    _C.keep_freed_memory()  # of a step for the next one, which takes as much
    saved = given.read_plan(plan, where)
    consistency = _C.consistency_of(plan) if saved is None else None
    rounds = _C.has_rounds(plan, saved)
    table.require_free_servers("data_parallel()")
    if here.servers and rounds:
        raise mistake(where, f"by {plan} members that only serve have nothing to do", "start without servers, or choose another plan")
    if not here.serves and (consistency is not None or rounds):
        session.require_members_for_good(where, f"by {plan} members have state of their own, which is lost with them")
    if rounds and here.outlives_losses:
        raise mistake(where, f"by {plan} members come together too seldom to go on without one that is lost", "run with --on-peer-lost fail")
    if (session.size() > 1 or here.servers) and consistency is not None:
        trained = given.trained_parameters(model)
        for name, parameter in trained:
            if pending.is_known(parameter) or served.is_known(parameter):
                raise mistake(f"parameter {name}", "another model of data_parallel() trains it already", "wrap once what shares parameters")
        _begin_alike(model, given.code(model, optimizer) + f"\nplan {plan}")
        if here.serves:
            table.serve_rows()
        nn.step_with(optimizer, model)
        return Served(model, optimizer, trained, consistency), optimizer
    if session.size() > 1 and rounds:
        trained = given.trained_parameters(model)
        _begin_alike(model, given.code(model, optimizer) + (f"\nplan {plan}" if saved is None else ""))
        nn.step_with(optimizer, model)
        return LocalSteps(model, optimizer, trained, plan, saved), optimizer
    if here.servers and session.models():
        raise mistake("data_parallel()", "another model is trained already, and servers are there for one", "start without servers")
    wrapped = DataParallel(model, optimizer, plan, saved)
    if here.serves:
        serving.serve(wrapped)
    return wrapped, optimizer


class DataParallel(Wrapped):
    """Stands for `module` in a training loop; attributes and state_dict are the module's own."""

    def __init__(self, module: torch.nn.Module, optimizer: torch.optim.Optimizer, plan: str, saved: str | None):
        super().__init__(module)
        here = session.everybody()
        self._optimizer = optimizer
        self._core = None
        self._gates = None
        self._steps = None
        self._divided = None
        self._alone = None
        self._order = None
        compiled.leave_out(DataParallel.forward)
        nn.step_with(optimizer, module, _weak(self, "_weight"))  # before what commits the step
        if here.size == 1:
            if saved is not None:
                _C.check_plan(saved, plan)
            if recording.active():
                self._alone = _C.Alone()
                around_steps.register(optimizer, self._alone.step_begins, _weak(self, "_after_step_alone"))
            return
        trained = given.trained_parameters(module)
        given.check_momentum(optimizer, plan, saved, trained)
        for name, parameter in trained:
            if pending.is_known(parameter):
                raise mistake(f"parameter {name}", "another model of data_parallel() trains it already", "wrap once what shares parameters")
        _begin_alike(module, given.code(module, optimizer))
        self._followed = Buffers(module)
        self._core = _C.DataParallel(here, trained, self._followed.now, given.tables(module, trained), plan, saved,
                                     _weak(self, "_step_the_rest"), _weak(self, "_whole_gradients"), _weak(self, "_iteration_begins"),
                                     _weak(self, "_take_over_optimizer"),
                                     [int(index) for index in os.environ.get("SHOAL_PRETEND_DEVICE", "").split(",") if index])
        self._trained = trained
        names, parameters = [n for n, _ in trained], [p for _, p in trained]
        self._divided = divided.Divided(self._core, module, optimizer, parameters, names, saved is not None)
        self._gates = pending.Gates(self._divided, parameters, names)
        self._steps = Steps(self._core, optimizer, parameters)
        self._graphs = compiled.Graphs(parameters, self._steps)
        self._factored = factored.Layers(self._core, module, parameters)
        self._order = FirstUse(module, parameters, self._core)
        self._written = None  # which of the core's plans is in the run's folder
        self._ran_compiled = False  # the latest forward pass
        self._hooks = around_steps.register(optimizer, _weak(self, "_before_step", gone=given.refuse_lost_model), _weak(self, "_after_step"))
        optimizer.register_state_dict_pre_hook(_weak(self, "_before_state"))
        optimizer.register_load_state_dict_pre_hook(_weak(self, "_step_the_rest"))
        optimizer.register_load_state_dict_post_hook(_weak(self, "_after_load"))
        session.add_user(self)
        weakref.finalize(self, self._gates.release)

    # --- the training loop

    def forward(self, *args, **kwargs):
        if not torch.is_grad_enabled() or (self._core is None and self._alone is None):
            self._evaluation_begins()
            return compiled.call(self.module, args, kwargs)
        if self._core is None:  # all of it here: the compiler leaves this function out, but looks into those it calls
            self._alone.forward_begins(_C.samples_in(args, kwargs))
            output = compiled.call(self.module, args, kwargs)
            self._alone.forward_ends(output if isinstance(output, torch.Tensor) else next(_tensors(output), None))
            return output
        self._forward_begins(args, kwargs)
        try:
            if self._order is None or self._order.known:
                with self._graphs:
                    output = compiled.call(self.module, args, kwargs)
            else:
                output = self._order.watch(args, kwargs)
        except BaseException:
            self._forward_failed()
            raise
        self._forward_ends(output)
        return output

    @torch._disable_dynamo
    def _evaluation_begins(self) -> None:
        if self._steps is None or not compiled.is_compiled(self.module):
            return
        self._steps.settle_all()
        self._divided.make_whole()

    @torch._disable_dynamo
    def _forward_begins(self, args, kwargs) -> None:
        if self.training and session.current().may_move:
            self._core.move_on()
        self._ran_compiled = compiled.is_compiled(self.module)
        if self._steps.waiting and not (self._order.known and (self._graphs.known or not self._ran_compiled)):
            self._steps.settle_all()
        if not self._core.is_open and (not self._core.holds_pairs or self._ran_compiled):
            self._gates.open()  # after no_sync(): what was compiled for plain parameters serves again
        self._follow_hooks()
        self._divided.watch_no_more()
        self._factored.open()
        self._divided.follow(self._gates)
        self._divided.open()
        self._core.set_asks(signals.pending())
        if self.training:  # an evaluation that forgot no_grad() must not count as samples
            self._core.forward_begins(_C.samples_in(args, kwargs))

    @torch._disable_dynamo
    def _forward_ends(self, output) -> None:
        self._steps.settle_all()  # those that this pass did not use
        if self.training:
            self._core.forward_ends()
        self._gates.close()
        for tensor in _tensors(output):
            self._core.watch(tensor)

    @torch._disable_dynamo
    def _forward_failed(self) -> None:
        if self._core is not None and self._core.holds_pairs:
            self._gates.close()  # whoever drops what no_sync() gathered drops those, too

    @contextmanager
    def no_sync(self):
        """Backward passes inside gather gradients here only; the next one outside exchanges the sum."""
        if self._core is None:
            yield
            return
        self._divided.discourage("model.no_sync() gathers gradients of whole weights")
        before = self._core.synchronizes
        self._core.set_synchronize(False)
        try:
            yield
        finally:
            self._core.set_synchronize(before)

    @contextmanager
    def join(self):
        """Members may run out of data at different times: who is done stays at the end of the block until all are."""
        if self._core is not None and session.current().outlives_losses:
            raise mistake("model.join()", "members that may be lost must not run out of data at different times", "run with --on-peer-lost fail")
        if self._core is not None:
            self._divided.undivide("members may run out of data inside of model.join()", self._gates)
        yield
        if self._core is not None:
            join.wait_for_the_others(self)

    def samples(self, n: float) -> None:
        """This member's weight in the coming mean. Default: the first dimension of forward's first tensor."""
        if self._core is not None:
            self._core.set_samples(float(n))

    def flush(self) -> None:
        """Waits until every open exchange is done and every `.grad` is the mean."""
        if self._core is None:
            return
        if self._steps.waiting:
            self._steps.settle_all()
        else:
            self._core.finish()
            self._gates.open()

    settle = flush

    exchanges = property(lambda self: self._core is not None, doc="It is trained on several members.")

    def asked(self) -> int:
        """What any member was told since the last call, as far as all members know it (signals.py)."""
        return self._core.asked()

    def communication(self) -> tuple[float, float]:
        """Seconds of communication so far, and how many of them training waited for."""
        return self._core.communication() if self._core is not None else (0.0, 0.0)

    @property
    def plan(self) -> str | None:
        """The plan in use, as JSON; None alone."""
        return self._core.plan() if self._core is not None else None

    def fit_plan(self) -> None:
        """The links have changed: after one of the next steps all members measure them again and fit the plan, which gives the same bits.

        Rank 0 asks by itself when what it waits for has changed for good. Any member may ask; a replayed plan stays as it is.
        """
        if self._core is not None:
            self._core.ask_for_fit()

    # --- around the optimizer

    def _before_step(self, optimizer, args, kwargs) -> None:
        if self._core is None:
            return
        self._divided.watch_no_more()
        self._follow_hooks()
        self._follow_buffers()
        self._refuse_strangers()
        self._refuse_own_gradients()
        self._gates.open()
        closure = has_closure(args, kwargs)
        if not self._steps.begin(closure, self._ran_compiled or self._graphs.ran):
            self.flush()
            if not self._core.plan_is_final and self._order.unseen():
                self._steps.forbid("some parameter is used by code that takes it past PyTorch's Python functions")
                self._divided.wait_at_once()
            self._steps.begin_whole()
            self._divided.follow(self._gates)
            self._divided.step_begins(closure)
        self._factored.close()

    def _refuse_strangers(self) -> None:
        """A parameter of the module that was none, or frozen, when it was wrapped would be trained by each member alone."""
        strangers = [p for group in self._optimizer.param_groups for p in group["params"] if not pending.is_known(p)]
        if strangers:
            names = {id(parameter): name for name, parameter in self.module.named_parameters()}
            for parameter in strangers:
                if id(parameter) in names and parameter.numel() > 0 and parameter.grad is not None:
                    raise mistake(f"parameter {names[id(parameter)]}", "it has a gradient, and was not trained when the model was wrapped",
                                  "call data_parallel() when all parameters that will be trained are there and require a gradient")

    def _refuse_own_gradients(self) -> None:
        """What torch.autograd.grad() gives passes no accumulator, so nobody has exchanged it."""
        for number in sorted(self._gates.set_by_hand):
            if not self._core.is_open and next_use.gradient(self._trained[number][1]) is not None:
                raise mistake(f"parameter {self._trained[number][0]}",
                              "the script has set its .grad and no backward() came: each member would step by its own",
                              "let backward() fill .grad, also where torch.autograd.grad() has made it: sum((p * g).sum() for p, g in ...).backward()")
        self._gates.set_by_hand.clear()

    def _after_step(self, optimizer, args, kwargs) -> None:
        if self._core is None:
            return
        self._divided.step_ends()
        if not self._core.is_open:
            return
        self._steps.end()
        self._divided.follow(self._gates)
        self._divided.watch()
        recording.tick(optimizer)
        if self._core.plan_is_final and self._written != self._core.plans:
            self._write_plan()

    def _weight(self) -> float:
        """This member's in the mean of the step at hand, 1 where all have as many samples."""
        if self._core is None or not self._core.is_open:
            return 1.0
        weights = self._core.weights()[:session.everybody().workers]
        return weights[session.current().place] * len(weights) / max(sum(weights), 1e-300)

    def _step_the_rest(self, *_) -> None:
        if self._steps is not None:
            self._steps.settle_all()

    def _follow_hooks(self) -> None:
        if not given.hooks_of_the_script(self._optimizer, *self._hooks):
            return
        why = "the script has hooks around the optimizer's step"
        if self._core.divided:
            raise mistake("optimizer", why + ", which would see a part of what is divided among members", "register them before the first step")
        self._steps.forbid(why)
        self._divided.forbid(why)

    def _follow_buffers(self) -> None:
        if self._followed.reassigned():
            self._core.set_buffers(self._followed.now)

    def _whole_gradients(self) -> None:
        self._divided.follow(self._gates)  # the plan may have been taken between two passes of one step
        self._divided.whole_gradients()

    def _iteration_begins(self) -> None:
        """A backward pass has begun, perhaps of a forward pass that came past ours (model.module(x), model.loss(x))."""
        if self._gates is not None:
            self._follow_buffers()
            self._gates.close()

    def _before_state(self, *_) -> None:
        self._step_the_rest()
        if self._core is not None:
            self._divided.make_state_whole()

    def _after_load(self, *_) -> None:
        if self._core is not None:
            self._divided.state_is_loaded()

    def _take_over_optimizer(self, source: int) -> None:
        if session.everybody().serves:  # it takes no steps
            return
        join.take_over_optimizer(self._optimizer, source)

    def _after_step_alone(self, optimizer, args, kwargs) -> None:
        self._alone.step_ends()
        recording.tick(optimizer)

    def _write_plan(self) -> None:
        self._written = self._core.plans
        session.write_plan(self._core.plan())

    def release(self) -> None:
        """Lets go of the session; the module stays."""
        if self._gates is not None:
            if self._steps.waiting and not session.failed():
                self._steps.settle_all()  # others may still wait for what this member passes on
            here = session.everybody()
            if here.servers and not here.serves and not session.failed():
                self._core.dismiss_servers()
            self._divided.release()
            self._gates.release()
            self._factored.close()
        self._gates = self._steps = self._core = self._order = self._factored = self._graphs = self._divided = None


def _begin_alike(module: torch.nn.Module, code: str) -> None:
    """All members have the same model and `code`, and rank 0's values."""
    here, everything = session.everybody(), list(module.named_parameters()) + list(module.named_buffers())
    if here.arriving:  # what it takes over is compared and brings the values (state.py)
        return
    _C.require_equal_models(here, [(n, t.detach().requires_grad_(t.requires_grad)) for n, t in everything], code)
    _C.broadcast_tensors(here, [t for _, t in everything], 0, "first values of the model")
