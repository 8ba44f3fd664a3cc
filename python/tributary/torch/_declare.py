# SPDX-License-Identifier: Apache-2.0
"""Which tensors of a model are declared, under which names, in which groups."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import torch

from tributary._bits import name_of_bits
from tributary._errors import InvalidSetting, Misuse
from tributary._names import hint
from tributary._optimizers import spec_of
from tributary.torch._bits import WITH_BITS, needs_bits
from tributary.torch._overlaps import extent_of, overlap, repeats_elements

Group = dict[str, Any]
Model = torch.nn.Module | Iterable[Mapping[str, Any]]
# From the model to a tensor: a module, the name of one of its dicts, and the key and
# the value there.
Route = tuple[tuple[torch.nn.Module, str, str, Any], ...]
Routes = dict[int, Route]  # by id of the tensor


_REMEDY = (
    '; register the buffer with persistent=False, or pass buffers="local", which '
    "sends no buffers"
)


class Role(Enum):
    TRAINED = "trained"
    FROZEN = "frozen"  # declared, so that checkpoints hold the whole model
    BUFFER = "buffer"  # such as a batch norm's mean


@dataclass(frozen=True)
class Entry:
    """One tensor that the servers hold."""

    name: str
    tensor: torch.Tensor
    role: Role
    route: Route = ()  # empty: the model is not known
    as_bits: bool = False  # travels as its bits, which float32 cannot hold

    @property
    def declared_name(self) -> str:
        """The name that servers and checkpoints know."""
        if not self.as_bits:
            return self.name
        dtype = str(self.tensor.dtype).removeprefix("torch.")
        return name_of_bits(self.name, dtype, self.tensor.shape)

    def is_in_place(self) -> bool:
        """Whether the model still has this tensor."""
        if all(
            getattr(module, held).get(key) is value
            for module, held, key, value in self.route
        ):
            return True
        # A module on the way may have been wrapped, as by torch.compile.
        model = self.route[0][0]
        tensors = itertools.chain(model.parameters(), model.buffers())
        return any(tensor is self.tensor for tensor in tensors)


@dataclass
class Declared:
    """A model as it is declared: entries in forward order, and torch's groups."""

    entries: list[Entry]
    groups: list[Group]  # "params" are tensors
    buffers: str = "average"
    # By torch group: the names of its trained parameters.
    group_names: list[list[str]] = field(default_factory=list)

    @property
    def frozen_names(self) -> list[str]:
        return [e.name for e in self.entries if e.role is Role.FROZEN]


def declare(
    model: Model,
    groups: Iterable[Mapping[str, Any]] | None,
    *,
    buffers: str | None,
    frozen: str,
) -> Declared:
    """Lists the tensors of a Module, or of groups of named parameters.

    Misuse: a group has a parameter that the model lacks, or one without a name;
    there is nothing to train; a type that the servers cannot hold.
    """
    buffers = _treatment_of_buffers(model, buffers)
    for keyword, value, choices in (
        ("buffers", buffers, ("average", "rank0", "local")),
        ("frozen", frozen, ("declare", "local")),
    ):
        if value not in choices:
            raise Misuse(f'{keyword} cannot be "{value}"{hint(value, choices)}')
    if isinstance(model, torch.nn.Module):
        named = dict(model.named_parameters())
        torch_groups = _groups_of(groups, list(named.values()))
        routes = _routes_of(model)
        entries = [] if buffers == "local" else _buffers_of(model, routes)
    elif groups is None:
        named, torch_groups = _named_groups(model)
        routes, entries = {}, []
    else:
        raise Misuse("groups= wants a torch.nn.Module before it")
    names = {id(p): name for name, p in named.items()}
    in_groups = {id(p) for group in torch_groups for p in group["params"]}
    seen: set[int] = set()
    for group in torch_groups:
        for parameter in group["params"]:
            if id(parameter) in seen:
                name = names.get(id(parameter))
                raise Misuse(f"{name} is in the parameter groups twice")
            seen.add(id(parameter))
            if id(parameter) not in names:
                raise Misuse(
                    f"a parameter group has a tensor of shape "
                    f"{list(parameter.shape)} that is no parameter of the model"
                )
    for name, parameter in named.items():
        trained = parameter.requires_grad and id(parameter) in in_groups
        if trained or frozen == "declare":
            role = Role.TRAINED if trained else Role.FROZEN
            route = routes.get(id(parameter), ())
            entries.append(Entry(name, parameter, role, route))
    entries = [entry for entry in entries if entry.tensor.numel() > 0]
    for entry in entries:
        _check(entry)
    devices = {e.tensor.device for e in entries}
    if any(device.type not in ("cpu", "cuda") for device in devices) or (
        len([device for device in devices if device.type == "cuda"]) > 1
    ):
        raise Misuse(
            f"the model is on {', '.join(sorted(map(str, devices)))}; a rank trains on "
            "the CPU and at most one CUDA device"
        )
    _refuse_shared(entries)
    if not any(e.role is Role.TRAINED for e in entries):
        raise Misuse("no parameter of the model requires a gradient")
    entries = [_with_values(entry) for entry in entries]
    trained_names = {id(e.tensor): e.name for e in entries if e.role is Role.TRAINED}
    group_names = [
        [trained_names[id(p)] for p in g["params"] if id(p) in trained_names]
        for g in torch_groups
    ]
    return Declared(entries, torch_groups, buffers, group_names)


def _treatment_of_buffers(model: Model, buffers: str | None) -> str:
    """The value of the keyword `buffers`, or its default."""
    if isinstance(model, torch.nn.Module):
        return "average" if buffers is None else buffers
    if buffers in ("average", "rank0"):
        raise Misuse(
            f'buffers="{buffers}" needs the model, since named parameters have no '
            "buffers; call cluster.optimizer(model, ..., groups=[...])"
        )
    return "local" if buffers is None else buffers


def _groups_of(
    groups: Iterable[Mapping[str, Any]] | None, parameters: Sequence[torch.Tensor]
) -> list[Group]:
    if groups is None:
        return [{"params": list(parameters)}]
    copies = []
    for group in groups:
        if not isinstance(group, Mapping) or "params" not in group:
            raise Misuse('groups= wants a list of dicts with "params", as torch does')
        params = group["params"]
        tensors = [params] if isinstance(params, torch.Tensor) else list(params)
        # torch also takes pairs (name, parameter) in groups.
        tensors = [p[1] if isinstance(p, tuple) else p for p in tensors]
        copies.append({**group, "params": tensors})
    return copies


def _named_groups(
    groups: Any,
) -> tuple[dict[str, torch.Tensor], list[Group]]:
    """The groups of pairs (name, parameter), and all their parameters."""
    named: dict[str, torch.Tensor] = {}
    copies: list[Group] = []
    for group in groups if isinstance(groups, Iterable) else [groups]:
        if not isinstance(group, Mapping) or "params" not in group:
            raise Misuse(
                "wanted a torch.nn.Module, or groups {'params': [(name, "
                f"parameter), ...]}}, got {type(group).__name__}"
            )
        pairs = list(group["params"])
        if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
            raise Misuse(
                "parameters in a list have no names, which checkpoints need: call "
                "cluster.optimizer(model, ..., groups=[...]); or give pairs as "
                "model.named_parameters() does, which leave out the buffers"
            )
        for name, parameter in pairs:
            if named.setdefault(name, parameter) is not parameter:
                raise Misuse(f'two parameters have the name "{name}"')
        copies.append({**group, "params": [parameter for _, parameter in pairs]})
    return named, copies


def _routes_of(model: torch.nn.Module) -> Routes:
    """By the id of a tensor, the first route to it."""
    routes: Routes = {}
    to_module: dict[int, Route] = {id(model): ()}
    for module in model.modules():  # each after the module that holds it
        route = to_module[id(module)]
        for key, child in module._modules.items():
            to_module.setdefault(id(child), (*route, (module, "_modules", key, child)))
        for held in ("_parameters", "_buffers"):
            for key, tensor in getattr(module, held).items():
                routes.setdefault(id(tensor), (*route, (module, held, key, tensor)))
    return routes


def _buffers_of(model: torch.nn.Module, routes: Routes) -> list[Entry]:
    """The buffers that are saved. Sent last, so they come before the parameters."""
    saved = model.state_dict(keep_vars=True)
    return [
        Entry(name, buffer, Role.BUFFER, routes.get(id(buffer), ()))
        for name, buffer in model.named_buffers()
        if name in saved
    ]


def _check(entry: Entry) -> None:
    if "*" in entry.name:
        raise Misuse(f'a declared name cannot contain *, got "{entry.name}"')
    tensor, dtype = entry.tensor, entry.tensor.dtype
    if entry.role is not Role.BUFFER and dtype not in (
        torch.float32,
        torch.bfloat16,
        torch.float16,
    ):
        raise Misuse(
            f"{entry.name} is {dtype}; the servers hold float32 weights and take "
            f"float32, bfloat16 and float16 parameters, so {_other_type(entry)}"
        )
    if tensor.layout is not torch.strided or tensor.is_quantized:
        kind = "quantized" if tensor.is_quantized else str(tensor.layout)
        raise Misuse(
            f"{entry.name} is {kind}, wanted an ordinary tensor"
            + (_REMEDY if entry.role is Role.BUFFER else "")
        )
    if repeats_elements(tensor):
        raise Misuse(
            f"{entry.name} is expanded: several of its elements are in the same place "
            "in memory and cannot be set; make the tensor with .contiguous()"
            + (_REMEDY if entry.role is Role.BUFFER else "")
        )


def _other_type(entry: Entry) -> str:
    """The remedy for a parameter of this type."""
    if entry.tensor.dtype.is_floating_point:
        return "convert the model, for example with model.float()"
    if entry.role is Role.FROZEN:
        return 'leave frozen parameters to the program with frozen="local"'
    return (
        "train a float32 parameter with the real and imaginary parts, and use "
        "torch.view_as_complex(parameter)"
    )


def _refuse_shared(entries: Sequence[Entry]) -> None:
    """Misuse: two tensors are in the same memory, so a step would update it twice."""
    before: dict[torch.device, list[Entry]] = {}
    for entry in sorted(entries, key=lambda e: e.tensor.data_ptr()):
        begin = entry.tensor.data_ptr()
        reaching = [
            other
            for other in before.get(entry.tensor.device, [])
            if extent_of(other.tensor)[1] > begin
        ]
        for other in reaching:
            buffers = entry.role is Role.BUFFER and other.role is Role.BUFFER
            if not buffers and overlap(entry.tensor, other.tensor):
                raise Misuse(
                    f"{other.name} and {entry.name} are two tensors in the same "
                    "memory; to tie them, assign the same Parameter to both modules"
                )
        before[entry.tensor.device] = [*reaching, entry]


def _with_values(entry: Entry) -> Entry:
    """The entry, after a check that its values can travel."""
    tensor = entry.tensor.detach()
    if entry.role is Role.BUFFER:
        if not needs_bits(tensor):
            return entry
        if tensor.dtype in WITH_BITS:
            return replace(entry, as_bits=True)
        raise Misuse(
            f"the buffer {entry.name} is {tensor.dtype} and has values that float32 "
            f"cannot hold{_REMEDY}"
        )
    finite = torch.isfinite(tensor).reshape(-1)
    if not bool(finite.all()):
        at = int(finite.int().argmin())
        raise InvalidSetting(
            f"{entry.name} holds {tensor.reshape(-1)[at].item()} at element {at}; the "
            "servers take finite weights"
        )
    return entry


def group_settings(
    kind: str, declared: Declared, own: Sequence[Mapping[str, Any]]
) -> tuple[list[dict[str, Any]], list[int]]:
    """training.parameter_groups, and the torch group of each learning rate.

    own: the options of each torch group that differ from training.optimizer, whose
    rate comes first. A first group without such options has no entry.
    """
    entries: list[dict[str, Any]] = []
    rates = [0]
    for index, names in enumerate(declared.group_names):
        if names and (index > 0 or own[index]):
            spec = spec_of(kind, own[index])
            entries.append({"parameters": names, "optimizer": spec})
            rates.append(index)
    if declared.frozen_names:
        entries.append({"parameters": declared.frozen_names, "frozen": True})
        rates.append(0)
    return entries, rates


def load(model: Model, state: Mapping[str, torch.Tensor]) -> None:
    """InvalidSetting: the state is another model's."""
    if not isinstance(model, torch.nn.Module):
        raise Misuse(
            "load_state_dict wants cluster.optimizer(model, ...) with a Module"
        )
    try:
        model.load_state_dict(state)
    except RuntimeError as error:
        raise InvalidSetting(str(error)) from None
