"""Hugging Face's Trainer on Shoal, with a tiny language model that it need not download:

    python examples/recipes/with_trainer.py                          one process
    shoal run -n 2 -- python examples/recipes/with_trainer.py        two members
    torchrun --nproc-per-node 2 examples/recipes/with_trainer.py     the same, started by torchrun
"""

import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

import shoal


def main() -> None:
    shoal.init_process_group()
    set_seed(1)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=16, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0))
    tokens = torch.randint(0, 64, (64, 16))
    data = [{"input_ids": row, "labels": row} for row in tokens]
    with tempfile.TemporaryDirectory() as folder:
        args = TrainingArguments(folder, use_cpu=True, per_device_train_batch_size=4, num_train_epochs=2, learning_rate=1e-3,
                                 ddp_find_unused_parameters=False, save_strategy="no", report_to="none", disable_tqdm=True)
        trainer = Trainer(model, args, train_dataset=data)
        trainer.train()
    total = sum(p.double().sum().item() for p in model.parameters())
    print(f"rank {args.process_index} took {trainer.state.global_step} steps, its parameters sum to {total:.7f}")


if __name__ == "__main__":
    main()
