import matplotlib.pyplot as plt

figure, axis = plt.subplots(figsize=(7.5, 2.8))
axis.plot(line, difference * 10_000)
for place in (worst, -worst):
    axis.axvline(place, color="C3", linewidth=1, linestyle="--")
axis.set(xlabel="z", ylabel="exact − tanh, in 0.0001")
