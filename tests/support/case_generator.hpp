// A RapidCheck generator from two plain functions: one that draws a case, one that lists simpler
// ones.
#pragma once

#include <rapidcheck.h>

#include <functional>
#include <utility>
#include <vector>

#include "support/generators.hpp"

namespace samebits::support {

/// Cases of draw(words), which shrink to simpler(case), simplest first, again and again. Every
/// chain of simpler cases must end.
template <class Case>
rc::Gen<Case> case_generator(std::function<Case(const word_source&)> draw,
                             std::function<std::vector<Case>(const Case&)> simpler) {
  return [draw = std::move(draw), simpler = std::move(simpler)](const rc::Random& random, int) {
    rc::Random state = random;
    return rc::shrinkable::shrinkRecur(
        draw([&state] { return state.next(); }),
        [simpler](const Case& from) { return rc::seq::fromContainer(simpler(from)); });
  };
}

}  // namespace samebits::support
