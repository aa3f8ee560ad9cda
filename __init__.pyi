from vcpo_bench import methods as methods
from vcpo_bench.analysis import Monitor as Monitor
from vcpo_bench.api.diagnose_log import diagnose as diagnose
from vcpo_bench.api.draw_figure import figure as figure
from vcpo_bench.api.run_grid import run as run
from vcpo_bench.api.tables import Tables as Tables
from vcpo_bench.api.tables import load as load

__version__: str
