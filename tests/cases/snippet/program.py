parts = [4, 8]
total = sum(parts)  # = 13
print(total / 0)
