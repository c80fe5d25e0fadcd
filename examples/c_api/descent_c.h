/* SPDX-FileCopyrightText: 2026 the descent authors
   SPDX-License-Identifier: MIT

   Optimizers behind a plain C interface, for programs in C, C++11 to 17, Fortran or Python. Copy this folder into your
   project, keep the rules and policies that you need, and compile it as C++20; nothing else has to be.

   Functions return DESCENT_OK, or a status and a text in descent_message(). No C++ exception passes this interface. After
   an error nothing has changed. An optimizer is used by one thread at a time. */
#ifndef DESCENT_C_H
#define DESCENT_C_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum descent_status {
  DESCENT_OK = 0,
  DESCENT_INVALID_ARGUMENT = 1, /* a setting, name or pointer that is not allowed */
  DESCENT_WRONG_ORDER = 2,      /* a call that is not allowed now */
  DESCENT_DEVICE_FAILED = 3,    /* CUDA returned an error */
  DESCENT_OUT_OF_MEMORY = 4,
  DESCENT_FAILED = 5 /* anything else, such as a callback that failed */
} descent_status;

/* The type of values and gradients. Of half and bfloat16 the optimizer keeps float masters. */
typedef enum descent_type { DESCENT_FLOAT = 0, DESCENT_HALF = 1, DESCENT_BFLOAT16 = 2 } descent_type;

/* A parameter of rows x columns elements, row by row; columns is 1 for anything that is not a matrix. The memory belongs
   to the caller and must outlive the optimizer. Groups are 0, 1, ...: each has its own settings. */
typedef struct descent_parameter {
  char const* name;
  void* value;
  void* gradient;
  int64_t rows, columns;
  int group;
} descent_parameter;

/* A field of the rule by its name, such as {"weight_decay", 0.1}; a flag is 0 or 1. */
typedef struct descent_setting {
  char const* name;
  double value;
} descent_setting;

typedef struct descent_options {
  int type;          /* a descent_type */
  double clip_norm;  /* the norm of all gradients is at most this; 0: no clipping */
  double loss_scale; /* the first scale of a dynamic loss scale; 0: none. A step that overflows is skipped either way. */
  int on_cuda;       /* 0: host memory; 1: memory of the current CUDA device */
  void* stream;      /* with on_cuda, a cudaStream_t; steps only enqueue work on it */
} descent_options;

typedef struct descent_report {
  int64_t step, skipped; /* updates applied and skipped so far */
  int applied;           /* whether the last step changed the parameters */
  double learning_rate, loss_scale, grad_norm, clip_factor;
} descent_report;

/* The values that a field may have: from `low`, left out if `above`, to `high`, left out if `below`; with `infinite` also
   infinity. In float a value above 0 must be at least 1.17549e-38. `text` is as in messages, such as "in [0, 1)". */
typedef struct descent_interval {
  double low, high;
  int above, below, infinite;
  char const* text;
} descent_interval;

typedef struct descent_optimizer descent_optimizer;

/* What went wrong in the last call of this thread that failed. Valid until its next call. */
char const* descent_message(void);

/* Rules: "sgd", "adamw", "lion", "lamb", and "muon" for matrices with adamw for all other parameters; muon's own fields
   are "matrix.lr", "matrix.momentum" and so on. Settings that are not given have the library's defaults. */
descent_status descent_create(descent_optimizer** made, char const* rule, descent_setting const* settings,
                              size_t settings_count, descent_parameter const* parameters, size_t parameters_count,
                              descent_options const* options);
void descent_destroy(descent_optimizer* optimizer);

/* One step on the current gradients. Without a schedule it may be captured into a CUDA graph. */
descent_status descent_step(descent_optimizer* optimizer);
descent_status descent_zero_grad(descent_optimizer* optimizer);

/* A field of one group's rule; takes effect at the next step. */
descent_status descent_set(descent_optimizer* optimizer, int group, char const* name, double value);
descent_status descent_get(descent_optimizer* optimizer, int group, char const* name, double* value);
descent_status descent_get_interval(descent_optimizer* optimizer, char const* name, descent_interval* interval);
/* lr(n, user) is called before each step with the number n = 0, 1, ... of updates applied so far, and becomes the field
   "lr" of every group: a step that is skipped does not advance n, and after load() it goes on where the saved run was.
   On CUDA a step with such a schedule waits for the stream, which must not be capturing, as only the device knows n.
   Null: no schedule. */
descent_status descent_schedule(descent_optimizer* optimizer, double (*lr)(int64_t n, void* user), void* user);

/* New addresses of the same parameters, in any order. */
descent_status descent_rebind(descent_optimizer* optimizer, descent_parameter const* parameters, size_t count);

/* These wait for the stream. */
descent_status descent_get_report(descent_optimizer* optimizer, descent_report* report);
descent_status descent_get_loss_scale(descent_optimizer* optimizer, double* scale);

/* Saves the state in named pieces: calls write(name, data, bytes, user) for each, with data in host memory. load() calls
   read(name, data, bytes, user) for each piece, which fills `data`. Both return 0, or another number to stop. Values and
   settings are the caller's. */
descent_status descent_save(descent_optimizer* optimizer,
                            int (*write)(char const* name, void const* data, size_t bytes, void* user), void* user);
descent_status descent_load(descent_optimizer* optimizer,
                            int (*read)(char const* name, void* data, size_t bytes, void* user), void* user);

#ifdef __cplusplus
}
#endif

#endif
