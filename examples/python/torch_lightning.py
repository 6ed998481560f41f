"""Lightning trains in FP16 with samebits' GradScaler.

    python examples/python/torch_lightning.py

Needs torch and lightning. Runs on a GPU, or on a CPU if there is none.
"""

import warnings

import lightning
import torch
from lightning.pytorch.plugins.precision import MixedPrecision
from torch.utils.data import DataLoader, TensorDataset

import samebits.torch as sbt


class Regression(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.ReLU(),
                                          torch.nn.Linear(64, 1))

    def training_step(self, batch: tuple[torch.Tensor, torch.Tensor], index: int) -> torch.Tensor:
        x, y = batch
        return torch.nn.functional.mse_loss(self.layers(x), y)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=1e-2)


def main() -> None:
    warnings.filterwarnings("ignore")
    lightning.seed_everything(0, verbose=False)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.randn(256, 8)
    batches = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8)
    model = Regression()

    # The scale begins far too high, to show what the reports say.
    scaler = sbt.GradScaler(device, 2.0**24, policy="native", max_norm=1.0)
    scaler.name_parameters(model)
    precision = MixedPrecision(precision="16-mixed", device=device, scaler=scaler)
    trainer = lightning.Trainer(
        accelerator="gpu" if device == "cuda" else "cpu", devices=1, max_epochs=1,
        plugins=[precision], logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False)
    trainer.fit(model, batches)

    if device == "cuda":
        torch.cuda.synchronize()  # only to see the last reports
    applied = 0
    for report in scaler.reports():
        applied += report.applied
        if not report.applied:
            print(f"step {report.step}: skipped, {report.cause} in {report.first_bad} at scale "
                  f"{report.scale:g}, scale {report.change}")
    print(f"{applied} steps applied, scale {scaler.get_scale():g}")


if __name__ == "__main__":
    main()
