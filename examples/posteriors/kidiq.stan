// Test scores of children on their mothers' schooling, IQ and the product of both: strongly correlated coefficients.
data {
  int<lower=0> N;
  vector[N] kid_score, mom_hs, mom_iq;
}
transformed data {
  vector[N] both = mom_hs .* mom_iq;
}
parameters {
  vector[4] beta;
  real<lower=0> sigma;
}
model {
  sigma ~ cauchy(0, 2.5);
  kid_score ~ normal(beta[1] + beta[2] * mom_hs + beta[3] * mom_iq + beta[4] * both, sigma);
}
