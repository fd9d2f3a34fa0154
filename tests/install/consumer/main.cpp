// SPDX-License-Identifier: Apache-2.0
#include <diwarp/verbs.h>

int main() { diwarp::Device device = diwarp::Device::open("127.0.0.1"); }
