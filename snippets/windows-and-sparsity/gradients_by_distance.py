import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(7.5, 3.8))
for style, (name, stack) in zip(("-", "--", "-.", ":"), stacks.items(), strict=True):
    size = arriving(stack)
    back = [distance for distance in range(tokens) if size[-1 - distance] > 0]
    axes.plot(back, [size[-1 - distance].item() for distance in back], style, marker=".", label=name)
axes.set(xlabel="tokens back from the last output", ylabel="size of the gradient", yscale="log")
axes.minorticks_off()
axes.legend(fontsize=10)
