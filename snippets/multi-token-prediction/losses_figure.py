import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(7, 3.4))
ahead = [1, 2, 3]
for number, (name, losses) in enumerate(measured.items()):
    axes.plot(ahead, losses, "o-", color=f"C{number}", label=f"{name}, trained")
    axes.plot(ahead, floors[name], "_", color=f"C{number}", markersize=22, label=f"{name}, least possible")
axes.set_xticks(ahead)
axes.set(xlabel="tokens ahead", ylabel="loss, nats", xlim=(0.7, 3.3))
axes.legend(fontsize=9)
