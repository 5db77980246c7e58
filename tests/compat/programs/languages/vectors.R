# Vectors, matrices (BLAS), sorting and conditions.
sums <- sapply(1:2000, function(i) sum((1:i)^2 %% 7))
cells <- matrix(rep(1:4, 2500), 100)
print(c(sum(sums), sum(cells %*% cells), sort((1:50000 * 7919) %% 10007)[25000]))
print(tryCatch(stop("raised"), error = function(e) conditionMessage(e)))
