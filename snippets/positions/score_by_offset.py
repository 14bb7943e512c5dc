import matplotlib.pyplot as plt

figure, (wide, near) = plt.subplots(2, 1, figsize=(7.5, 5.0))
for axis, end in ((wide, 2049), (near, 257)):
    axis.plot(offsets[:end], same[:end], label="key equal to the query")
    axis.plot(offsets[:end], aimed[:end], label="key turned 100 steps ahead")
    axis.plot(offsets[:end], random[:end], linewidth=1, label="random query and key")
    axis.axhline(0, color="C3", linewidth=0.8)
    axis.set_ylabel("score")
near.set_xlabel("offset: positions from the key to the query")
wide.legend(fontsize=9, ncols=3, loc="upper right")
