// SPDX-License-Identifier: GPL-2.0
/*
 * flash-store: the memory of a PCI device as persistent memory.
 *
 * The lab's storage has to answer at once and without the emulator's threads,
 * or runs do not repeat.  On a PC that is an NVDIMM; a machine of device tree
 * has none without firmware.  QEMU's ivshmem-plain is memory of the host in a
 * BAR, which the disk driver of persistent memory takes as well.
 */
#include <linux/device.h>
#include <linux/init.h>
#include <linux/libnvdimm.h>
#include <linux/pci.h>

#define STORE_BAR 2

/* Red Hat's number for ivshmem, as QEMU's docs/specs/ivshmem-spec.txt has it. */
static const struct pci_device_id store_ids[] = {
	{ PCI_DEVICE(PCI_VENDOR_ID_REDHAT_QUMRANET, 0x1110) },
	{ }
};

static void store_unregister(void *bus)
{
	nvdimm_bus_unregister(bus);
}

static int store_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct nd_region_desc region = {
		.res = &pdev->resource[STORE_BAR],
		.numa_node = dev_to_node(&pdev->dev),
		.target_node = dev_to_node(&pdev->dev),
	};
	struct nvdimm_bus_descriptor *desc;
	struct nvdimm_bus *bus;
	int err;

	err = pcim_enable_device(pdev);
	if (err)
		return err;
	desc = devm_kzalloc(&pdev->dev, sizeof(*desc), GFP_KERNEL);
	if (!desc)
		return -ENOMEM;
	desc->provider_name = "flash-store";
	desc->module = THIS_MODULE;
	bus = nvdimm_bus_register(&pdev->dev, desc);
	if (!bus)
		return -ENXIO;
	err = devm_add_action_or_reset(&pdev->dev, store_unregister, bus);
	if (err)
		return err;
	return nvdimm_pmem_region_create(bus, &region) ? 0 : -ENXIO;
}

static struct pci_driver store_driver = {
	.name = "flash-store",
	.id_table = store_ids,
	.probe = store_probe,
};
builtin_pci_driver(store_driver);
