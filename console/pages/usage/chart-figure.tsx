import { BarChart, LineChart } from '@mantine/charts'
import '@mantine/charts/styles.css'
import { Button, UnstyledButton } from '@mantine/core'
import { Link, useNavigate } from '@tanstack/react-router'
import { type ReactNode, startTransition, useEffect, useState } from 'react'
import type { Usage } from '../../api/usage.ts'
import { DataTable } from '../../components/data-table.tsx'
import type { SearchState } from '../../components/search-state.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import { usePreferences } from '../../components/preferences.ts'
import { BarSegment } from './bar-segment.tsx'
import type { ChartData, ChartSeries, SeriesName } from './chart-rows.ts'
import { formatInterval } from './format-interval.ts'
import { IntervalTooltip } from './interval-tooltip.tsx'
import { axisTicks } from '../../components/axis-ticks.ts'
import classes from './usage-page.module.css'

/**
 * Returns the filters of the page Logs that select the calls of one interval of time; `at` is its start in
 * Unix seconds.
 */
type SlotLink = (at: number) => SearchState

const HEIGHT = 200
/** Half the width of a bar plus a gap, in pixels, so that the tooltip does not cover the bar. */
const TOOLTIP_OFFSET = 24

/** How the values of a chart are drawn and written. */
interface Scale {
  readonly step: Usage['step']
  readonly data: ChartData
  readonly linkOf: SlotLink
  readonly format: (value: number) => string
  /** Formats a value for the labels of the axis, shorter than `format`. */
  readonly axis: (value: number) => string
  /** The labels of the axis are multiples of this value. */
  readonly unit?: number
  /** Whether values are counts, so that the axis only has whole numbers. */
  readonly areWhole?: boolean
  readonly areLines?: boolean
}

/** A chart, or the same numbers as a table. Children are shown beside the title. */
export function ChartFigure({
  title,
  isWide = false,
  onFilter,
  children,
  ...scale
}: Scale & {
  readonly title: string
  readonly isWide?: boolean
  readonly onFilter?: (one: SeriesName) => void
  readonly children?: ReactNode
}) {
  const { step, data, linkOf, format } = scale
  const { usage } = useTexts()
  const [isTable, setIsTable] = useState(false)
  // The wide chart at the top is drawn at once, the others after the first paint.
  const [isDrawn, setIsDrawn] = useState(isWide)
  useEffect(() => startTransition(() => setIsDrawn(true)), [])
  const isEmpty = data.rows.every((row) => data.series.every(({ name }) => !row[name]))
  return (
    <figure aria-label={title} className={classes['figure']} data-wide={isWide || undefined}>
      <figcaption>
        <h2>{title}</h2>
        {children}
        <Button variant="subtle" size="xs" aria-pressed={isTable} onClick={() => setIsTable(!isTable)}>
          {usage.showTable}
        </Button>
      </figcaption>
      {isTable && <SlotTable title={title} step={step} data={data} linkOf={linkOf} format={format} />}
      {!isTable && isEmpty && <p className={classes['none']}>{usage.nothingHere(title)}</p>}
      {!isTable && !isEmpty && (
        <>
          <Legend series={data.series} onFilter={onFilter} />
          {/* The table has the same numbers for users who do not see the drawing. */}
          <div aria-hidden className={classes['drawing']}>
            {isDrawn && <Drawing {...scale} />}
          </div>
        </>
      )}
    </figure>
  )
}

function Drawing({ step, data, linkOf, format, axis, unit, areWhole, areLines = false }: Scale) {
  const { tag } = useTexts()
  const { timeZone } = usePreferences()
  const navigate = useNavigate()
  const ticks = axisTicks(largestOf(data, areLines), { unit, areWhole })
  const shared = {
    h: HEIGHT,
    data: data.rows.map((row) => ({ ...row, at: formatInterval(row.at, step, tag, timeZone) })),
    dataKey: 'at',
    valueFormatter: format,
    tickLine: 'none' as const,
    gridColor: 'var(--line)',
    textColor: 'var(--muted)',
    strokeDasharray: '0',
    xAxisProps: { minTickGap: 24 },
    yAxisProps: {
      tickFormatter: axis,
      width: 72,
      ticks: [...ticks],
      domain: [0, ticks.at(-1) ?? 0] as [number, number],
      interval: 0,
    },
    tooltipAnimationDuration: 0,
    tooltipProps: {
      offset: TOOLTIP_OFFSET,
      content: ({
        activeIndex,
        label,
      }: {
        readonly activeIndex?: unknown
        readonly label?: string | number
      }) => (
        <IntervalTooltip
          label={String(label ?? '')}
          series={data.series}
          row={data.rows[Number(activeIndex ?? Number.NaN)]}
          format={format}
          hasSum={!areLines}
        />
      ),
    },
  }
  if (areLines)
    return (
      <LineChart
        {...shared}
        curveType="linear"
        strokeWidth={1.5}
        dotProps={{ r: 2 }}
        connectNulls={false}
        lineChartProps={{ accessibilityLayer: false }}
        lineProps={{ isAnimationActive: false }}
        series={data.series.map(({ name, label, color, isDashed }) => ({
          name,
          label,
          color,
          ...(isDashed && { strokeDasharray: '4 3' }),
        }))}
      />
    )
  return (
    <BarChart
      {...shared}
      type="stacked"
      maxBarWidth={32}
      fillOpacity={1}
      barChartProps={{
        accessibilityLayer: false,
        // With the keyboard, users follow the link in the table instead.
        onClick: ({ activeTooltipIndex: index }) => {
          const row = data.rows[Number(index ?? Number.NaN)]
          if (row) void navigate({ to: '/logs', search: linkOf(row.at) })
        },
      }}
      barProps={{ isAnimationActive: false, shape: BarSegment }}
      series={data.series.map(({ name, label, color }) => ({ name, label, color }))}
    />
  )
}

/** The largest value in the chart: of a line, or of a whole bar. */
function largestOf({ series, rows }: ChartData, areLines: boolean): number {
  const heights = rows.map((row) => {
    const values = series.map(({ name }) => row[name] ?? 0)
    return areLines ? Math.max(0, ...values) : values.reduce((sum, value) => sum + value, 0)
  })
  return Math.max(0, ...heights)
}

function Legend({
  series,
  onFilter,
}: {
  readonly series: readonly ChartSeries[]
  readonly onFilter: ((one: SeriesName) => void) | undefined
}) {
  return (
    <ul className={classes['legend']}>
      {series.map(({ name, label, color, isDashed, filter }) => {
        const mark = <i style={{ borderColor: color }} data-dashed={isDashed} aria-hidden />
        return (
          <li key={name}>
            {filter !== undefined && onFilter ? (
              <UnstyledButton onClick={() => onFilter(filter)}>
                {mark}
                {label}
              </UnstyledButton>
            ) : (
              <span>
                {mark}
                {label}
              </span>
            )}
          </li>
        )
      })}
    </ul>
  )
}

function SlotTable({
  title,
  step,
  data: { series, rows },
  linkOf,
  format,
}: {
  readonly title: string
  readonly step: Usage['step']
  readonly data: ChartData
  readonly linkOf: SlotLink
  readonly format: (value: number) => string
}) {
  const { usage, tag } = useTexts()
  const { timeZone } = usePreferences()
  return (
    <div className={classes['slots']}>
      <DataTable
        label={title}
        rows={rows}
        keyOf={({ at }) => at}
        columns={[
          {
            key: 'at',
            label: usage.slot,
            phone: 'title',
            cell: ({ at }) => (
              <Link to="/logs" search={linkOf(at)}>
                {formatInterval(at, step, tag, timeZone)}
              </Link>
            ),
          },
          ...series.map(({ name, label }) => ({
            key: name,
            label,
            isNumber: true,
            cell: (row: ChartData['rows'][number]) => {
              const value = row[name] ?? null
              return value === null ? '–' : format(value)
            },
          })),
        ]}
      />
    </div>
  )
}
