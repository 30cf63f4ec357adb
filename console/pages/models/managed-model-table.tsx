import { Button } from '@mantine/core'
import { type ReactNode, useState } from 'react'
import type { ManagedModel } from '../../api/models.ts'
import { type Column, DataTable } from '../../components/data-table.tsx'
import { useFormats, useSignedIn } from '../../components/session.tsx'
import { StateMark } from '../../components/state-mark.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import { EditPriceDialog } from './edit-price-dialog.tsx'

/**
 * All models for administrators. Those without a price are first, because their calls are refused or free.
 */
export function ManagedModelTable({ models: all }: { readonly models: readonly ManagedModel[] }) {
  const { models } = useTexts()
  const [edited, setEdited] = useState<ManagedModel>()
  const columns = useColumns(setEdited)
  const rows = all.toSorted((one, other) => Number(other.price === null) - Number(one.price === null))
  return (
    <>
      <DataTable label={models.title} columns={columns} rows={rows} keyOf={({ model }) => model} />
      <EditPriceDialog model={edited} onClose={() => setEdited(undefined)} />
    </>
  )
}

function useColumns(onEdit: (model: ManagedModel) => void): readonly Column<ManagedModel>[] {
  const { models } = useTexts()
  const { isRoot } = useSignedIn()
  const { usd } = useFormats()
  const price = ({ price: prices }: ManagedModel, name: string): string => {
    const amount = prices?.[name]
    return typeof amount === 'string' && !isByCall(prices) ? usd(Number(amount)) : '–'
  }
  const input = (model: ManagedModel): string =>
    isByCall(model.price) ? models.perCall(usd(Number(model.price?.['request']))) : price(model, 'input')
  const channelsText = ({ channels: [only = '–', ...further] }: ManagedModel): ReactNode =>
    further.length === 0 ? (
      only
    ) : (
      <span title={[only, ...further].join(', ')}>{models.channelCount(further.length + 1)}</span>
    )
  const actions: Column<ManagedModel> = {
    key: 'actions',
    label: models.editPrice,
    isLabelHidden: true,
    phone: 'actions',
    cell: (model) =>
      model.source !== 'file' && (
        <Button variant="default" size="compact-sm" onClick={() => onEdit(model)}>
          {models.editPrice}
        </Button>
      ),
  }
  return [
    { key: 'name', label: models.model, phone: 'title', cell: ({ model }) => model },
    { key: 'vendor', label: models.vendor, phone: 'value', cell: ({ vendor }) => vendor ?? '–' },
    { key: 'input', label: models.input, isNumber: true, cell: input },
    { key: 'output', label: models.output, isNumber: true, cell: (model) => price(model, 'output') },
    { key: 'cached', label: models.cached, isNumber: true, cell: (model) => price(model, 'cache_read') },
    {
      key: 'source',
      label: models.source,
      cell: ({ source }) =>
        source === 'none' ? <StateMark tone="warn" word={models.sources.none} /> : models.sources[source],
    },
    { key: 'channels', label: models.channels, cell: channelsText },
    ...(isRoot ? [actions] : []),
  ]
}

function isByCall(price: ManagedModel['price']): boolean {
  return price !== null && Number(price['request']) > 0 && Number(price['input']) === 0
}
