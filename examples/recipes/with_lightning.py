"""Lightning on Shoal. Its DDP strategy finds the process group and uses it:

    python examples/recipes/with_lightning.py                          one process
    shoal run -n 2 -- python examples/recipes/with_lightning.py        two members
    torchrun --nproc-per-node 2 examples/recipes/with_lightning.py     the same, started by torchrun
"""

import lightning as L
import torch
import torch.nn.functional as F
from lightning.fabric.plugins.environments import LightningEnvironment
from torch import distributed
from torch.utils.data import DataLoader, TensorDataset

import shoal


class Members(LightningEnvironment):
    """Tells Lightning where it stands: each member is a node with one device, whoever started it."""

    creates_processes_externally = True

    def node_rank(self) -> int:
        return distributed.get_rank()

    def local_rank(self) -> int:
        return 0


class Regression(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))

    def training_step(self, batch, index):
        x, y = batch
        return F.mse_loss(self.net(x), y)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def main() -> None:
    shoal.init_process_group()
    L.seed_everything(1)
    x = torch.randn(64, 8)
    data = TensorDataset(x, x.sum(1, keepdim=True))
    model = Regression()
    trainer = L.Trainer(accelerator="cpu", devices=1, num_nodes=distributed.get_world_size(), plugins=[Members()],
                        strategy="ddp", max_epochs=2, logger=False, enable_checkpointing=False, enable_progress_bar=False,
                        enable_model_summary=False)
    trainer.fit(model, DataLoader(data, 8, shuffle=True))
    total = sum(p.double().sum().item() for p in model.parameters())
    print(f"rank {distributed.get_rank()} took {trainer.global_step} steps, its parameters sum to {total:.7f}")


if __name__ == "__main__":
    main()
