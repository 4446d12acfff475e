// GARCH(1, 1): the variance of each step follows the last shock and the last variance. Flat priors.
data {
  int<lower=1> T;
  array[T] real y;
  real<lower=0> sigma1;
}
parameters {
  real mu;
  real<lower=0> alpha0;
  real<lower=0, upper=1> alpha1;
  real<lower=0, upper=1 - alpha1> beta1;
}
model {
  real s = sigma1;
  y[1] ~ normal(mu, s);
  for (t in 2 : T) {
    s = sqrt(alpha0 + alpha1 * square(y[t - 1] - mu) + beta1 * square(s));
    y[t] ~ normal(mu, s);
  }
}
