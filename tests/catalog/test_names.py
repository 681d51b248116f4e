"""Names: the order of look-ups, each rule of the ambiguous names, hints that contradict, and the index itself."""

import csv
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.names import Hints, NamesInvalid, Resolution, cloud_slug, default_index, load_index, resolve
from catalog.names.clouds import OTHER_NAMES
from catalog.names.index import DATA
from catalog.names.rules import RULES

SPELLED = default_index()
PRO_6000 = ("rtx-pro-6000-blackwell-server", "rtx-pro-6000-blackwell", "rtx-pro-6000-blackwell-maxq")


def found(name: str, *, memory: str | int | None = None, form: str = "", cloud: str = "", machine: str = ""):
    """Return the slug, or the candidates as a tuple, that a name means beside these hints."""
    hints = Hints(
        memory_gb=None if memory is None else Decimal(memory), form_factor=form, cloud=cloud, instance_type=machine
    )
    resolution = resolve(name, hints=hints)
    return resolution.slug or resolution.candidates


def lines_of(path) -> list[dict[str, str]]:
    with path.open(newline="") as lines:
        return list(csv.DictReader(lines))


# The order of look-ups


def test_every_alias_of_the_reference_data_is_its_card(shared_data):
    rows = lines_of(shared_data / "gpu_aliases.csv")
    assert len(rows) == 428
    assert [(row["alias"], row["slug"]) for row in rows if resolve(row["alias"]).slug != row["slug"]] == []
    assert {resolve(row["alias"]).matched_by for row in rows} == {"alias"}


def test_our_files_carry_every_line_of_the_reference_aliases(shared_data):
    for name in ("gpu_aliases.csv", "gpu_aliases_ambiguous.csv"):
        ours = lines_of(DATA / name)
        assert [row for row in lines_of(shared_data / name) if row not in ours] == []


def test_an_ambiguous_name_without_default_stays_unmapped_without_hints():
    for alias, entry in SPELLED.ambiguous.items():
        if not entry.default_slug and alias not in SPELLED.aliases:
            assert resolve(alias) == Resolution(candidates=tuple(card.slug for card in entry.candidates)), alias


def test_a_default_answers_as_a_rule_and_a_letter_for_letter_alias_as_an_alias():
    assert resolve("GH200 480GB") == Resolution(slug="gh200-96gb", matched_by="rule")
    assert resolve("NVIDIA GH200 480GB") == Resolution(slug="gh200-96gb", matched_by="alias")
    assert resolve("nvidia h200") == Resolution(slug="h200-sxm", matched_by="rule")
    assert resolve("rtx 4070") == Resolution(slug="rtx-4070", matched_by="rule")


def test_case_separators_and_vendor_words_are_evened_out():
    assert resolve("nvidia geforce-rtx_4090") == Resolution(slug="rtx-4090", matched_by="normalised")
    assert resolve("  H100   NVL ") == Resolution(slug="h100-nvl", matched_by="alias")
    assert resolve("amd_instinct_mi300x") == Resolution(slug="mi300x", matched_by="normalised")


def test_the_ambiguous_spelling_comes_before_a_normalised_alias():
    assert found("nvidia-h100-80gb") == "h100-sxm"  # GKE's label, letter for letter
    assert found("NVIDIA H100-80GB") == ("h100-sxm", "h100-pcie")
    assert found("nvidia_tesla_v100") == tuple(card.slug for card in SPELLED.ambiguous["V100"].candidates)


def test_a_spelling_that_leans_on_its_vendor_word_needs_it():
    assert found("Tesla V100 16GB") == found("tesla_v100_16gb") == "v100-sxm2-16gb"
    assert found("V100 16GB") == ("v100-sxm2-16gb", "v100-pcie-16gb")
    assert found("NVIDIA H800") == "h800-sxm"
    assert found("H800") == ("h800-sxm", "h800-pcie")


def test_words_that_leave_several_cards_give_candidates_and_never_a_guess():
    assert found("A100 80GB") == ("a100-sxm-80gb", "a100-pcie-80gb")
    assert found("NVIDIA A100 40 GB HBM2") == ("a100-sxm-40gb", "a100-pcie-40gb")
    assert found("H100 HBM3") == ("h100-sxm", "h100-nvl")
    assert found("RTX PRO 6000 Blackwell") == PRO_6000
    assert found("RTX 6000") == ("quadro-rtx-6000", "rtx-6000-ada")


def test_rtx_6000_is_four_cards():
    assert [
        found(name) for name in ("Quadro RTX 6000", "RTX A6000", "RTX 6000 Ada Generation", "RTX PRO 6000 Server")
    ] == ["quadro-rtx-6000", "rtx-a6000", "rtx-6000-ada", "rtx-pro-6000-blackwell-server"]


@given(st.text(max_size=300))
def test_any_text_at_all_gets_an_answer_and_a_slug_of_the_catalogue(name):
    resolution = resolve(name)
    assert (resolution.slug is None) == (resolution.matched_by == "")
    assert {resolution.slug or "b300", *resolution.candidates} <= SPELLED.cards.keys()


# The rules, family by family: name, hints, card (or candidates)


@pytest.mark.parametrize(
    ("name", "hints", "card"),
    [
        # A100: memory first, then form factor, then what the cloud has
        ("A100", {"memory": 40, "form": "SXM4"}, "a100-sxm-40gb"),
        ("A100", {"memory": 80, "form": "PCIe"}, "a100-pcie-80gb"),
        ("A100", {"memory": 40}, ("a100-sxm-40gb", "a100-pcie-40gb")),
        ("A100", {"cloud": "aws", "machine": "p4d.24xlarge"}, "a100-sxm-40gb"),
        ("a100", {"cloud": "aws", "machine": "p4de.24xlarge"}, "a100-sxm-80gb"),
        ("A100", {"cloud": "aws"}, ("a100-sxm-40gb", "a100-sxm-80gb")),
        ("A100", {"cloud": "gcp", "machine": "a2-highgpu-1g"}, "a100-sxm-40gb"),
        ("A100", {"cloud": "gcp"}, "a100-sxm-40gb"),
        ("A100", {"cloud": "gcp", "machine": "a2-ultragpu-2g"}, "a100-sxm-80gb"),
        ("A100", {"cloud": "azure", "machine": "Standard_ND96asr_v4"}, "a100-sxm-40gb"),
        ("A100", {"cloud": "lambda", "machine": "gpu_8x_a100"}, "a100-sxm-40gb"),
        ("A100", {"cloud": "lambda", "machine": "gpu_1x_a100_sxm4"}, "a100-sxm-40gb"),
        ("A100", {"cloud": "lambda", "machine": "gpu_1x_a100"}, ("a100-sxm-40gb", "a100-pcie-40gb")),
        ("A100", {"cloud": "seeweb"}, ("a100-sxm-80gb", "a100-pcie-80gb")),
        ("A100", {"cloud": "cudo", "machine": "intel-ice-lake-a100-pci_1x2v4gb"}, "a100-pcie-80gb"),
        ("NVIDIA A100", {"cloud": "vultr"}, ("a100-sxm-80gb", "a100-pcie-80gb")),
        ("A100-80GB", {"cloud": "runpod"}, "a100-pcie-80gb"),
        ("A100 80GB", {"cloud": "hyperstack"}, "a100-pcie-80gb"),
        ("A100-80GB", {"cloud": "azure", "machine": "Standard_NC24ads_A100_v4"}, "a100-pcie-80gb"),
        ("A100-80GB", {"cloud": "azure", "machine": "Standard_ND96amsr_A100_v4"}, "a100-sxm-80gb"),
        ("A100-80GB", {"cloud": "gcp"}, "a100-sxm-80gb"),
        ("A100-80GB", {"cloud": "oci"}, "a100-sxm-80gb"),
        ("A100-80GB", {"cloud": "datacrunch"}, "a100-sxm-80gb"),
        ("A100-80GB", {"cloud": "paperspace"}, ("a100-sxm-80gb", "a100-pcie-80gb")),
        # H100
        ("H100", {"memory": 94}, "h100-nvl"),
        ("H100", {"memory": "93.58"}, "h100-nvl"),
        ("H100", {"memory": 80}, ("h100-sxm", "h100-pcie")),
        ("H100", {"form": "SXM5"}, "h100-sxm"),
        ("H100", {"form": "pcie", "memory": 80}, "h100-pcie"),
        ("H100", {"form": "PCIe", "memory": 94}, "h100-nvl"),
        ("H100", {"cloud": "azure", "machine": "Standard_NCC40ads_H100_v5"}, "h100-nvl"),
        ("H100", {"cloud": "azure", "machine": "Standard_ND96isr_H100_v5"}, "h100-sxm"),
        ("H100", {"cloud": "azure"}, ("h100-sxm", "h100-pcie", "h100-nvl")),
        ("H100", {"cloud": "runpod"}, "h100-pcie"),
        ("H100", {"cloud": "aws"}, "h100-sxm"),
        ("H100", {"cloud": "lambdalabs", "machine": "gpu_1x_h100_pcie"}, "h100-pcie"),
        ("H100", {"cloud": "scaleway", "machine": "H100-2-80G"}, "h100-pcie"),
        ("H100", {"cloud": "scaleway", "machine": "H100-SXM-8-80G"}, "h100-sxm"),
        ("H100", {"cloud": "vast", "machine": "1x-H100_NVL-32-65536"}, "h100-nvl"),
        ("H100-80GB", {"form": "SXM"}, "h100-sxm"),
        ("H100-80GB", {"form": "NVL"}, ("h100-sxm", "h100-pcie")),
        # H200: SXM at a cloud, unless NVL is said
        ("H200", {"cloud": "nebius"}, "h200-sxm"),
        ("H200", {"cloud": "nebius", "form": "NVL"}, "h200-nvl"),
        ("H200", {"form": "PCIe"}, "h200-nvl"),
        ("H200", {"memory": 141}, ("h200-sxm", "h200-nvl")),
        ("H200", {"cloud": "vast"}, ("h200-sxm", "h200-nvl")),
        ("H200", {"cloud": "vast", "machine": "2x-H200-32-65536"}, "h200-sxm"),
        ("H200", {"cloud": "vast", "machine": "2x-H200_NVL-32-65536"}, "h200-nvl"),
        # V100
        ("V100", {"cloud": "aws", "machine": "p3.2xlarge"}, "v100-sxm2-16gb"),
        ("v100", {"cloud": "aws", "machine": "p3dn.24xlarge"}, "v100-sxm2-32gb"),
        ("V100", {"cloud": "azure", "machine": "Standard_NC24rs_v3"}, "v100-pcie-16gb"),
        ("V100", {"cloud": "gcp"}, "v100-sxm2-16gb"),
        ("V100", {"cloud": "verda"}, "v100-sxm2-16gb"),
        ("V100", {"memory": 16}, ("v100-sxm2-16gb", "v100-pcie-16gb")),
        ("Tesla V100", {"memory": 32, "form": "PCIe"}, "v100-pcie-32gb"),
        ("V100-32GB", {"cloud": "azure", "machine": "Standard_ND40rs_v2"}, "v100-sxm2-32gb"),
        ("V100-32GB", {"cloud": "ovh", "machine": "t2-45"}, "v100-pcie-32gb"),
        ("V100-32GB", {"cloud": "paperspace"}, ("v100-sxm2-32gb", "v100-pcie-32gb")),
        # P100: our alias and the rule disagree on Oracle's VM.GPU2.1
        ("P100", {"cloud": "gcp"}, "p100-pcie"),
        ("P100", {"cloud": "scaleway", "machine": "RENDER-S"}, "p100-pcie"),
        ("P100", {"cloud": "oci", "machine": "BM.GPU2.2"}, "p100-sxm2"),
        ("P100", {"cloud": "oci", "machine": "VM.GPU2.1"}, ("p100-sxm2", "p100-pcie")),
        ("Tesla P100", {"memory": 12}, ("p100-sxm2", "p100-pcie")),
        # RTX 4000 to 6000: two generations of one number
        ("RTX6000", {"memory": 24}, "quadro-rtx-6000"),
        ("RTX 6000", {"memory": 48}, "rtx-6000-ada"),
        ("RTX6000", {"cloud": "lambda"}, "quadro-rtx-6000"),
        ("RTX 6000", {"memory": 96}, ("quadro-rtx-6000", "rtx-6000-ada")),
        ("RTX 5000", {"memory": 16}, "quadro-rtx-5000"),
        ("RTX5000", {"memory": 32}, "rtx-5000-ada"),
        ("RTX4000", {"memory": 8}, "quadro-rtx-4000"),
        ("RTX 4000", {"memory": 20}, "rtx-4000-ada"),
        # RTX PRO 6000: the server card at clouds, unknown at host marketplaces
        ("RTX PRO 6000", {"cloud": "nebius"}, "rtx-pro-6000-blackwell-server"),
        ("RTX PRO 6000", {"cloud": "somecloud", "machine": "1x-pro6000-ws"}, "rtx-pro-6000-blackwell"),
        ("RTX PRO 6000", {"cloud": "runpod", "machine": "RTX PRO 6000 MAXQ"}, "rtx-pro-6000-blackwell-maxq"),
        ("rtx pro 6000", {"cloud": "tensordock"}, PRO_6000),
        # Sold in two sizes, one of them ours
        ("RTX 3060", {"memory": 12}, "rtx-3060"),
        ("RTX 3060", {"memory": 8}, ("rtx-3060",)),
        ("RTX 4060 Ti", {"memory": 16}, "rtx-4060-ti-16gb"),
        ("RTX 5060 Ti", {"memory": "15.93"}, "rtx-5060-ti-16gb"),
        ("RTX A2000", {"memory": 6}, ("rtx-a2000-12gb",)),
        ("RTX A2000", {"memory": 12}, "rtx-a2000-12gb"),
        # The rest
        ("GH200", {"cloud": "lambda"}, "gh200-96gb"),
        ("GH200", {"memory": 141}, "gh200-144gb"),
        ("GH200", {"cloud": "vultr"}, ("gh200-96gb", "gh200-144gb")),
        ("A800", {"form": "SXM4"}, "a800-sxm-80gb"),
        ("A800", {"memory": 40}, ("a800-sxm-80gb", "a800-pcie-80gb")),
        ("AMD Instinct MI250X / MI250", {"memory": 128, "cloud": "hotaisle"}, ("mi250", "mi250x")),
        ("t4g", {"cloud": "aws"}, "t4g"),
        ("t4g", {"machine": "g5g.xlarge"}, "t4g"),
        ("RTX 4090 D", {"memory": 24, "cloud": "runpod"}, ("rtx-4090",)),
        ("MIG 1g.24gb", {"memory": 24, "cloud": "runpod"}, ("rtx-pro-6000-blackwell-server",)),
        ("quadrortx6000-pcie-48gb", {"memory": 48}, ("quadro-rtx-6000", "quadro-rtx-8000")),
        # SkyPilot's Vast file: only the machine type has the whole name
        ("RTX4070", {"cloud": "vast", "machine": "4x-RTX_4070S_Ti-32-65536"}, "rtx-4070-ti-super"),
        ("RTX3060", {"cloud": "vast", "machine": "1x-RTX_3060_Ti-32-65536"}, ()),
        ("RTX4090", {"cloud": "vast", "machine": "1x-RTX_4090_D-32-65536"}, ("rtx-4090",)),
        ("A100", {"cloud": "vast", "machine": "1x-A100_SXM4-32-65536"}, ("a100-sxm-80gb", "a100-sxm-40gb")),
        ("A100", {"cloud": "vast", "machine": "1x-A100_SXM4-32-65536", "memory": 40}, "a100-sxm-40gb"),
        # AWS lists both Inferentia generations under one name; its G7 has a card that has no row here
        ("Inferentia", {"cloud": "aws", "machine": "inf1.xlarge"}, "inferentia-1"),
        ("Inferentia", {"cloud": "aws", "machine": "inf2.xlarge"}, "inferentia-2"),
        ("rtx-pro-4500", {"cloud": "aws", "machine": "g7.2xlarge"}, ("rtx-pro-4500-blackwell",)),
    ],
)
def test_a_rule_decides_by_memory_form_factor_cloud_and_machine(name, hints, card):
    assert found(name, **hints) == card


def test_every_ambiguous_name_has_a_rule_and_every_rule_a_name():
    assert SPELLED.ambiguous.keys() == RULES.keys()


# Hints that contradict the name


@pytest.mark.parametrize(
    ("name", "hints", "card"),
    [
        ("H100 PCIe", {"memory": 94}, ("h100-pcie",)),
        ("H100 PCIe", {"form": "SXM5"}, ("h100-pcie",)),
        ("RTX 4090", {"memory": "47.99"}, ("rtx-4090",)),
        ("NVIDIA H100 80GB HBM3", {"form": "PCIe"}, ("h100-sxm",)),
        ("L40S", {"form": "SXM5"}, ("l40s",)),
        ("MI250X", {"memory": 64}, ("mi250x",)),
        ("MI250", {"memory": 64}, ("mi250",)),
        # The name allows a sister card, and the hints mean it
        ("A100 SXM4", {"memory": 40}, "a100-sxm-40gb"),
        ("A100 PCIE", {"memory": "39.59"}, "a100-pcie-40gb"),
        ("V100 SXM2", {"memory": 32}, "v100-sxm2-32gb"),
        ("NVIDIA H200", {"form": "NVL"}, "h200-nvl"),
    ],
)
def test_a_contradicted_name_is_never_the_card_it_says(name, hints, card):
    assert found(name, **hints) == card


@pytest.mark.parametrize(
    ("name", "memory"),
    [
        ("B300", 268), ("B300", 288), ("B200", 180), ("B200", "192.3"), ("GB200", 186), ("GB200", 192), ("GB300", 279),
        ("H100 SXM", "79.65"), ("H100 SXM", "85.52"), ("H100 NVL", "95.83"), ("A10G", "22.2"), ("L4", "22.5"),
        ("L40S", 45), ("T4", 15), ("MI300X", "206.1"), ("GH200 144GB", 141), ("RTX PRO 6000 WS", "95.59"),
    ],
)  # fmt: skip
def test_a_size_as_tools_report_it_does_not_contradict(name, memory):
    assert isinstance(found(name, memory=memory), str)


@given(st.sampled_from(sorted({*SPELLED.aliases, *SPELLED.ambiguous})), st.integers(min_value=1, max_value=300))
def test_no_answer_ever_disagrees_with_the_size_the_source_states(name, memory):
    slug = resolve(name, hints=Hints(memory_gb=Decimal(memory))).slug
    assert slug is None or abs(SPELLED.cards[slug].memory_gb / memory - 1) < Decimal("0.1")


# The index and the clouds


GPUS = "slug,vendor,name,architecture,form_factor,memory_gb,memory_type,nvlink_gb_s\n"
L4 = "l4,NVIDIA,NVIDIA L4,Ada Lovelace,PCIe,24,GDDR6,\n"
ALIASES = "alias,slug,seen_in\n"
AMBIGUOUS = "alias,candidate_slugs,default_slug,rule,seen_in\n"


def test_a_card_added_to_the_file_needs_no_code():
    index = load_index(GPUS + L4 + "l9,NVIDIA,NVIDIA L9,Rubin,PCIe,40,GDDR7,\n", ALIASES, AMBIGUOUS)
    assert resolve("nvidia-l9-pcie-40gb", index=index).slug == "l9"


@pytest.mark.parametrize(
    ("aliases", "ambiguous", "message"),
    [
        ("L5,l5,nowhere\n", "", "alias 'L5' points to unknown 'l5'"),
        ("L4,l4,here\nL4,l40,there\n", "", "alias 'L4' points to 'l4' and 'l40'"),
        ("", "L4 or so,l4,,guess,nowhere\n", "ambiguous name 'L4 or so' has no rule"),
        ("", "A100,l4|a100,,memory,nowhere\n", "ambiguous name 'A100' points to unknown"),
        ("", "A100,l4,l5,memory,nowhere\n", "ambiguous name 'A100' points to unknown"),
    ],
)
def test_files_that_contradict_each_other_are_refused(aliases, ambiguous, message):
    gpus = GPUS + L4 + L4.replace("l4,", "l40,").replace("L4,", "L40,")
    with pytest.raises(NamesInvalid, match=message):
        load_index(gpus, ALIASES + aliases, AMBIGUOUS + ambiguous)


def test_every_other_name_of_a_cloud_leads_to_one_of_the_catalogue():
    known = {row["slug"] for row in lines_of(DATA / "clouds.csv")}
    assert set(OTHER_NAMES.values()) <= known
    assert not known & OTHER_NAMES.keys()
    assert all(cloud_slug(slug) == slug for slug in known)
