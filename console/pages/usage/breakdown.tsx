import { UnstyledButton } from '@mantine/core'
import type { Usage, UsagePoint } from '../../api/usage.ts'
import { TruncatedText } from '../../components/truncated-text.tsx'
import { type Column, DataTable } from '../../components/data-table.tsx'
import { MoneyText } from '../../components/money-text.tsx'
import { useFormatters } from '../../components/session.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import type { SeriesName } from './chart-rows.ts'
import { type SeriesSum, sumsOfSeries, sumOfUsagePoints } from './usage-sums.ts'
import type { Grouping } from './usage-filter.ts'
import classes from './usage-page.module.css'

/** A table of the sums of a period by the chosen dimension; its last row has the totals. */
export function Breakdown({
  usage,
  grouping,
  isStale,
  onFilter,
}: {
  readonly usage: Usage
  readonly grouping: Grouping
  readonly isStale: boolean
  readonly onFilter: (one: SeriesName) => void
}) {
  const { usage: texts } = useTexts()
  const rows = sumsOfSeries(usage, texts.other)
  const columns = useColumns(texts.groupings[grouping], onFilter)
  const foot: SeriesSum = { key: '', label: texts.sum, sum: sumOfUsagePoints(rows.map(({ sum }) => sum)) }
  return (
    <section aria-label={texts.breakdown} className={classes['breakdown']}>
      <h2>{texts.breakdown}</h2>
      <DataTable
        label={texts.breakdown}
        columns={columns}
        rows={rows}
        keyOf={({ key, label }) => `${key} ${label}`}
        isStale={isStale}
        foot={foot}
      />
    </section>
  )
}

function useColumns(heading: string, onFilter: (one: SeriesName) => void): readonly Column<SeriesSum>[] {
  const { usage } = useTexts()
  const { count } = useFormatters()
  const number = (key: keyof UsagePoint, label: string): Column<SeriesSum> => ({
    key,
    label,
    isNumber: true,
    sortBy: ({ sum }) => sum[key],
    cell: ({ sum }) => count(sum[key]),
  })
  return [
    {
      key: 'label',
      label: heading,
      phone: 'title',
      sortBy: ({ label }) => label,
      cell: ({ key, label }) =>
        key === '' ? (
          label
        ) : (
          <UnstyledButton className={classes['filter']} onClick={() => onFilter({ key, label })}>
            <TruncatedText text={label} isName />
          </UnstyledButton>
        ),
    },
    {
      key: 'quota',
      label: usage.spend,
      isNumber: true,
      phone: 'value',
      sortBy: ({ sum }) => sum.quota,
      cell: ({ sum }) => <MoneyText quota={sum.quota} />,
    },
    number('requests', usage.calls),
    number('failed', usage.errors),
    number('input', usage.input),
    number('cached', usage.cached),
    number('cache_write', usage.cacheWrite),
    number('output', usage.output),
  ]
}
