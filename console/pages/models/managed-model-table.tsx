import { Button, Checkbox } from '@mantine/core'
import { IconLock } from '@tabler/icons-react'
import { type ReactNode, useState } from 'react'
import type { ManagedModel } from '../../api/models.ts'
import { unitPrices } from '../../api/unit-prices.ts'
import { TruncatedText } from '../../components/truncated-text.tsx'
import { type Column, DataTable } from '../../components/data-table.tsx'
import { useSignedInAccount } from '../../components/session.tsx'
import { StateMark } from '../../components/state-mark.tsx'
import { usePriceText } from '../../components/use-price-text.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import { EditPriceDialog } from './edit-price-dialog.tsx'
import classes from './models-page.module.css'
import { ModelRetirement } from './model-retirement.tsx'
import { useServicePriceText } from './use-service-price-text.ts'

/**
 * All models for administrators. Those without a price are first, because their calls are refused or free.
 */
export function ManagedModelTable({
  models: all,
  ticked,
  onTick,
}: {
  readonly models: readonly ManagedModel[]
  /** The names of the selected models. */
  readonly ticked: ReadonlySet<string>
  readonly onTick: (name: string, isTicked: boolean) => void
}) {
  const { models } = useTexts()
  const [edited, setEdited] = useState<ManagedModel>()
  const ticks = useTickColumn(ticked, onTick)
  const columns = [...ticks, ...useColumns(setEdited)]
  const rows = all.toSorted((one, other) => Number(other.price === null) - Number(one.price === null))
  return (
    <>
      <DataTable label={models.title} columns={columns} rows={rows} keyOf={({ model }) => model} />
      <EditPriceDialog edited={edited ? [edited] : []} onClose={() => setEdited(undefined)} />
    </>
  )
}

/**
 * The column with a checkbox for each model whose price can be set here; no column for users who may not set
 * prices.
 */
function useTickColumn(
  ticked: ReadonlySet<string>,
  onTick: (name: string, isTicked: boolean) => void,
): readonly Column<ManagedModel>[] {
  const { models } = useTexts()
  const { isRoot } = useSignedInAccount()
  if (!isRoot) return []
  return [
    {
      key: 'tick',
      label: models.tick,
      isLabelHidden: true,
      cell: ({ model, source }) =>
        source !== 'file' && (
          <Checkbox
            aria-label={models.tickOf(model)}
            checked={ticked.has(model)}
            onChange={({ currentTarget: { checked } }) => onTick(model, checked)}
          />
        ),
    },
  ]
}

function useColumns(onEdit: (model: ManagedModel) => void): readonly Column<ManagedModel>[] {
  const { models } = useTexts()
  const { isRoot } = useSignedInAccount()
  const priceText = usePriceText()
  const serviceText = useServicePriceText()
  const pricesOf = (prices: NonNullable<ManagedModel['price']>) => ({
    input: amount(prices, 'input'),
    units: unitPrices(prices),
  })
  const price = ({ price: prices }: ManagedModel, name: string, kind: 'tokens' | 'output'): string =>
    prices === null ? '–' : priceText[kind](pricesOf(prices), amount(prices, name))
  const input = ({ price: prices }: ManagedModel): string =>
    prices === null ? '–' : priceText.input(pricesOf(prices))
  const channelsText = ({ channels: [only = '–', ...further] }: ManagedModel): ReactNode =>
    further.length === 0 ? (
      <TruncatedText text={only} />
    ) : (
      <span title={[only, ...further].join(', ')}>{models.channelCount(further.length + 1)}</span>
    )
  const actions: Column<ManagedModel> = {
    key: 'actions',
    label: models.editPrice,
    isLabelHidden: true,
    phone: 'actions',
    cell: (model) =>
      model.source === 'file' ? (
        <small className={classes['fixed']} title={models.fixed}>
          <IconLock size={14} aria-hidden />
          {models.inFile}
        </small>
      ) : (
        <Button variant="default" size="compact-sm" onClick={() => onEdit(model)}>
          {models.editPrice}
        </Button>
      ),
  }
  return [
    {
      key: 'name',
      label: models.model,
      phone: 'title',
      cell: (model) => (
        <>
          <TruncatedText text={model.model} isName /> <ModelRetirement model={model} />
        </>
      ),
    },
    {
      key: 'vendor',
      label: models.vendor,
      phone: 'value',
      isOptional: true,
      cell: ({ vendor }) => vendor ?? '–',
    },
    { key: 'input', label: models.input, isNumber: true, cell: input },
    {
      key: 'output',
      label: models.output,
      isNumber: true,
      cell: (model) => price(model, 'output', 'output'),
    },
    {
      key: 'cached',
      label: models.cached,
      isNumber: true,
      cell: (model) => price(model, 'cache_read', 'tokens'),
    },
    {
      key: 'service',
      label: models.tiersAndRegions,
      phone: 'hidden',
      isOptional: true,
      cell: (model) => <TruncatedText text={serviceText(model)} />,
    },
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

function amount(prices: NonNullable<ManagedModel['price']>, name: string): number | undefined {
  const text = prices[name]
  return typeof text === 'string' ? Number(text) : undefined
}
