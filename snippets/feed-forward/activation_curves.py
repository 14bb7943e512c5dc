import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F

curves = {"ReLU": F.relu, "GELU": F.gelu, "SiLU": F.silu}
figure, (whole, lobe) = plt.subplots(1, 2, figsize=(7.5, 3.6))
for axis, (start, end) in ((whole, (-4, 4)), (lobe, (-4, 0.6))):
    z = torch.linspace(start, end, 801, dtype=torch.float64)
    for name, f in curves.items():
        axis.plot(z, f(z), label=name)
        if name != "ReLU":
            low = f(z).argmin()
            axis.plot(z[low], f(z)[low], "o", color=axis.lines[-1].get_color())
    axis.set_xlabel("z")
whole.legend()
lobe.set(ylim=(-0.32, 0.3))
lobe.annotate("minimum of GELU", (-0.75, -0.17), (-3.9, -0.2), fontsize=9)
lobe.annotate("minimum of SiLU", (-1.28, -0.28), (-3.9, -0.3), fontsize=9)
lobe.set_title("near zero and far left", fontsize=10)
