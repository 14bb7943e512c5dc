import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(7, 3.4))
ahead = [1, 2, 3]
for number, (name, losses) in enumerate(measured.items()):
    color = f"C{number}"
    axes.plot(ahead, losses, "o-", color=color, label=f"{name}, trained")
    least_label = f"{name}, least possible"
    axes.plot(ahead, floors[name], "_", color=color, markersize=22, label=least_label)
axes.set_xticks(ahead)
axes.set(xlabel="tokens ahead", ylabel="loss, nats", xlim=(0.7, 3.3))
axes.legend(fontsize=9)
