// SPDX-License-Identifier: Apache-2.0
// There must be one source for headers.h to be compiled with.
