// The options of `tensor` and `report` that the verdict depends on.
#pragma once

#include <vector>

#include "fpinspect/cli/option_list.hpp"
#include "fpinspect/verdict/gate/condition.hpp"
#include "fpinspect/verdict/roles.hpp"

namespace fpinspect {

inline void add_need(option_list& add, need& wanted) {
  add.list("--need", wanted, need_argument,
           "What a choice must keep: 30dB, 'underflow<1%' (both are the default)");
}

inline void add_roles(option_list& add, std::vector<role_rule>& rules) {
  add.repeated("--role", rules, role_rules,
               "PATTERN=ROLE: weights, activations, gradients, adam_m, adam_v or other");
}

}  // namespace fpinspect
