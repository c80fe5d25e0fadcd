/* SPDX-FileCopyrightText: 2026 the descent authors
   SPDX-License-Identifier: MIT
   A C11 program that trains through examples/c_api. Prints what does not hold. */
#include "descent_c.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int wrong = 0;
#define CHECK(x)                                                                            \
  do {                                                                                      \
    if (!(x)) {                                                                             \
      printf("%s:%d: does not hold: %s (message: %s)\n", __FILE__, __LINE__, #x, descent_message()); \
      ++wrong;                                                                              \
    }                                                                                       \
  } while (0)

enum { rows = 3, columns = 4, elements = rows * columns + 3 };

/* A matrix and a vector in one array, with gradients; bits of float, or of half or bfloat16. */
typedef struct model {
  float w[elements], g[elements];
  uint16_t w16[elements], g16[elements];
} model;

static float from_bfloat16(uint16_t x) {
  uint32_t const bits = (uint32_t)x << 16;
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}
static uint16_t to_bfloat16(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return (uint16_t)((bits + 0x8000) >> 16);
}

static void list(model* m, descent_type type, descent_parameter p[2]) {
  size_t const size = type == DESCENT_FLOAT ? 4 : 2;
  char* const w = type == DESCENT_FLOAT ? (char*)m->w : (char*)m->w16;
  char* const g = type == DESCENT_FLOAT ? (char*)m->g : (char*)m->g16;
  p[0] = (descent_parameter){"weight", w, g, rows, columns, 0};
  p[1] = (descent_parameter){"bias", w + rows * columns * size, g + rows * columns * size, 3, 1, 1};
}
/* The gradient of sum (w - i / 8)^2 / 2, times `scale`. */
static void backward(model* m, descent_type type, double scale) {
  for (int i = 0; i < elements; ++i) {
    float const w = type == DESCENT_FLOAT ? m->w[i] : from_bfloat16(m->w16[i]);
    float const g = (float)((w - i / 8.0) * scale);
    m->g[i] = g, m->g16[i] = to_bfloat16(g);
  }
}
static double loss(model const* m, descent_type type) {
  double sum = 0;
  for (int i = 0; i < elements; ++i) {
    double const d = (type == DESCENT_FLOAT ? m->w[i] : from_bfloat16(m->w16[i])) - i / 8.0;
    sum += d * d / 2;
  }
  return sum;
}

/* Saved pieces, one after the other. */
typedef struct file {
  char name[32][64];
  char data[32][1024];
  size_t bytes[32];
  int count, fails_at;
} file;
static int write_piece(char const* name, void const* data, size_t bytes, void* user) {
  file* const f = user;
  if (f->count == f->fails_at || bytes > sizeof f->data[0]) return 7;
  snprintf(f->name[f->count], sizeof f->name[0], "%s", name);
  memcpy(f->data[f->count], data, bytes);
  f->bytes[f->count++] = bytes;
  return 0;
}
static int read_piece(char const* name, void* data, size_t bytes, void* user) {
  file const* const f = user;
  for (int i = 0; i < f->count; ++i)
    if (strcmp(f->name[i], name) == 0 && f->bytes[i] == bytes) return memcpy(data, f->data[i], bytes), 0;
  return 1;
}

/* A schedule, and the steps that it was asked for. */
typedef struct rates {
  int64_t asked[16];
  int count;
} rates;
static double recorded(int64_t n, void* user) {
  rates* const r = user;
  if (r->count < 16) r->asked[r->count++] = n;
  return 0.5 / (double)(n + 1);
}

/* The schedule is a function of the number of updates, as in C++: a step that is skipped does not advance it, and a run
   that is loaded goes on where it was. */
static void schedules(void) {
  model m = {0}, n;
  descent_parameter p[2];
  descent_options const options = {.type = DESCENT_FLOAT};
  descent_optimizer *opt = NULL, *resumed = NULL;
  rates seen = {.count = 0}, seen_again = {.count = 0};
  static file f;
  list(&m, DESCENT_FLOAT, p);
  CHECK(descent_create(&opt, "sgd", NULL, 0, p, 2, &options) == DESCENT_OK);
  CHECK(descent_schedule(opt, recorded, &seen) == DESCENT_OK);
  for (int t = 0; t < 4; ++t) {
    backward(&m, DESCENT_FLOAT, 1);
    if (t == 1) m.g[0] = INFINITY;
    CHECK(descent_step(opt) == DESCENT_OK);
  }
  int64_t const wanted[] = {0, 1, 1, 2};
  CHECK(seen.count == 4 && memcmp(seen.asked, wanted, sizeof wanted) == 0);

  f.count = 0, f.fails_at = -1;
  CHECK(descent_save(opt, write_piece, &f) == DESCENT_OK);
  n = m;
  list(&n, DESCENT_FLOAT, p);
  CHECK(descent_create(&resumed, "sgd", NULL, 0, p, 2, &options) == DESCENT_OK);
  CHECK(descent_schedule(resumed, recorded, &seen_again) == DESCENT_OK);
  CHECK(descent_load(resumed, read_piece, &f) == DESCENT_OK);
  for (int t = 0; t < 2; ++t) {
    backward(&m, DESCENT_FLOAT, 1), backward(&n, DESCENT_FLOAT, 1);
    CHECK(descent_step(opt) == DESCENT_OK && descent_step(resumed) == DESCENT_OK);
  }
  CHECK(seen_again.count == 2 && seen_again.asked[0] == 3 && seen_again.asked[1] == 4);
  CHECK(memcmp(m.w, n.w, sizeof m.w) == 0);
  descent_destroy(opt), descent_destroy(resumed);
}

static double falling(int64_t n, void* user) { return *(double*)user / (double)(n + 1); }

static void trains(char const* rule, descent_type type, double lr) {
  model m = {0}, n;
  descent_parameter p[2];
  descent_setting const settings[] = {{"lr", lr}, {"weight_decay", 0}, {"matrix.lr", lr}};
  size_t const set = strcmp(rule, "muon") == 0 ? 3 : 2;
  descent_options const options = {.type = type, .clip_norm = 1, .loss_scale = type == DESCENT_FLOAT ? 0 : 64};
  descent_optimizer *opt = NULL, *resumed = NULL;
  for (int i = 0; i < elements; ++i) m.w[i] = 1, m.w16[i] = to_bfloat16(1);
  list(&m, type, p);
  CHECK(descent_create(&opt, rule, settings, set, p, 2, &options) == DESCENT_OK);
  if (!opt) return;
  double const before = loss(&m, type);
  double scale = 1;
  for (int t = 0; t < 50; ++t) {
    CHECK(descent_get_loss_scale(opt, &scale) == DESCENT_OK);
    CHECK(scale == (type == DESCENT_FLOAT ? 1 : 64));
    backward(&m, type, scale);
    CHECK(descent_step(opt) == DESCENT_OK);
  }
  CHECK(loss(&m, type) < before * 0.5);
  descent_report report;
  CHECK(descent_get_report(opt, &report) == DESCENT_OK);
  CHECK(report.step == 50 && report.skipped == 0 && report.applied);
  CHECK(fabs(report.learning_rate - lr) < 1e-15);

  /* A gradient that is not finite is skipped. */
  n = m;
  m.g[0] = NAN, m.g16[0] = 0x7fc0;
  CHECK(descent_step(opt) == DESCENT_OK && descent_get_report(opt, &report) == DESCENT_OK);
  CHECK(!report.applied && report.skipped == 1);
  CHECK(memcmp(m.w, n.w, sizeof m.w) == 0 && memcmp(m.w16, n.w16, sizeof m.w16) == 0);

  /* A run goes on from a saved state with the same bits. */
  static file f;
  f.count = 0, f.fails_at = -1;
  CHECK(descent_save(opt, write_piece, &f) == DESCENT_OK);
  n = m;
  list(&n, type, p);
  CHECK(descent_create(&resumed, rule, settings, set, p, 2, &options) == DESCENT_OK);
  CHECK(descent_load(resumed, read_piece, &f) == DESCENT_OK);
  for (int t = 0; t < 3; ++t) {
    backward(&m, type, 1), backward(&n, type, 1);
    CHECK(descent_step(opt) == DESCENT_OK && descent_step(resumed) == DESCENT_OK);
  }
  CHECK(memcmp(m.w, n.w, sizeof m.w) == 0 && memcmp(m.w16, n.w16, sizeof m.w16) == 0);
  f.count = 0, f.fails_at = 2;
  CHECK(descent_save(opt, write_piece, &f) == DESCENT_FAILED);
  CHECK(strstr(descent_message(), "the callback returned 7"));
  descent_destroy(opt), descent_destroy(resumed);
}

static void settings_and_errors(void) {
  model m = {0}, moved;
  descent_parameter p[2];
  descent_options options = {.type = DESCENT_FLOAT};
  descent_setting setting = {"lr", 0.5};
  descent_optimizer* opt = NULL;
  list(&m, DESCENT_FLOAT, p);
  CHECK(descent_create(&opt, "adam", NULL, 0, p, 2, &options) == DESCENT_INVALID_ARGUMENT);
  CHECK(strcmp(descent_message(), "there is no rule 'adam'; there are sgd, adamw, lion, lamb and muon") == 0);
  CHECK(opt == NULL);
  setting.name = "rate";
  CHECK(descent_create(&opt, "sgd", &setting, 1, p, 2, &options) == DESCENT_INVALID_ARGUMENT);
  CHECK(strncmp(descent_message(), "the rule has no field 'rate'; it has lr, ", 40) == 0);
  setting.name = "lr", setting.value = -1;
  CHECK(descent_create(&opt, "sgd", &setting, 1, p, 2, &options) == DESCENT_INVALID_ARGUMENT);
  CHECK(strstr(descent_message(), "lr") != NULL);
  setting.name = "nesterov", setting.value = 2;
  CHECK(descent_create(&opt, "sgd", &setting, 1, p, 2, &options) == DESCENT_INVALID_ARGUMENT);
  for (int i = 0; i < 4; ++i) {
    int const types[] = {9, 77, -1, INT32_MAX};
    options.type = types[i];
    CHECK(descent_create(&opt, "sgd", NULL, 0, p, 2, &options) == DESCENT_INVALID_ARGUMENT);
    CHECK(strncmp(descent_message(), "type must be 0, 1 or 2, is ", 27) == 0);
  }
  options.type = DESCENT_FLOAT, options.on_cuda = 2;
  CHECK(descent_create(&opt, "sgd", NULL, 0, p, 2, &options) == DESCENT_INVALID_ARGUMENT);
  CHECK(strcmp(descent_message(), "on_cuda must be 0 or 1, is 2") == 0);
  options.on_cuda = 0;
  for (int i = 0; i < 3; ++i) {
    double const scales[] = {-1, NAN, 1e300};
    options.loss_scale = scales[i];
    CHECK(descent_create(&opt, "sgd", NULL, 0, p, 2, &options) == DESCENT_INVALID_ARGUMENT);
  }
  options.loss_scale = 0;
  for (int i = 0; i < 2; ++i) {
    p[0].group = i ? 65536 : -1;
    CHECK(descent_create(&opt, "sgd", NULL, 0, p, 2, &options) == DESCENT_INVALID_ARGUMENT);
    CHECK(strstr(descent_message(), "group must be in [0, 65535]"));
  }
  p[0].group = 0, p[0].rows = INT64_MAX;
  CHECK(descent_create(&opt, "sgd", NULL, 0, p, 2, &options) == DESCENT_INVALID_ARGUMENT);
  p[0].rows = rows, p[0].columns = 0;
  CHECK(descent_create(&opt, "sgd", NULL, 0, p, 2, &options) == DESCENT_INVALID_ARGUMENT);
  p[0].columns = columns, p[0].value = (char*)m.w + 2;
  CHECK(descent_create(&opt, "sgd", NULL, 0, p, 2, &options) == DESCENT_INVALID_ARGUMENT);
  CHECK(strstr(descent_message(), "aligned"));
  p[0].value = m.w;
  options.clip_norm = NAN;
  CHECK(descent_create(&opt, "sgd", NULL, 0, p, 2, &options) == DESCENT_INVALID_ARGUMENT);
  options.clip_norm = -1;
  CHECK(descent_create(&opt, "sgd", NULL, 0, p, 2, &options) == DESCENT_INVALID_ARGUMENT);
  options.clip_norm = 0;
  CHECK(descent_create(&opt, "sgd", NULL, 0, NULL, 2, &options) == DESCENT_INVALID_ARGUMENT);
  CHECK(descent_create(NULL, "sgd", NULL, 0, p, 2, &options) == DESCENT_INVALID_ARGUMENT);
  CHECK(descent_step(NULL) == DESCENT_INVALID_ARGUMENT);
  CHECK(strcmp(descent_message(), "the optimizer is null") == 0);

  CHECK(descent_create(&opt, "sgd", NULL, 0, p, 2, &options) == DESCENT_OK);
  double value = 0, rate = 0.5;
  CHECK(descent_set(opt, 1, "lr", 0) == DESCENT_OK && descent_get(opt, 1, "lr", &value) == DESCENT_OK && value == 0);
  descent_interval allowed;
  CHECK(descent_get_interval(opt, "lr", &allowed) == DESCENT_OK && allowed.low == 0 && !allowed.above && !allowed.infinite);
  CHECK(strcmp(allowed.text, "finite and at least 0") == 0);
  CHECK(descent_get_interval(opt, "beta1", &allowed) == DESCENT_INVALID_ARGUMENT);
  CHECK(descent_get_interval(opt, "lr", NULL) == DESCENT_INVALID_ARGUMENT);
  CHECK(descent_set(opt, 2, "lr", 0) == DESCENT_INVALID_ARGUMENT);
  CHECK(descent_set(opt, -1, "lr", 0) == DESCENT_INVALID_ARGUMENT);
  CHECK(descent_get(opt, INT32_MAX, "lr", &value) == DESCENT_INVALID_ARGUMENT);
  CHECK(descent_set(opt, 0, "beta1", 0) == DESCENT_INVALID_ARGUMENT);
  CHECK(descent_set(opt, 0, "lr", 0.25) == DESCENT_OK);
  for (int i = 0; i < elements; ++i) m.g[i] = 1;
  CHECK(descent_step(opt) == DESCENT_OK);
  CHECK(m.w[0] == -0.25f && m.w[elements - 1] == 0); /* group 1 stands still */
  CHECK(descent_set(opt, 0, "lr", NAN) == DESCENT_OK && descent_step(opt) == DESCENT_INVALID_ARGUMENT);
  CHECK(m.w[0] == -0.25f);

  CHECK(descent_schedule(opt, falling, &rate) == DESCENT_OK);
  CHECK(descent_step(opt) == DESCENT_OK && m.w[0] == -0.5f); /* the second step that was taken: 0.5 / 2 */
  moved = m;
  list(&moved, DESCENT_FLOAT, p);
  CHECK(descent_rebind(opt, p, 1) == DESCENT_INVALID_ARGUMENT);
  CHECK(descent_rebind(opt, p, 2) == DESCENT_OK);
  CHECK(descent_step(opt) == DESCENT_OK && m.w[0] == -0.5f && moved.w[0] < -0.6f);
  CHECK(descent_zero_grad(opt) == DESCENT_OK && moved.g[0] == 0 && m.g[0] == 1);
  descent_destroy(opt);
  descent_destroy(NULL);
}

int main(void) {
  char const* const rules[] = {"sgd", "adamw", "lion", "lamb", "muon"};
  double const rates[] = {0.2, 0.05, 0.05, 0.05, 0.05};
  for (int r = 0; r < 5; ++r) trains(rules[r], DESCENT_FLOAT, rates[r]), trains(rules[r], DESCENT_BFLOAT16, rates[r]);
  schedules();
  settings_and_errors();
  printf("%d checks failed\n", wrong);
  return wrong != 0;
}
