// SPDX-License-Identifier: Apache-2.0
#include "compare/plot.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "common/failure.h"
#include "compare/captured.h"

namespace diwarp::tools {
namespace {

constexpr const char* kGnuplot = "gnuplot";

/// gnuplot takes all characters literally in single quotes but for these.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("''") : std::string(1, c);
  return result + "'";
}

std::vector<Figure> ratios_of(std::span<const Figure> figures) {
  std::vector<Figure> ratios;
  std::ranges::copy_if(figures, std::back_inserter(ratios), [](const Figure& figure) {
    return figure.obstacle.empty() && !figure.baseline.empty();
  });
  return ratios;
}

/// What a row is drawn as.
int class_of(const Figure& figure) {
  constexpr int kNoTarget = 0, kReached = 1, kNotReached = 2;
  const auto result = reached(figure);
  return !result ? kNoTarget : *result ? kReached : kNotReached;
}

/// Lines of: ratio, quartiles, height, title, target or ?, class.
void write_data(std::ostream& out, const std::vector<Figure>& ratios) {
  out << "$ratios << END\n";
  for (size_t i = 0; i < ratios.size(); ++i) {
    const Figure& figure = ratios[i];
    const Spread& spread = figure.spread;
    out << spread.median << " " << spread.low << " " << spread.high << " " << ratios.size() - i
        << " \"" << figure.row.title << "\" ";
    if (figure.row.target)
      out << *figure.row.target;
    else
      out << "?";
    out << " " << class_of(figure) << "\n";
  }
  out << "END\n";
}

/// A file that goes away with this object.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text) {
    const UniqueFd fd(::mkstemp(name_.data()));
    if (!fd) throw Failure("Cannot make " + name_ + ": set TMPDIR to a writable folder.");
    std::ofstream(name_) << text;
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { ::unlink(name_.c_str()); }
  const std::string& name() const { return name_; }

 private:
  static std::filesystem::path folder() {
    std::error_code none;  // then it is the current one
    return std::filesystem::temp_directory_path(none);
  }

  std::string name_ = folder() / "diwarp-compare-XXXXXX";
};

}  // namespace

void check_plot(const std::string& file) {
  if (!is_installed(kGnuplot)) {
    throw Failure("--plot needs gnuplot: install it (Debian: gnuplot-nox), or leave --plot out.");
  }
  if (!std::ofstream(file)) {
    throw Failure("Cannot write " + file + ": name a file in a folder that exists.");
  }
}

std::string plot_script(const std::string& file, const std::string& title,
                        std::span<const Figure> figures) {
  const std::vector<Figure> ratios = ratios_of(figures);
  std::ostringstream out;
  write_data(out, ratios);
  out << "set terminal svg size 1000," << 120 + 24 * ratios.size() << " noenhanced\n"
      << "set output " << quoted(file) << "\n"
      << "set title " << quoted(title) << "\n"
      << "set xlabel 'medians and quartiles of the rounds; |: target'\n"
      << "set logscale x 2\nset grid x\nset datafile missing '?'\n"
      << "set yrange [0:" << ratios.size() + 1 << "]\nset key outside bottom center horizontal\n"
      << "set lmargin 44\n"
      << "plot $ratios using 1:4:ytic(5) with dots lc rgb '#ffffff' notitle, \\\n"
      << "  $ratios using ($7 == 1 ? $1 : NaN):4:2:3 with xerrorbars pt 7 ps 0.7 "
         "lc rgb '#1f6f3f' title 'reached', \\\n"
      << "  $ratios using ($7 == 2 ? $1 : NaN):4:2:3 with xerrorbars pt 5 ps 0.7 "
         "lc rgb '#b03020' title 'not reached', \\\n"
      << "  $ratios using ($7 == 0 ? $1 : NaN):4:2:3 with xerrorbars pt 6 ps 0.7 "
         "lc rgb '#505050' title 'no target', \\\n"
      << "  $ratios using 6:4:(0):(0.35) with vectors nohead lw 2 lc rgb '#303030' notitle, \\\n"
      << "  $ratios using 6:4:(0):(-0.35) with vectors nohead lw 2 lc rgb '#303030' notitle\n";
  return out.str();
}

void write_plot(const std::string& file, const std::string& title,
                std::span<const Figure> figures) {
  if (ratios_of(figures).empty()) throw Failure("There is no ratio to plot.");
  const TemporaryFile script(plot_script(file, title, figures));
  Captured gnuplot(-1, {kGnuplot, script.name()});
  const bool ended = gnuplot.finish(std::chrono::steady_clock::now() + std::chrono::seconds(20));
  if (!ended || gnuplot.status() != 0) {
    throw Failure("gnuplot could not plot: " + gnuplot.output().substr(0, 200));
  }
}

}  // namespace diwarp::tools
