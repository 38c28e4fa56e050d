"""The layer behind a token classifier: pieces laid on words, windows joined, PyTorch and ONNX Runtime.

What aligns and joins is tried with a tokenizer of our own, always; small models, built here from a configuration with
random weights, run where these libraries are installed.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdner import SkipChainLayer
from herdner.integrations.transformers import ConsistentClassifier, onnx_function, tags_from_config
from herdner.text.tokenize import Tokenizer

LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
TEXT = (
    "Ada Lovelace met Charles Babbage in London. Lovelace wrote about the engine; Babbage's plans stayed in London."
    " Nobody else in Paris, or in Rome, knew of Lovelace."
)
SPLIT = Tokenizer()


class Pieces:
    """A fast tokenizer: pieces of at most ``size`` characters of anything but spaces, in windows as Hugging Face's."""

    is_fast = True

    def __init__(self, size: int = 3, model_max_length: int = 512) -> None:
        self.size, self.model_max_length = size, model_max_length

    def places(self, text: str) -> list[tuple[int, int]]:
        found, start = [], 0
        while start < len(text):
            if text[start].isspace():
                start += 1
                continue
            end = start + 1
            while end < len(text) and end - start < self.size and not text[end].isspace():
                end += 1
            found.append((start, end))
            start = end
        return found

    def __call__(self, text, *, max_length, stride, return_tensors, **options):
        assert return_tensors == "np"
        assert all(options[name] for name in ("return_overflowing_tokens", "truncation", "return_offsets_mapping"))
        found, room = self.places(text), max_length - 2
        begins = [0]
        while begins[-1] + room < len(found):
            begins.append(begins[-1] + room - stride)
        rows = [found[begin : begin + room] for begin in begins]
        width = max(map(len, rows)) + 2
        offsets = np.zeros((len(rows), width, 2), np.int64)
        ids = np.zeros((len(rows), width), np.int64)
        for row, pieces in enumerate(rows):
            for k, (start, end) in enumerate(pieces, 1):
                offsets[row, k] = start, end
                ids[row, k] = hash_of(text[start:end])
        return {"input_ids": ids, "offset_mapping": offsets, "attention_mask": (ids > 0).astype(np.int64)}


def hash_of(piece: str) -> int:
    return 1 + sum((i + 1) * ord(c) for i, c in enumerate(piece)) % 999


WEIGHTS = np.random.default_rng(0).normal(size=(1000, len(LABELS)))


def look_up(inputs):
    """A model that sees nothing but the piece itself."""
    return WEIGHTS[inputs["input_ids"]]


@given(size=st.integers(1, 9), room=st.integers(3, 40), stride=st.integers(0, 20), text=st.text("ab. \n", max_size=60))
def test_every_word_has_the_scores_of_its_first_piece_whatever_the_windows(size, room, stride, text):
    tokenizer = Pieces(size, room + 2)
    model = ConsistentClassifier(tokenizer, look_up, LABELS, stride=min(stride, room - 1), batch_size=3, split=SPLIT)
    for source in (TEXT, text):
        document = SPLIT(source)
        if not document.n_tokens:
            continue
        places = tokenizer.places(source)
        scores = model.word_scores(document)
        for t, (start, end) in enumerate(zip(document.token_starts, document.token_ends, strict=True)):
            first = next((s, e) for s, e in places if s < end and e > start)
            assert scores[t].tolist() == WEIGHTS[hash_of(source[slice(*first)])].tolist()


def test_a_word_is_scored_where_it_stands_farthest_from_a_cut():
    text = " ".join("abcdefghijklmnopqrst")

    def place_in_window(inputs):
        scores = np.zeros((*inputs["input_ids"].shape, len(LABELS)))
        scores[..., 1] = np.arange(len(inputs["input_ids"][0]))
        return scores

    model = ConsistentClassifier(Pieces(1, 10), place_in_window, LABELS, stride=4, split=SPLIT)
    found = model.word_scores(SPLIT(text)).T[1].tolist()
    # Windows 0-7, 4-11, 8-15, 12-19 of eight pieces each; the first piece of a window is number 1.
    assert found == [1, 2, 3, 4, 5, 6, 3, 4, 5, 6, 3, 4, 5, 6, 3, 4, 5, 6, 7, 8]


def test_the_answer_is_the_layers():
    layer = SkipChainLayer(LABELS, link_strength=2.0)
    model = ConsistentClassifier(Pieces(), look_up, LABELS, layer=layer, split=SPLIT)
    document = SPLIT(TEXT)
    right = layer.apply(model.word_scores(document), document.tokens, document.sentence_offsets)
    found = model(TEXT)
    assert found.spans == right.spans
    assert [e.confidence for e in found.entities] == right.confidences.tolist()
    assert all(TEXT[e.start : e.end] == e.text for e in found.entities)
    assert len(right.links)
    assert [d.text for d in model.pipe([TEXT, "", " \n", "Ada."])] == [TEXT, "", " \n", "Ada."]


def test_mentions_of_one_name_have_one_id():
    classifier = ConsistentClassifier(Pieces(), lambda inputs: np.zeros((*inputs["input_ids"].shape, 5)), LABELS)
    classifier.word_scores = lambda document: np.array(
        [[0, *(9 * (word == "Ada"), 9 * (word in ("Lovelace", "Babbage"))), 0, 0] for word in document.tokens], float
    )
    document = classifier("Ada Lovelace met Charles Ada Babbage. Ada wrote.")
    assert {e.name_id for e in document.entities if "Lovelace" in e.text or e.text == "Ada"} == {0}
    assert {e.name_id for e in document.entities} == {0, 1}


def test_wrong_use_is_one_clear_line():
    slow = Pieces()
    slow.is_fast = False
    for make, message in (
        (lambda: ConsistentClassifier(slow, look_up, LABELS), "must be a fast tokenizer"),
        (
            lambda: ConsistentClassifier(Pieces(3, 20), look_up, LABELS, stride=18),
            "`stride` must be at least 0 and less than 18",
        ),
        (
            lambda: ConsistentClassifier(Pieces(), look_up, LABELS[:3], layer=SkipChainLayer(LABELS)),
            "the skip-chain layer has the",
        ),
        (lambda: ConsistentClassifier(Pieces(), look_up, LABELS[:3])(TEXT), "must return logits for 3 tags, got"),
    ):
        with pytest.raises(ValueError, match=message):
            make()


# --- small models -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bert():
    """Tokenizer and model, of twelve dimensions and random weights; nothing is downloaded."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from tokenizers import Tokenizer as Fast
    from tokenizers import models, normalizers, pre_tokenizers, processors

    letters = sorted(set(TEXT) - {" "})
    vocabulary = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        *letters,
        *(f"##{c}" for c in letters),
        "Lo",
        "##ve",
        "##lace",
        "in",
    ]
    fast = Fast(models.WordPiece({piece: i for i, piece in enumerate(vocabulary)}, unk_token="[UNK]"))
    fast.normalizer = normalizers.NFC()
    fast.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    fast.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=fast, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]",
        model_max_length=48,
    )  # fmt: skip
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary), hidden_size=12, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=256, id2label=dict(enumerate(LABELS)), label2id={k: i for i, k in enumerate(LABELS)},
        initializer_range=1.0,
    )  # fmt: skip
    return tokenizer, transformers.BertForTokenClassification(config).eval()


def test_a_pipeline_of_transformers(bert):
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    tokenizer, model = bert
    pipe = transformers.pipeline("token-classification", model=model, tokenizer=tokenizer)
    whole = ConsistentClassifier.from_pipeline(pipe, max_length=250, split=SPLIT)
    assert list(whole.tags) == tags_from_config(model.config.id2label) == LABELS
    document = SPLIT(TEXT)
    encoded = tokenizer(TEXT, return_tensors="pt", return_offsets_mapping=True)
    places = encoded.pop("offset_mapping")[0].tolist()
    logits = model(**encoded).logits[0].detach().numpy()
    expected = []
    for start, end in zip(document.token_starts, document.token_ends, strict=True):
        expected.append(logits[next(p for p, (s, e) in enumerate(places) if s < e and s < end and e > start)])
    assert whole.word_scores(document) == pytest.approx(np.array(expected), abs=1e-5)
    right = whole.layer.apply(np.array(expected), document.tokens, document.sentence_offsets)
    assert whole(TEXT).spans == right.spans
    windows = ConsistentClassifier.from_pipeline(pipe, stride=12, batch_size=2, split=SPLIT)
    assert windows.max_length == 48
    cut = tokenizer(TEXT, truncation=True, max_length=48, stride=12, return_overflowing_tokens=True,
                    return_offsets_mapping=True, padding=True, return_tensors="pt")  # fmt: skip
    assert len(cut["input_ids"]) > 2
    with torch.inference_mode():
        logits = model(input_ids=cut["input_ids"], attention_mask=cut["attention_mask"]).logits.numpy()
    scores = windows.word_scores(document)
    for t, start in enumerate(document.token_starts):
        rows = [logits[w, p] for w, row in enumerate(cut["offset_mapping"].tolist()) for p, (s, e) in enumerate(row)
                if s == start and e > s]  # fmt: skip
        assert any(np.allclose(scores[t], row, atol=1e-5) for row in rows)


def test_a_session_of_onnx_runtime(bert):
    onnx, runtime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    tokenizer, _ = bert
    weights = np.random.default_rng(1).normal(size=(len(tokenizer), len(LABELS))).astype(np.float32)
    ids = onnx.helper.make_tensor_value_info("input_ids", onnx.TensorProto.INT64, ["windows", "pieces"])
    types = onnx.helper.make_tensor_value_info("token_type_ids", onnx.TensorProto.INT64, ["windows", "pieces"])
    out = onnx.helper.make_tensor_value_info("logits", onnx.TensorProto.FLOAT, ["windows", "pieces", len(LABELS)])
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Add", ["input_ids", "token_type_ids"], ["pieces"]),
         onnx.helper.make_node("Gather", ["weights", "pieces"], ["logits"])],
        "look up", [ids, types], [out], [onnx.numpy_helper.from_array(weights, "weights")],
    )  # fmt: skip
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    classifier = ConsistentClassifier(tokenizer, onnx_function(session), LABELS, stride=10, split=SPLIT)
    document = SPLIT(TEXT)
    encoded = tokenizer(TEXT, return_offsets_mapping=True)
    places = encoded["offset_mapping"]
    for t, (start, end) in enumerate(zip(document.token_starts, document.token_ends, strict=True)):
        p = next(p for p, (s, e) in enumerate(places) if s < e and s < end and e > start)
        assert classifier.word_scores(document)[t] == pytest.approx(weights[encoded["input_ids"][p]])
    assert classifier(TEXT).entities
