// The folders of checkpoints: made and removed so that none is ever half of one under its name.
#pragma once
#include <filesystem>
#include <string>

namespace zero::runtime {

// Whether it is a checkpoint. Throws a sentence if that cannot be known.
bool hasIndex(const std::filesystem::path &checkpoint);

// Makes the folder anew. What is in its place is removed, not followed: a killed run's part, or a link that somebody has planted.
void makePartial(const std::string &partial);

// Takes the checkpoint's name away before its files, so that what a kill leaves is no checkpoint.
void removeCheckpoint(const std::string &checkpoint);

} // namespace zero::runtime
