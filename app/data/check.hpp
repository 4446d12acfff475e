#pragma once

#include <filesystem>
#include <string>

#include "app/data/idx.hpp"
#include "app/data/registry.hpp"

namespace hone {

// Throws InputError for an array that is not one of images (items, rows, cols).
void expect_images(const std::vector<int>& dimensions, const ByteSource& source);

// Grey levels byte/255 from an array of images; throws InputError for other arrays.
DataSet images_of(IdxArray array, const ByteSource& source);

// Reads a file of a known data set: images as bytes, .amat as bits. Throws InputError if the format is broken, or if
// the number or size of the items is wrong for this set.
DataSet read_known_file(const DataSetInfo& info, const DataFile& file, const std::filesystem::path& path);

// SHA-256 of a file's content, without its compression.
std::string content_sha256(const std::filesystem::path& path);

// Throws InputError naming the file if its structure or its checksum (if known) is wrong.
void check_file(const DataSetInfo& info, const DataFile& file, const std::filesystem::path& path);

}  // namespace hone
