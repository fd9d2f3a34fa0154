// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "compare/figures.h"

namespace diwarp::tools {

/// Throws Failure, before anything is measured, if no plot can be made: no gnuplot, or no such
/// folder.
void check_plot(const std::string& file);

/// The ratios with their quartiles and targets, as SVG.
void write_plot(const std::string& file, const std::string& title, std::span<const Figure> figures);

/// The same for gnuplot to read.
std::string plot_script(const std::string& file, const std::string& title,
                        std::span<const Figure> figures);

}  // namespace diwarp::tools
