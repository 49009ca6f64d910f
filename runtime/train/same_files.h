// What ranks have before them: whether the files that each of them reads and the folders that all of them write are the same.
#pragma once
#include "runtime/train/settings.h"
#include "runtime/train/setup.h"

namespace zero::runtime {

// Plan, data and held-out data, each with its size and a checksum: of all of it up to 64 MiB; of a longer one of 64 MiB in 64 KiB
// pieces, its beginning and end among them. A file that cannot be read has a text that says so; who reads it says why.
Settings inputFiles(const TrainOptions &options);

// The same of what parameters come from: the files of the model, or of a checkpoint. Files that belong together share the 64 MiB.
Settings stateFiles(const TrainOptions &options, const Setup &setup);

// How a table of algorithms that was read is told from others.
std::string textOf(const MeasuredTable &measured);

// Collective: whether all ranks see what rank 0 writes into the folders of their results. Throws as collectively() does.
void requireSharedFolders(Communicator &communicator, const TrainOptions &options);

} // namespace zero::runtime
