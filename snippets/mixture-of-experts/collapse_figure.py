import matplotlib.pyplot as plt

figure, panels = plt.subplots(1, 3, figsize=(7.5, 3), sharey=True)
for number, (panel, remedy) in enumerate(zip(panels, remedies, strict=True)):
    for curve in curves[remedy]:
        panel.plot(curve, color=f"C{number}")
    panel.axhline(1 / kinds, linestyle=":", linewidth=1, color="C7")
    panel.set(title=remedy, xlabel="step", ylim=(0, 1.05))
panels[0].set_ylabel("share of the busiest expert")
