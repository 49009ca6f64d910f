// Whole reads and writes at offsets, with sentences.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace zero::runtime {

// What is transferred directly, past the page cache, begins at multiples of this in memory and on disk and is a multiple of it long.
inline constexpr uint64_t kBlockBytes = 4096;

// A file descriptor that closes itself.
class File {
public:
  // Create and Update are for files that this program makes for itself (names in .partial, pieces of a checkpoint): what somebody has put
  // in their place, a symbolic link or another name of a file, is not followed. Create empties the file, and is refused while another run
  // holds it so.
  enum class Mode { Read, Update, Create };
  File(const std::string &path, Mode mode);
  File(int descriptor, std::string path) : path_(std::move(path)), fd(descriptor) {} // takes over what was opened in another way
  ~File();
  File(const File &) = delete;
  File &operator=(const File &) = delete;

  const std::string &path() const { return path_; }
  uint64_t size() const;
  void read(uint64_t offset, void *data, uint64_t bytes) const;        // throws if the file ends before
  void write(uint64_t offset, const void *data, uint64_t bytes) const; // throws if the disk is full
  void reserve(uint64_t bytes) const;                                  // the size it will have
  // From now on past the page cache, or through it again; returns whether it is past it, which not every file system can.
  bool setDirect(bool wanted) const;
  // The same as write; false, and nothing written, where the file system refuses such a transfer. Past the page cache these are whole
  // blocks, at a multiple of one in memory and in the file.
  bool tryWrite(uint64_t offset, const void *data, uint64_t bytes) const;
  void sync() const;
  void forget() const; // what is cached of it: others may have written to it since

private:
  std::string path_;
  int fd = -1;
};

// All of a regular file.
std::string readText(const std::string &path);

// What is under this name, with links followed. Throws a sentence if that cannot be known: what cannot be looked at is not taken for what
// is not there.
std::filesystem::file_type kindOf(const std::filesystem::path &path);
bool isThere(const std::filesystem::path &path);

// Makes a rename or a new entry in this directory durable.
void syncDirectory(const std::string &directory);
void renameOver(const std::string &from, const std::string &to);
std::string parentOf(const std::string &path); // "." for a bare name

// Makes a folder and those above it that are missing, durably; returns those made, the deepest first. Throws a sentence.
std::vector<std::string> makeFolders(const std::string &path);

} // namespace zero::runtime
