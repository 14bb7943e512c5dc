from matplotlib import pyplot as plt

from decoder.ablate.result import read_results

PLANS = (
    "same",
    "shuffled",
    "statistic",
    "gate",
    "parallel",
    "tying",
    "kv-heads",
)


def draw_differences():
    results = read_results("docs/decoder/results")
    rows = [
        (found, f"{plan}: {found['variant']}", f"C{number}")
        for number, plan in enumerate(PLANS)
        if results[plan]
        for found in results[plan].content["comparisons"]
    ][::-1]
    _, axes = plt.subplots(figsize=(7.5, 0.36 * len(rows) + 0.9))
    axes.axvline(0, color="C7", linewidth=1)
    for y, (found, _, colour) in enumerate(rows):
        axes.plot(found["interval"], [y, y], color=colour, linewidth=2)
        axes.plot(
            found["differences"],
            [y] * len(found["differences"]),
            "|",
            color=colour,
            markersize=10,
        )
        axes.plot(found["mean"], y, "o", color=colour, markersize=6)
    axes.set_yticks(range(len(rows)), [label for _, label, _ in rows])
    axes.set(xlabel="difference of held-out loss, nats a byte")


draw_differences()
