// The verdict as sentences and figures without layout, for the terminal and for reports; as text: the
// first screen of `tensor`, and a line for each tensor; and as JSON.
#pragma once

#include "fpinspect/output/json.hpp"
#include "fpinspect/output/output.hpp"
#include "fpinspect/verdict/verdict.hpp"

namespace fpinspect {

// --- Sentences and figures -----------------------------------------------------------------------

/// "Cheapest choice that keeps 30 dB and loses fewer than 1 % of the non-zero values in every
/// tensor (--need). Figures: the worst tensor's."
std::string need_sentence(const need& wanted);

/// "31.5 dB" or "exact".
inline std::string db_text(const std::optional<double>& db) {
  return db ? cat(fixed(*db, 1), " dB") : "exact";
}

/// The choice for a role. Figures are those of the worst tensor.
struct role_summary {
  std::string choice;   ///< "fp8 e4m3, one scale", or why there is none
  std::string db;       ///< "31.5 dB"; empty, as the next two, if the choice has no figures
  std::string lost;     ///< "0.28 %"
  std::string bits;     ///< "8.25"
  std::string stored;   ///< "as stored" if the choice has no figures, else empty
  std::string reason;   ///< "not bf16: ...": why the next cheaper choice fails; may be empty
  std::string rule;     ///< "as [out, rest]: ...", "not counted: ...": assumptions; may be empty
  std::string besides;  ///< "besides: ...": tensors that it does not concern; may be empty
};
role_summary summary_of(const verdict& v, const role_verdict& r);

/// Bytes of the elements of all tensors: as stored, and with the choices of their roles. The scales
/// of tiles count, one scale for a tensor does not.
struct size_change {
  std::uint64_t before = 0;
  std::uint64_t after = 0;
};
size_change size_of(const verdict& v);

/// The number of fraction bits with which rounding to nearest keeps an SQNR of `db`, if the
/// significands are spread evenly.
int fraction_bits_for(double db);

/// The choice that the need refuses to a role because of its SQNR.
struct refusal {
  role of = role::other;
  choice what = choice::fp32;
  bool lacks_bits = false;  ///< its format has fewer fraction bits than the need takes
  std::optional<int> admitted_db =
      {};  ///< the need that it meets in whole dB; nothing: it also loses
           ///< too much
};
/// That of the first role that has one. Nothing if none has, or if nothing can be said of it.
std::optional<refusal> refusal_of(const verdict& v);

/// "30 dB takes 3 fraction bits, e5m2 has 2; --need 25dB admits it for gradients"
std::string refusal_text(const refusal& r, const need& wanted);

/// "414 kB as stored, 172 kB with these choices"
std::string size_change_text(const size_change& size);

/// What is lost at one loss scale.
struct scale_summary {
  std::string scale = {};  ///< "2^24" or "none"
  std::string lost = {};   ///< "0.02 %": the share of the tensor that loses the largest share
  std::string note = {};   ///< " in fc1, 0.01 % of all, 4 values overflow in head"; may be empty
};

/// The loss scale for all gradients.
struct loss_scale_summary {
  std::string head = {};  ///< "2^24", "none needed", or "none" if all scales overflow
  std::string note = {};  ///< "bf16 gradients need none"; may be empty
  std::vector<scale_summary> scales = {};
  std::string closing = {};  ///< "Every scale from 2^6 to 2^26 meets the need."; may be empty
};
loss_scale_summary summary_of(const loss_scale_verdict& l,
                              std::span<const tensor_evidence> tensors);

/// What one tensor loses.
struct tensor_summary {
  std::string fp16 = {};  ///< share lost in fp16 without a loss scale
  std::string db = {};    ///< SQNR of the role's choice, "as stored" or "not judged"
  std::string lost = {};  ///< share lost in it
};
tensor_summary summary_of(const verdict& v, const tensor_evidence& tensor);

/// A finding as a sentence without the tensor's name.
std::string finding_text(const finding& f, const verdict& v);

// --- Text and JSON -------------------------------------------------------------------------------

/// The choice for each role, the loss scale, and the tensors that need attention. With the heading
/// and the last line it has 24 lines, if three tensors that need attention find room on them.
std::string verdict_text(const verdict& v, const terminal& term);

/// A line for each tensor in the order of the verdict, below a heading.
std::string tensor_table(const verdict& v, const terminal& term);

/// The same for programs: no heading, columns separated by tabs, all digits. The columns are name,
/// role, elements, share lost in fp16, choice, SQNR in dB, share lost in it; - is no figure.
std::string plain_table(const verdict& v);

/// The object `verdict`.
json_object verdict_json(const verdict& v);

}  // namespace fpinspect
