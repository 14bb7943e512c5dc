import matplotlib.pyplot as plt

counts = [8, 16, 32, 48, 64]
totals = [size_of(experts).total / 1e9 for experts in counts]
actives = [size_of(experts).active / 1e9 for experts in counts]

figure, axes = plt.subplots(figsize=(7, 3.6))
places = range(len(counts))
axes.bar([place - 0.2 for place in places], totals, 0.4, label="total")
axes.bar([place + 0.2 for place in places], actives, 0.4, label="active", hatch="//")
axes.set_xticks(list(places), [str(count) for count in counts])
axes.set(xlabel="routed experts E", ylabel="billion parameters")
axes.legend()
