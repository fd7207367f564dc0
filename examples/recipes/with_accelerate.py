"""Accelerate on Shoal. It finds the process group and uses it:

    python examples/recipes/with_accelerate.py                          one process
    shoal run -n 2 -- python examples/recipes/with_accelerate.py        two members
    torchrun --nproc-per-node 2 examples/recipes/with_accelerate.py     the same, started by torchrun
"""

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset

import shoal


def main() -> None:
    shoal.init_process_group()
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    set_seed(1)
    x = torch.randn(64, 8)
    data = TensorDataset(x, x.sum(1, keepdim=True))
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    model, optimizer, loader = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1), DataLoader(data, 4, shuffle=True))
    steps = 0
    for _ in range(2):
        for inputs, targets in loader:
            with accelerator.accumulate(model):
                accelerator.backward(F.mse_loss(model(inputs), targets))
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
                steps += accelerator.sync_gradients
    total = sum(p.double().sum().item() for p in model.parameters())
    print(f"rank {accelerator.process_index} took {steps} steps, its parameters sum to {total:.7f}")


if __name__ == "__main__":
    main()
