// A hierarchical model with varying intercepts and slopes, a spline and a count outcome.
functions {
  real soft_clip(real x, real a) {
    return a * tanh(x / a);
  }
  vector effects(matrix z, vector sd, matrix L, array[] int group, array[] row_vector x) {
    matrix[rows(z), cols(z)] b = diag_pre_multiply(sd, L) * z;
    vector[size(group)] eta;
    for (n in 1:size(group)) {
      eta[n] = x[n] * b[, group[n]];
    }
    return eta;
  }
}
data {
  int<lower=1> N;
  int<lower=1> J;
  int<lower=1> K;
  int<lower=1> P;
  int<lower=1> M;
  int<lower=2> C;
  array[N] int<lower=1, upper=J> group;
  array[N] int<lower=1, upper=C> category;
  array[N] row_vector[K] x;
  matrix[N, P] w;
  matrix[N, M] basis;
  vector[N] y;
  array[N] int<lower=0> counts;
  array[N] int<lower=0, upper=1> hit;
}
transformed data {
  matrix[N, P] wc;
  vector[P] w_mean;
  for (p in 1:P) {
    w_mean[p] = mean(w[, p]);
    wc[, p] = w[, p] - w_mean[p];
  }
  real y_scale = sd(y);
}
parameters {
  real alpha;
  vector[P] beta;
  vector<lower=0>[K] sd_group;
  cholesky_factor_corr[K] L;
  matrix[K, J] z;
  vector[M] spline;
  real<lower=0> tau;
  real<lower=0> sigma;
  real<lower=0> phi;
  real<lower=1> nu;
  ordered[C - 1] cut;
  simplex[C] share;
  vector<offset=0, multiplier=tau>[J] u;
  array[C] real<lower=-10, upper=10> by_category;
}
transformed parameters {
  vector[N] eta = alpha + wc * beta + basis * spline;
  vector[N] b = effects(z, sd_group, L, group, x);
  vector[N] mu = eta + b;
  for (n in 1:N) {
    mu[n] += u[group[n]] + by_category[category[n]];
  }
}
model {
  alpha ~ student_t(3, 0, 2.5 * y_scale);
  beta ~ normal(0, 1);
  sd_group ~ normal(0, 1);
  L ~ lkj_corr_cholesky(2);
  to_vector(z) ~ std_normal();
  spline[1] ~ normal(0, 1);
  spline[2:M] ~ normal(spline[1:(M - 1)], tau);
  tau ~ exponential(1);
  sigma ~ cauchy(0, 2);
  phi ~ gamma(2, 0.1);
  nu ~ gamma(2, 0.1);
  u ~ normal(0, tau);
  by_category ~ normal(0, 2);
  share ~ dirichlet(rep_vector(2, C));
  cut ~ normal(0, 3);
  y ~ student_t(nu, mu, sigma);
  counts ~ neg_binomial_2_log(0.1 * mu, phi);
  hit ~ bernoulli_logit(mu / sigma);
  for (n in 1:N) {
    category[n] ~ ordered_logistic(soft_clip(mu[n], 5), cut);
    target += log_sum_exp(log(share[category[n]]), normal_lpdf(y[n] | 0, sigma));
  }
}
generated quantities {
  vector[N] log_lik;
  array[N] int counts_rep;
  vector[N] y_rep;
  matrix[K, K] Omega = multiply_lower_tri_self_transpose(L);
  for (n in 1:N) {
    log_lik[n] = student_t_lpdf(y[n] | nu, mu[n], sigma) + neg_binomial_2_log_lpmf(counts[n] | 0.1 * mu[n], phi);
    counts_rep[n] = neg_binomial_2_log_rng(0.1 * mu[n], phi);
    y_rep[n] = student_t_rng(nu, mu[n], sigma);
  }
}
