"""Training on the export, as a user does it: TRL, a tiny Qwen3-type model with random weights.

Needs the extra `train` (`pip install -e '.[train]'`); without it these tests are skipped, and say
so.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from steptp_dagster.dataset import exports
from steptp_dagster.dataset.config import load as load_profile
from steptp_dagster.dataset.warehouse import connect, load
from tests.support.prepared import prepare
from tests.support.rows import all_rows

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("default"),  # other people's deprecations
]
WHY = "training needs the extra `train`: pip install -e '.[train]'"
STEPS = 50
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("training")
    load(prepare(folder / "stages", all_rows()), load_profile("tiny"), folder / "w.duckdb")
    with connect(folder / "w.duckdb") as reader:
        return exports.export_all(reader, folder / "export", formats=("trl",))[0]


def tokenizer(texts: list[str]) -> Any:
    """A byte-level tokenizer of 1,000 words, learned from the records; no network."""
    tokenizers = pytest.importorskip("tokenizers", reason=WHY)
    transformers = pytest.importorskip("transformers", reason=WHY)
    model = tokenizers.ByteLevelBPETokenizer()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    model.train_from_iterator(texts, vocab_size=1000, special_tokens=special, show_progress=False)
    made = transformers.PreTrainedTokenizerFast(
        tokenizer_object=model._tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    made.chat_template = TEMPLATE
    return made


def model(size: int) -> Any:
    """A Qwen3 of two small layers with random weights."""
    transformers = pytest.importorskip("transformers", reason=WHY)
    transformers.set_seed(0)
    config = transformers.Qwen3Config(
        vocab_size=size,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=1024,
    )
    return transformers.Qwen3ForCausalLM(config)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_trl_knows_the_forms(export: Path) -> None:
    data_utils = pytest.importorskip("trl.data_utils", reason=WHY)
    chat, pair = lines(export / "train.jsonl")[0], lines(export / "trl" / "train.jsonl")[0]
    words = tokenizer([message["content"] for message in chat["messages"]])
    assert data_utils.is_conversational({"messages": chat["messages"]})
    assert data_utils.is_conversational(pair)
    whole = data_utils.apply_chat_template({"messages": chat["messages"]}, words)
    cut = data_utils.apply_chat_template(pair, words)
    assert whole["text"] == cut["prompt"] + cut["completion"]
    assert cut["completion"].startswith("<think>")


@pytest.mark.parametrize("form", ["train.jsonl", "trl/train.jsonl"])
def test_the_loss_falls(export: Path, tmp_path: Path, form: str) -> None:
    trl = pytest.importorskip("trl", reason=WHY)
    datasets = pytest.importorskip("datasets", reason=WHY)
    texts = [m["content"] for row in lines(export / "train.jsonl") for m in row["messages"]]
    words = tokenizer(texts)
    data = datasets.load_dataset(
        "json", data_files=str(export / form), split="train", cache_dir=str(tmp_path / "cache")
    )
    trainer = trl.SFTTrainer(
        model=model(len(words)),
        processing_class=words,
        train_dataset=data,
        args=trl.SFTConfig(
            output_dir=str(tmp_path / "out"),
            max_steps=STEPS,
            per_device_train_batch_size=2,
            learning_rate=3e-3,
            max_length=1024,
            logging_steps=1,
            save_strategy="no",
            report_to=[],
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            dataloader_pin_memory=False,
            seed=0,
        ),
    )
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert len(losses) == STEPS

    assert sum(losses[-10:]) < 0.6 * sum(losses[:10])
