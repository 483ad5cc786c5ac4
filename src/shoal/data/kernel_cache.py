"""The compiled code of kernels on disk, as Numba keeps it; importing this imports Numba.

What Numba marks with a stamp of one source file has here the stamp of `numba_kernels`.
"""

import gc
from collections.abc import Callable
from typing import Any, ClassVar

import llvmlite.binding as llvm
import numba
from numba import njit
from numba.core import ir, typed_passes, types, untyped_passes
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import AnalysisPass, register_pass
from numba.core.datamodel.manager import DataModelManager
from numba.core.datamodel.models import TupleModel, UniTupleModel
from numba.core.datamodel.registry import default_manager
from numba.core.runtime.nrt import rtsys
from numba.cpython import hashing  # noqa: F401  gives compiled code its functions

from shoal.data import progress

LOADS_ALONE = ((0, 61), (0, 68))
"""The first and the last version of Numba tried whose compiled code needs no more of it than its
runtime and the functions of hashing.
"""


def dispatcher_of(
    function: Callable[..., Any], stamp: str | None, is_part: bool, options: dict[str, bool]
) -> Any:
    """What compiles the function when it is called, and keeps its code on disk; of a part, for the
    kernels that call it.
    """
    options = {"nogil": True, "no_cfunc_wrapper": True, **options}
    if is_part:
        return njit(no_cpython_wrapper=True, pipeline_class=_PartCompiler, **options)(function)
    dispatcher = njit(pipeline_class=_KernelCompiler, **options)(function)
    dispatcher._cache = _FollowingCache(function, stamp)
    return dispatcher


class _Code(JITCodeLibrary):  # type: ignore[misc]
    """Code that is optimised with all that it calls, not by itself before."""

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        """Once, where Numba does it twice to find counts of references, which are not made here;
        and without unrolling loops: that takes a sixth of compiling, and kernels gain nothing.
        """
        tuning = llvm.create_pipeline_tuning_options(3)
        tuning.slp_vectorization = tuning.loop_unrolling = False
        passes = llvm.create_pass_builder(self._codegen._tm, tuning)
        passes.getModulePassManager().run(self._final_module, passes)


class _Part(_Code):
    """Code that the kernels which call it take up as it is, to optimise it with their own."""

    def _optimize_final_module(self) -> None:
        """Left to those kernels."""

    def _finalize_final_module(self) -> None:
        self._finalized = True

    @property
    def codegen(self) -> Any:
        return self

    def set_env(self, *_: Any) -> None:
        """What needs an environment, as printing does, raises."""


IDLE = {
    untyped_passes.WithLifting,
    untyped_passes.RewriteSemanticConstants,
    untyped_passes.DeadBranchPrune,
    untyped_passes.RewriteDynamicRaises,
    untyped_passes.MakeFunctionToJitFunction,
    untyped_passes.InlineInlinables,
    untyped_passes.FindLiterallyCalls,
    untyped_passes.LiteralUnroll,
    untyped_passes.LiteralPropagationSubPipelinePass,
    typed_passes.InlineOverloads,
    typed_passes.NopythonRewrites,
    typed_passes.DumpParforDiagnostics,
}
"""Numba's passes that change nothing in loops over numbers and arrays, but take their time."""

BORROWING = ("getattr", "static_getitem", "build_tuple", "cast", "phi", "exhaust_iter")
"""Operations whose outcome holds arrays only of what it is made from."""


@register_pass(mutates_CFG=False, analysis_only=True)
class _Borrowing(AnalysisPass):  # type: ignore[misc]
    """No references are counted in a function that neither makes nor returns an array: its caller
    holds all of them, and they are most of what there is to compile.
    """

    _name = "borrowing"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        def is_array(kind: Any) -> bool:
            return bool(state.targetctx.data_model_manager[kind].contains_nrt_meminfo())

        def makes_array(made: Any) -> bool:
            value = made.value
            if not isinstance(value, ir.Expr) or not is_array(state.typemap[made.target.name]):
                return False
            if value.op == "call":
                return not isinstance(state.typemap[value.func.name], types.NamedTupleClass)
            if value.op == "getitem":
                return isinstance(state.typemap[value.index.name], types.Array)
            return value.op not in BORROWING

        statements = (
            made for block in state.func_ir.blocks.values() for made in block.find_insts(ir.Assign)
        )
        if not is_array(state.return_type) and not any(map(makes_array, statements)):
            state.targetctx = state.targetctx.subtarget(enable_nrt=False)
        return False


class _Whole:
    """Values that calls hand on as they are. Numba takes a tuple of arrays to pieces: then what
    packs and unpacks them around each call is most of what there is to compile.
    """

    def get_argument_type(self: Any) -> Any:
        return self.get_value_type()

    def as_argument(self, _: Any, value: Any) -> Any:
        return value

    from_argument = as_argument


MODELS = DataModelManager().chain(default_manager)
MODELS.register(types.NamedTuple, type("_Tuple", (_Whole, TupleModel), {}))
MODELS.register(types.NamedUniTuple, type("_UniTuple", (_Whole, UniTupleModel), {}))


class _Typing:
    """Numba's typing context, which looks an operation on given types up once, not at every use."""

    _known: ClassVar[dict[Any, Any]] = {}

    def __init__(self, context: Any) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def resolve_function_type(self, function: Any, arguments: Any, named: Any) -> Any:
        is_ours = isinstance(function, types.Type) and not isinstance(function, types.Function)
        if is_ours or named:
            return self._context.resolve_function_type(function, arguments, named)
        key = function, arguments
        if key not in self._known:
            self._known[key] = self._context.resolve_function_type(*key, named)
        return self._known[key]


class _KernelCompiler(CompilerBase):  # type: ignore[misc]
    code: ClassVar[Any] = _Code

    def __init__(self, typing: Any, target: Any, _: Any, *others: Any) -> None:
        library = self.code(target.codegen(), "kernel")
        library.enable_object_caching()
        super().__init__(_Typing(typing), target, library, *others)
        self.state.targetctx = self.state.targetctx.subtarget(data_model_manager=MODELS)

    def _compile_core(self) -> Any:
        """Collects no garbage meanwhile: the compiler makes many objects and keeps them."""
        if progress.in_python:
            progress.say_compiling()
        collects = gc.isenabled()
        gc.disable()
        try:
            return super()._compile_core()
        finally:
            if collects:
                gc.enable()

    def define_pipelines(self) -> list[Any]:
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [each for each in passes.passes if each[0] not in IDLE]
        passes.add_pass_after(_Borrowing, typed_passes.IRLegalization)
        passes.finalize()
        passes._ENFORCING = False  # checks of Numba's own passes
        return [passes]


class _PartCompiler(_KernelCompiler):
    code = _Part


class _Index(IndexDataCacheFile):
    """The index of a function's compiled code; empty where it can't be read.

    Numba unpickles an index before it compares the stamp, and the signatures in it name classes of
    kernel files: after an upgrade one of these may be gone.
    """

    def _load_index(self) -> Any:
        try:
            return super()._load_index()
        except Exception:
            return {}


class _FollowingCache(FunctionCache):
    """Numba's cache of a function's compiled code, with a stamp that follows imports.

    stamp: None for Numba's own.
    """

    def __init__(self, function: Callable[..., Any], stamp: str | None) -> None:
        super().__init__(function)
        if stamp is not None:
            self._cache_file = _Index(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Compiled code from disk, as Numba loads it, but without what only its compiler needs.

        Numba first loads everything that it can compile, parts of SciPy included where that is
        installed, which takes a short run longer than its kernels do. The compiler loads it itself.
        """
        if not LOADS_ALONE[0] <= numba.version_info.short <= LOADS_ALONE[1]:
            return super().load_overload(sig, target_context)
        rtsys.initialize(target_context)  # compiled code allocates by it
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def has_code(self) -> bool:
        """Whether compiled code of this function is on disk, and not out of date."""
        return bool(self._cache_file._load_index())
