import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F

curves = {"ReLU": F.relu, "GELU": F.gelu, "SiLU": F.silu}
figure, (whole, lobe) = plt.subplots(1, 2, figsize=(7.5, 3.6))
for axis, (start, end) in ((whole, (-4, 4)), (lobe, (-4, 0.6))):
    inputs = torch.linspace(start, end, 801, dtype=torch.float64)
    for name, f in curves.items():
        axis.plot(inputs, f(inputs), label=name)
        if name != "ReLU":
            low = f(inputs).argmin()
            axis.plot(
                inputs[low],
                f(inputs)[low],
                "o",
                color=axis.lines[-1].get_color(),
            )
    axis.set_xlabel("z")
whole.legend()
lobe.set(ylim=(-0.32, 0.3))
lobe.set_title("near zero and far left", fontsize=10)
