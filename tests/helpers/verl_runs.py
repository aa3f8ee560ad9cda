"""Runs of verl's own trainer, worker and FSDP engine on a CPU: only sampling and Ray are left out."""

import os
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import verl_cpu  # noqa: F401
from hydra import compose, initialize_config_module
from tensordict import TensorDict
from tokenizers import Tokenizer, models
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from verl.trainer.config import CheckpointConfig
from verl.trainer.ppo.v1 import get_trainer_cls
from verl.utils import tensordict_utils as tu
from verl.utils.tensordict_utils import list_of_dict_to_tensordict
from verl.workers.config import ActorConfig, FSDPEngineConfig, FSDPOptimizerConfig, HFModelConfig
from verl.workers.engine_workers import TrainingWorker, TrainingWorkerConfig
from verl.workers.utils.losses import ppo_loss
from verl_store import Store, queue_row

from vcpo_bench.adapters.verl.worker import training_worker_class

WORDS = 12
LENGTH = 6
PROMPTS = 4
RESPONSES = 4
FP32 = {"param_dtype": "fp32", "reduce_dtype": "fp32", "buffer_dtype": "fp32"}


def start_ranks() -> None:
    """A process group, also for one process."""
    torch.set_num_threads(1)
    if dist.is_initialized():
        return
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
        return
    os.environ.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT="1")
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)


def save_model(folder: Path, seed: int = 0) -> Path:
    words = {f"w{number}": number for number in range(WORDS)}
    PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel(words, unk_token="w0")), pad_token="w0", eos_token="w1"
    ).save_pretrained(folder)
    torch.manual_seed(seed)
    settings = {
        "vocab_size": WORDS,
        "hidden_size": 16,
        "intermediate_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "max_position_embeddings": 256,
        "initializer_range": 0.2,
        "pad_token_id": 0,
        "eos_token_id": 1,
    }
    LlamaForCausalLM(LlamaConfig(**settings)).save_pretrained(folder)
    return folder


def config(folder: Path, method: str | None, mode: str = "vcpo_bench", *overrides: str) -> Any:
    """The whole configuration of verl, with its defaults."""
    chosen = [
        "algorithm.adv_estimator=grpo", f"trainer.v1.trainer_mode={mode}", f"trainer.default_local_dir={folder}/run",
        "trainer.logger=[]", "trainer.val_before_train=False", "trainer.test_freq=-1", "trainer.save_freq=-1",
        "trainer.n_gpus_per_node=1", f"data.train_batch_size={PROMPTS}", f"data.max_response_length={LENGTH}",
        f"actor_rollout_ref.rollout.n={RESPONSES}", f"actor_rollout_ref.actor.ppo_mini_batch_size={PROMPTS}",
        "actor_rollout_ref.rollout.calculate_log_probs=True", *overrides,
    ]  # fmt: skip
    if method is not None:
        chosen.append(f'actor_rollout_ref.actor.policy_loss.loss_mode="vcpo_bench:{method}"')
    with initialize_config_module("verl.trainer.config", version_base=None):
        return compose("ppo_trainer", overrides=chosen)


def worker(folder: Path, micro_rows: int, ours: bool = True, rate: float = 1e-2, packed: bool = False) -> Any:
    """The training worker of the actor on this rank; `packed` without padding and with checkpointed activations."""
    model = HFModelConfig(
        path=str(folder),
        use_remove_padding=packed,
        enable_gradient_checkpointing=packed,
        override_config={"attn_implementation": "eager"},
    )
    engine = FSDPEngineConfig(
        strategy="fsdp2",
        use_torch_compile=False,
        mixed_precision=FP32,
        use_dynamic_bsz=False,
        micro_batch_size_per_gpu=micro_rows,
        infer_micro_batch_size_per_gpu=4,
    )
    kind = training_worker_class() if ours else TrainingWorker
    made = kind(
        TrainingWorkerConfig(
            model_type="language_model",
            model_config=model,
            engine_config=engine,
            optimizer_config=FSDPOptimizerConfig(lr=rate, total_training_steps=50, lr_warmup_steps=4, clip_grad=1e9),
            checkpoint_config=CheckpointConfig(),
        )
    )
    made.reset()
    actor = ActorConfig(
        strategy="fsdp2", rollout_n=RESPONSES, ppo_mini_batch_size=PROMPTS, ppo_micro_batch_size_per_gpu=micro_rows
    )
    made.set_loss_fn(lambda **given: ppo_loss(config=actor, **given))
    return made


class Workers:
    """verl's worker group in this process: each rank works on its part, and all know the results."""

    def __init__(self, made: Any, store: Store) -> None:
        self.worker, self.store = made, store
        self._dispatch_info = {"actor": list(range(dist.get_world_size()))}
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()

    def _own(self, batch: Any) -> TensorDict:
        count = len(batch) // self.ranks
        assert count * self.ranks == len(batch)
        keys = batch.keys[self.rank * count : (self.rank + 1) * count]
        data = self.store.kv_batch_get(keys, batch.partition_id)
        for name, value in batch.extra_info.items():
            tu.assign_non_tensor_data(data, name, value)
        return data

    def compute_log_prob(self, batch: Any) -> Any:
        output = self.worker.infer_batch(self._own(batch))
        columns = {name: output[name].unbind() for name in list(output.keys()) if torch.is_tensor(output[name])}
        own = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        everyone: list[Any] = [None] * self.ranks
        dist.all_gather_object(everyone, own)
        rows = [row for part in everyone for row in part]
        self.store.kv_batch_put(batch.keys, batch.partition_id, fields=list_of_dict_to_tensordict(rows))
        return batch

    def update_actor(self, batch: Any) -> Any:
        return self.worker.train_mini_batch(self._own(batch))

    def save_checkpoint(self, path: str, remote: Any, step: int, max_ckpt_to_keep: Any = None) -> None:
        self.worker.save_checkpoint(path, remote, step, max_ckpt_to_keep)

    def load_checkpoint(self, local_path: str, del_local_after_load: bool = False) -> None:
        self.worker.load_checkpoint(local_path, None, del_local_after_load)


class Sampler:
    """Writes trajectories as verl's agent loop does, of random tokens and log-probabilities near the policy's.

    Rows have unequal lengths; of some no token carries loss, among them all of one prompt per batch. One session per
    batch fails, so that verl fills the batch up.

    Args:
        run: The trainer.
        noise: Standard deviation of the log-probabilities that the engine reports, nats.
        spread: Versions that the trajectories of a batch come from.
    """

    def __init__(self, run: Any, noise: float, spread: int) -> None:
        self.run, self.noise, self.spread = run, noise, spread

    def generate_sequences(self, batch: Any) -> None:
        run, self.model = self.run, whole_model(self.run.actor_rollout_wg.worker)
        for number, uid in enumerate(batch["uid"]):
            place = number % PROMPTS
            draw = random.Random(str(uid))
            fields, tags = [], []
            sessions = range(RESPONSES - (place == 3))
            for session in sessions:
                empty = place == 1 or (place == 2 and session == 0)
                field, tag = self._row(draw, str(uid), empty)
                version = max(run.version - draw.randrange(self.spread), 0)
                fields.append(field)
                tags.append({**tag, "min_global_steps": version, "max_global_steps": version})
            keys = [f"{uid}_{session}_0" for session in sessions]
            run.store.kv_batch_put(keys, "train", fields=list_of_dict_to_tensordict(fields), tags=tags)
            run.store.kv_batch_put([str(uid)], "train", tags=[{"status": "finished"}])

    def _row(self, draw: random.Random, uid: str, empty: bool) -> tuple[dict[str, Any], dict[str, Any]]:
        length, before = draw.randint(2, LENGTH), draw.randint(1, 3)
        prompt = torch.tensor([draw.randrange(2, WORDS) for _ in range(before)])
        response = torch.tensor([draw.randrange(2, WORDS) for _ in range(length)])
        mask = torch.tensor([int(not empty and (t != 1 or length < 4)) for t in range(length)])  # a tool's token
        reward = draw.choice([0.0, 1.0, 1.0, 0.25])
        with torch.no_grad():
            logs = self.model(torch.cat([prompt, response])[None]).logits[0].log_softmax(-1)[before - 1 : -1]
        noise = torch.tensor([draw.gauss(0.0, self.noise) for _ in range(length)])
        logp = (logs.gather(1, response[:, None])[:, 0] + noise).clamp(max=-1e-3)
        return queue_row(uid, prompt, response, mask, reward, logp)


class Prompts:
    """verl's data loader as far as the trainer asks: unique prompts without end."""

    def __init__(self) -> None:
        self.drawn = 0

    def state_dict(self) -> dict[str, int]:
        return {"drawn": self.drawn}

    def load_state_dict(self, saved: dict[str, int]) -> None:
        self.drawn = saved["drawn"]

    def __iter__(self) -> Any:
        while True:
            self.drawn += PROMPTS
            names = [f"prompt{number}" for number in range(self.drawn - PROMPTS, self.drawn)]
            yield {"raw_prompt": np.array(names, dtype=object)}


def trainer(settings: Any, made: Any, noise: float = 0.4, spread: int = 1) -> Any:
    """The trainer of the configured mode with everything but sampling and Ray."""
    store = Store()
    store.install()
    run = get_trainer_cls(settings.trainer.v1.trainer_mode)(settings)
    run.store, run.version = store, 0
    run.actor_rollout_wg = Workers(made, store)
    run.tokenizer = SimpleNamespace(eos_token_id=1)
    run.reward_loop_manager = SimpleNamespace(reward_loop_worker_handles=[])
    run.resource_pool_manager = SimpleNamespace(get_n_gpus=lambda: 1)
    run.distillation_config, run.global_steps, run.curr_step_profile = None, 0, False
    run.train_dataloader, run.train_dataloader_it = Prompts(), None
    run.replay_buffer.poll_interval = 0.01
    run.checkpoint_manager = SimpleNamespace(
        sleep_replicas=lambda: None, update_weights=lambda step: setattr(run, "version", step)
    )
    run.agent_loop_manager = Sampler(run, noise, spread)
    run.timing_raw = {}
    numbered(run)
    return run


def numbered(run: Any) -> None:
    """Prompts get the number of their example as their id, so that two runs sample the same."""
    fetch = run._fetch_one_gen_batch

    def fetch_numbered() -> Any:
        batch = fetch()
        start = run.train_dataloader.drawn - PROMPTS
        tu.assign_non_tensor_stack(batch, "uid", [f"p{start + place}" for place in range(PROMPTS)])
        return batch

    run._fetch_one_gen_batch = fetch_numbered


def whole_model(made: Any) -> LlamaForCausalLM:
    """A plain copy of the current weights."""
    model = LlamaForCausalLM(made.model_config.hf_config)
    model.load_state_dict({name: value.full_tensor() for name, value in made.engine.module.state_dict().items()})
    return model.eval()


def steps(run: Any, count: int) -> list[dict[str, Any]]:
    """Steps as `fit` makes them; what each logs."""
    logs = []
    for _ in range(count):
        run.global_steps += 1
        metrics: dict[str, Any] = {}
        batch = run.step(metrics, run.timing_raw)
        if run.config.trainer.save_freq == run.global_steps:
            run._save_checkpoint()
        run.on_step_end()
        run._compute_metrics(batch, metrics, {"step": 1.0, "gen": 1.0}, global_steps=run.global_steps, epoch=0)
        run.store.kv_clear(batch.keys, "train")
        logs.append(metrics)
    return logs
