"""transformers' Trainer trains a small GPT-2 with samebits' GradScaler.

    python examples/python/torch_trainer.py

Needs torch, transformers and accelerate. On a GPU it trains in FP16. On a CPU, where accelerate has
no FP16, the scaler works on FP32 gradients.
"""

import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

import samebits.torch as sbt


class Counting(torch.utils.data.Dataset):  # type: ignore[type-arg]
    """Rows of numbers that count up."""

    def __len__(self) -> int:
        return 64

    def __getitem__(self, i: int) -> dict[str, torch.Tensor]:
        row = (torch.arange(16) + i) % 32
        return {"input_ids": row, "labels": row}


def main() -> None:
    on_gpu = torch.cuda.is_available()
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=32, n_positions=16, n_embd=32, n_layer=2,
                                       n_head=2, bos_token_id=0, eos_token_id=0))
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(model=model, train_dataset=Counting(), args=TrainingArguments(
            folder, max_steps=24, per_device_train_batch_size=8, learning_rate=1e-3, fp16=on_gpu,
            use_cpu=not on_gpu, max_grad_norm=0,  # the scaler clips, in the pass that unscales
            report_to=[], save_strategy="no", disable_tqdm=True, dataloader_pin_memory=on_gpu))
        scaler = sbt.GradScaler("cuda" if on_gpu else "cpu", max_norm=1.0)
        scaler.name_parameters(model)
        trainer.accelerator.scaler = scaler
        trainer.train()

    if on_gpu:
        torch.cuda.synchronize()  # only to see the last reports
    reports = list(scaler.reports())
    for report in reports:
        if not report.applied:
            print(f"step {report.step}: skipped, {report.cause} in {report.first_bad}")
    applied = [r for r in reports if r.applied]
    print(f"{len(applied)} of {len(reports)} steps applied, gradient norm {applied[0].norm:.3g} "
          f"at first, {applied[-1].norm:.3g} at last, scale {scaler.get_scale():g}")


if __name__ == "__main__":
    main()
