#include <fmt/format.h>
#include <jpeglib.h>  // after <cstdio>, whose types it uses

#include <csetjmp>
#include <cstdio>

#include "app/data/picture.hpp"
#include "hone/base/error.hpp"

namespace hone {
namespace {

constexpr int most = 8192;  // rows and columns

// libjpeg reports errors by a function that must not return.
struct Failure {
  jpeg_error_mgr manager;  // first, so that its address is that of the whole
  std::jmp_buf back;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void leave(j_common_ptr info) {
  auto* failure = reinterpret_cast<Failure*>(info->err);
  info->err->format_message(info, failure->message);
  std::longjmp(failure->back, 1);
}

// Warnings mean damaged data, which libjpeg would fill with grey.
void leave_on_warning(j_common_ptr info, int level) {
  if (level < 0) leave(info);
}

struct Header {
  int rows = 0, cols = 0, components = 0;
};

// Between setjmp and the end of these two functions there must be nothing with a destructor.
bool read_header(jpeg_decompress_struct& jpeg, Failure& failure, std::span<const std::uint8_t> bytes, Header& header) {
  if (setjmp(failure.back)) return false;
  jpeg_mem_src(&jpeg, bytes.data(), bytes.size());
  jpeg_read_header(&jpeg, TRUE);
  header = {static_cast<int>(jpeg.image_height), static_cast<int>(jpeg.image_width), jpeg.num_components};
  return true;
}

bool read_levels(jpeg_decompress_struct& jpeg, Failure& failure, Picture& picture) {
  if (setjmp(failure.back)) return false;
  jpeg.out_color_space = picture.channels == 3 ? JCS_RGB : JCS_GRAYSCALE;
  jpeg_start_decompress(&jpeg);
  const std::size_t width = static_cast<std::size_t>(picture.cols) * static_cast<std::size_t>(picture.channels);
  while (jpeg.output_scanline < jpeg.output_height) {
    JSAMPROW row = picture.levels.data() + jpeg.output_scanline * width;
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_decompress(&jpeg);
  return true;
}

}  // namespace

Picture read_jpeg(std::span<const std::uint8_t> bytes, const std::string& name) {
  Failure failure{};
  jpeg_decompress_struct jpeg{};
  jpeg.err = jpeg_std_error(&failure.manager);
  failure.manager.error_exit = leave;
  failure.manager.emit_message = leave_on_warning;
  jpeg_create_decompress(&jpeg);
  const struct Cleaner {
    jpeg_decompress_struct& jpeg;
    ~Cleaner() { jpeg_destroy_decompress(&jpeg); }
  } cleaner{jpeg};
  const auto refuse = [&](const std::string& what) { throw InputError(fmt::format("{}: {}", name, what)); };
  Header header;
  if (!read_header(jpeg, failure, bytes, header)) refuse(fmt::format("a damaged JPEG image: {}", failure.message));
  if (header.components != 1 && header.components != 3)
    refuse(fmt::format("expected a grey or RGB image, found {} components per pixel; convert it first",
                       header.components));
  if (header.rows > most || header.cols > most) refuse(fmt::format("expected at most {0} × {0} pixels", most));
  Picture picture{.rows = header.rows, .cols = header.cols, .channels = header.components, .levels = {}};
  picture.levels.resize(static_cast<std::size_t>(header.rows) * static_cast<std::size_t>(header.cols) *
                        static_cast<std::size_t>(header.components));
  if (!read_levels(jpeg, failure, picture)) refuse(fmt::format("a damaged JPEG image: {}", failure.message));
  return picture;
}

}  // namespace hone
