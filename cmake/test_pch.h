// Headers that every unit test reads.
#pragma once
#include "runtime_pch.h"
#include <gtest/gtest.h>
#include <random>
