// A folder for one test.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

class TemporaryFolder {
  public:
    TemporaryFolder() {
        std::string name = std::filesystem::temp_directory_path() / "assay-test-XXXXXX";
        path_ = mkdtemp(name.data());
    }
    ~TemporaryFolder() { std::filesystem::remove_all(path_); }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;

    std::string file(const std::string& name) const { return path_ / name; }
    std::string write(const std::string& name, const std::string& content) const {
        std::ofstream(path_ / name) << content;
        return file(name);
    }
    // "" if there is none.
    std::string read(const std::string& name) const {
        std::ostringstream content;
        content << std::ifstream(path_ / name).rdbuf();
        return content.str();
    }

  private:
    std::filesystem::path path_;
};
