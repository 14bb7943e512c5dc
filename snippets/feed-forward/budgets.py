import matplotlib.pyplot as plt

names = ("plain, 4 d", "gated, 8/3 d", "gated, 4 d")
figure, axis = plt.subplots(figsize=(7.5, 2.6))
bars = axis.barh(names, [count / 1e6 for count in (plain, matched, unmatched)], color=("C3", "C0", "C1"))
axis.bar_label(bars, labels=[f"{count:,}" for count in (plain, matched, unmatched)], padding=4, fontsize=9)
axis.invert_yaxis()
axis.set(xlabel="weights, in millions", xlim=(0, 9))
axis.grid(axis="y", visible=False)
