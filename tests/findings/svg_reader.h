// Reads the SVG files that figures are: strict about XML, so that a file that is not well-formed throws.
#pragma once
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "findings/svg.h"

namespace sb::test {

struct SvgElement {
  std::string name, text;  // the text directly inside it, entities resolved
  std::map<std::string, std::string> attributes;

  double number(const std::string& key) const { return std::stod(attributes.at(key)); }
  bool has_class(const std::string& one) const {
    const auto it = attributes.find("class");
    return it != attributes.end() && (" " + it->second + " ").find(" " + one + " ") != std::string::npos;
  }
  std::vector<std::pair<double, double>> points() const {
    std::vector<std::pair<double, double>> out;
    const std::string& all = attributes.at("points");
    for (size_t at = 0; at < all.size();) {
      size_t used = 0;
      const double x = std::stod(all.substr(at), &used);
      at += used + 1;
      const double y = std::stod(all.substr(at), &used);
      at += used + 1;
      out.emplace_back(x, y);
    }
    return out;
  }
};

class SvgReader {
 public:
  explicit SvgReader(std::string text) : text_(std::move(text)) {
    element();
    while (at_ < text_.size() && text_[at_] == '\n') ++at_;
    expect(at_ == text_.size(), "nothing behind the root");
  }

  const SvgElement& root() const { return all.front(); }
  std::vector<SvgElement> of(const std::string& name, const std::string& one_class = "") const {
    std::vector<SvgElement> out;
    for (const auto& each : all)
      if (each.name == name && (one_class.empty() || each.has_class(one_class))) out.push_back(each);
    return out;
  }
  // The texts that are exactly this.
  std::vector<SvgElement> texts(const std::string& text) const {
    std::vector<SvgElement> out;
    for (const auto& each : of("text"))
      if (each.text == text) out.push_back(each);
    return out;
  }

  std::vector<SvgElement> all;  // in the order of the file

 private:
  void expect(bool holds, const std::string& what) const {
    if (!holds) throw std::runtime_error("not well-formed at byte " + std::to_string(at_) + ": expected " + what);
  }
  char next() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void take(const std::string& what) {
    expect(text_.compare(at_, what.size(), what) == 0, what);
    at_ += what.size();
  }
  std::string name() {
    const size_t from = at_;
    while (std::isalnum(static_cast<unsigned char>(next())) || next() == '-' || next() == ':') ++at_;
    expect(at_ > from, "a name");
    return text_.substr(from, at_ - from);
  }
  char character() {
    expect(static_cast<unsigned char>(next()) >= ' ' || next() == '\n', "no control character");
    if (next() != '&') return text_[at_++];
    for (const auto& [entity, plain] :
         {std::pair("&amp;", '&'), std::pair("&lt;", '<'), std::pair("&gt;", '>'), std::pair("&quot;", '"')})
      if (text_.compare(at_, std::string(entity).size(), entity) == 0) {
        at_ += std::string(entity).size();
        return plain;
      }
    throw std::runtime_error("an entity that XML does not have");
  }

  void element() {
    take("<");
    const size_t number = all.size();
    all.emplace_back();
    all[number].name = name();
    while (next() == ' ') {
      ++at_;
      const std::string key = name();
      expect(!all[number].attributes.contains(key), "each attribute once");
      take("=\"");
      std::string value;
      while (next() != '"') {
        expect(next() != '<', "no < in an attribute");
        value += character();
      }
      take("\"");
      all[number].attributes[key] = value;
    }
    if (next() == '/') return take("/>");
    take(">");
    while (text_.compare(at_, 2, "</") != 0) {
      expect(at_ < text_.size(), "the end of " + all[number].name);
      if (next() == '<')
        element();
      else
        all[number].text += character();
    }
    take("</" + all[number].name + ">");
  }

  std::string text_;
  size_t at_ = 0;
};

struct Box {
  double left, right, top, bottom;
  std::string text;
};

// The places that texts take at most.
inline std::vector<Box> text_boxes(const SvgReader& svg) {
  std::vector<Box> out;
  for (const auto& text : svg.of("text")) {
    const double width = text_width(text.text, text.has_class("bold")), x = text.number("x"), y = text.number("y");
    const auto anchor = text.attributes.find("text-anchor");
    const double left = anchor == text.attributes.end() ? x : anchor->second == "end" ? x - width : x - width / 2;
    out.push_back({left, left + width, y - .75 * svg_font, y + .2 * svg_font, text.text});
  }
  return out;
}

// "" or what overlaps what, or leaves the figure.
inline std::string overlaps(const SvgReader& svg) {
  const auto boxes = text_boxes(svg);
  for (size_t i = 0; i < boxes.size(); ++i) {
    const Box& a = boxes[i];
    if (a.left < 0 || a.top < 0 || a.right > svg.root().number("width") || a.bottom > svg.root().number("height"))
      return a.text + " leaves the figure";
    for (size_t j = 0; j < i; ++j) {
      const Box& b = boxes[j];
      if (a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)
        return a.text + " overlaps " + b.text;
    }
  }
  return "";
}

}  // namespace sb::test
