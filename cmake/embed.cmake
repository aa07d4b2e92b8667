# sb_embed(OUTPUT "NAME=path in the checkout" …): embeds files as bytes of the program, for page/assets.h. The assembler includes them
# directly, so nothing converts them to text, and a changed file triggers a new build.
function(sb_embed output)
  set(data "")
  set(rows "")
  set(declared "")
  set(files)
  set(number 0)
  foreach(entry ${ARGN})
    string(REGEX MATCH "^([^=]+)=(.+)$" matched "${entry}")
    set(name "${CMAKE_MATCH_1}")
    set(path "${PROJECT_SOURCE_DIR}/${CMAKE_MATCH_2}")
    if(NOT EXISTS ${path})
      message(FATAL_ERROR "embed: no such file, got ${path}")
    endif()
    list(APPEND files ${path})
    string(APPEND data "        \".global sb_embedded_${number}\\nsb_embedded_${number}:\\n.incbin \\\"${path}\\\"\\n\"\n"
                       "        \".global sb_embedded_${number}_end\\nsb_embedded_${number}_end:\\n.byte 0\\n\"\n")
    string(APPEND declared "extern const char sb_embedded_${number}[], sb_embedded_${number}_end[];\n")
    string(APPEND rows "      {\"${name}\", {sb_embedded_${number}, static_cast<size_t>(sb_embedded_${number}_end - sb_embedded_${number})}},\n")
    math(EXPR number "${number} + 1")
  endforeach()
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT
"// Made by cmake/embed.cmake.
#include \"page/assets.h\"

__asm__(\".section .rodata\\n\"
@data@        \".previous\\n\");
extern \"C\" {
@declared@}

namespace sb {

const std::vector<EmbeddedFile>& embedded_files() {
  static const std::vector<EmbeddedFile> files = {
@rows@  };
  return files;
}

}  // namespace sb
")
  set_source_files_properties(${output} PROPERTIES OBJECT_DEPENDS "${files}")
endfunction()
