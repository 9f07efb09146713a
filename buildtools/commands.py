"""The setuptools commands of setup.py: kernel images before the Python files, C files in parallel.

Both are built inside the source tree (ignored by git) and then copied into the installed package.
So the source tree can be imported as well. It must be, because `python -m smemkern` in a clone
finds the folder smemkern/ there before any installed package.
"""

from __future__ import annotations

import os
import shutil
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.errors import CompileError
from setuptools.modified import newer_group

from . import cpu, images, lab_page, mistakes, registry, rows_c, targets, toolkit, wasm

ROOT = Path(__file__).resolve().parent.parent
KERNELS = ROOT / "csrc" / "kernels"
PACKAGE = ROOT / "smemkern"
# The CUDA driver of `smemkern run`: emulator and core, and csrc/driver.
DRIVER = Path("driver", "libcuda.so.1")
STAMPS = ROOT / "build" / "images.json"


def _rows() -> list[registry.Row]:
    try:
        return registry.read(KERNELS)
    except registry.TableError as error:
        raise CompileError(str(error)) from None


def _is_stale(target: str, made_of: list[str]) -> bool:
    """Whether an object is older than the files that its compiler listed with -MMD."""
    listing = Path(target).with_suffix(".d")
    if not listing.exists():
        return True
    files = listing.read_text().replace("\\\n", " ").split()[1:]
    # NumPy's headers were in a build environment that may no longer exist.
    return newer_group([*made_of, *files], target, missing="ignore")


def _generated(name: str, text: str) -> Path:
    """A file in build/, written only if its text changes."""
    file = Path("build", name)
    if not file.exists() or file.read_text() != text:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return file


def _write_lab_page() -> None:
    """The page that `smemkern share -o` fills, where the compiler of its module is installed."""
    if find_spec("ziglang") is None or not lab_page.LAB.is_dir():
        return
    try:
        text = lab_page.page(lab_page.made_module(), with_gallery=False)
    except (lab_page.PageError, wasm.WasmError) as error:
        raise CompileError(str(error)) from None
    (PACKAGE / "_web" / "lab.html").write_text(text, encoding="utf-8")


class BuildPy(build_py):
    """Compiles the kernels and copies their sources into the package, as package data."""

    def run(self) -> None:
        if not self.editable_mode:
            # Files left there by an earlier build would be installed too.
            shutil.rmtree(Path(self.build_lib, "smemkern"), ignore_errors=True)
        try:
            kit = toolkit.find(targets.wants_machine_code())
            wanted = targets.read(kit.assembler)
            done = images.build(_rows(), KERNELS, PACKAGE / "images", STAMPS, wanted, kit)
            wrong = mistakes.build(KERNELS / "mistakes", STAMPS.parent / "mistakes", kit)
        except (toolkit.ToolkitError, targets.TargetError, images.ImageError) as error:
            raise CompileError(str(error)) from None
        print(f"smemkern: {done}", flush=True)
        shutil.rmtree(PACKAGE / "kernels", ignore_errors=True)
        shutil.copytree(KERNELS, PACKAGE / "kernels")
        for ptx in wrong:
            shutil.copy(ptx, PACKAGE / "kernels" / "mistakes")
        _write_lab_page()
        super().run()


class BuildExt(build_ext):
    """Writes the rows of the table as C and compiles only changed files, on all cores."""

    def finalize_options(self) -> None:
        super().finalize_options()
        # Objects are kept between builds, including editable installs. The folder is named by
        # SOABI, because free-threaded Python shares the cache tag but not the ABI.
        tag = sysconfig.get_config_var("SOABI")
        self.build_temp = os.path.join("build", f"temp-{self.plat_name}-{tag}")

    def run(self) -> None:
        super().run()
        if not self.inplace:
            self.copy_extensions_to_source()

    def build_extension(self, ext) -> None:
        import numpy

        if int(numpy.__version__.split(".")[0]) < 2:
            raise CompileError(f"NumPy 2 or newer is needed to build; this is {numpy.__version__}")
        try:
            variants = cpu.variants()
        except cpu.CpuError as error:
            raise CompileError(str(error)) from None
        header = _generated("cpu_variants.h", f"#define CPU_VARIANTS {variants}\n")
        ext.extra_compile_args += ["-include", str(header)]
        ext.sources.append(str(_generated("registry_rows.c", rows_c.c_source(_rows()))))
        ext.include_dirs.append(numpy.get_include())
        ext.define_macros.append(("SMK_VERSION", f'"{self.distribution.get_version()}"'))

        # setuptools checks only the sources, not the headers, before it skips a build.
        library = Path(self.get_ext_fullpath(ext.name))
        included = [file for suffix in ("h", "def") for file in Path("csrc").rglob(f"*.{suffix}")]
        headers = [str(header), *map(str, included)]
        if library.exists() and newer_group(headers, str(library)):
            library.unlink()

        compile_all = self.compiler.compile

        def compile_in_parallel(sources, output_dir=None, depends=None, **options):
            def compile_one(source: str) -> str:
                [target] = self.compiler.object_filenames([source], output_dir=output_dir)
                if self.force or _is_stale(target, [source, *(depends or ())]):
                    arguments = [*(options["extra_postargs"] or ()), *cpu.flags(source, variants)]
                    own = options | {"extra_postargs": arguments}
                    compile_all([source], output_dir=output_dir, **own)
                return target

            with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
                return list(pool.map(compile_one, sources))

        self.compiler.compile = compile_in_parallel
        super().build_extension(ext)
        self.build_driver(ext)

    def build_driver(self, ext) -> None:
        """Links the driver, from the extension's own objects of emulator and core."""
        shared = [file for file in ext.sources if file.startswith(("csrc/emu/", "csrc/core/"))]
        rows = [file for file in ext.sources if Path(file).name == "registry_rows.c"]
        own = sorted(map(str, Path("csrc/driver").glob("*.c")))
        objects = self.compiler.compile(
            [*own, *shared, *rows],
            output_dir=self.build_temp,
            include_dirs=ext.include_dirs,
            macros=ext.define_macros,
            depends=ext.depends,
            extra_postargs=ext.extra_compile_args,
        )
        output = Path(self.get_ext_fullpath(ext.name)).parent / DRIVER
        if newer_group(objects, str(output)):
            new = output.with_suffix(".new")  # programs may be using the old one
            self.compiler.link_shared_object(
                objects,
                str(new),
                libraries=ext.libraries,
                extra_postargs=[f"-Wl,-soname,{DRIVER.name}", "-Wl,-z,defs"],
            )
            new.replace(output)

    def copy_extensions_to_source(self) -> None:
        super().copy_extensions_to_source()
        (PACKAGE / DRIVER).parent.mkdir(exist_ok=True)
        new = PACKAGE / DRIVER.with_suffix(".new")
        shutil.copy(Path(self.build_lib, "smemkern", DRIVER), new)
        new.replace(PACKAGE / DRIVER)

    def get_outputs(self) -> list[str]:
        return [*super().get_outputs(), str(Path(self.build_lib, "smemkern", DRIVER))]
