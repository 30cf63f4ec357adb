import type { Usage } from '../../api/usage.ts'
import type { SearchState } from '../../components/search-state.ts'
import { useFormats } from '../../components/session.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import { ChartFigure } from './chart-figure.tsx'
import { largestSeriesData, latencyData, type SeriesName, fieldSeriesData } from './chart-rows.ts'
import classes from './usage-page.module.css'

/** Cost, calls, tokens, latency and errors of a period by time. */
export function Charts({
  usage,
  linkOf,
  onFilter,
}: {
  readonly usage: Usage
  /** The filters of the log for the calls of a slot. */
  readonly linkOf: (at: number) => SearchState
  readonly onFilter: (one: SeriesName) => void
}) {
  const { usage: texts, tag } = useTexts()
  const { money, count, duration } = useFormats()
  const short = new Intl.NumberFormat(tag, { notation: 'compact', maximumFractionDigits: 1 })
  const counted = { format: count, axis: (value: number) => short.format(value) }
  return (
    <div className={classes['charts']}>
      <ChartFigure
        title={texts.spend}
        step={usage.step}
        linkOf={linkOf}
        data={largestSeriesData(usage, ({ quota }) => quota, texts.other)}
        format={money}
        axis={money}
        onFilter={onFilter}
        isWide
      />
      <ChartFigure
        title={texts.calls}
        step={usage.step}
        linkOf={linkOf}
        data={largestSeriesData(usage, ({ requests }) => requests, texts.other)}
        {...counted}
        onFilter={onFilter}
      />
      <ChartFigure
        title={texts.tokens}
        step={usage.step}
        linkOf={linkOf}
        data={fieldSeriesData(usage, [
          { label: texts.input, of: ({ input }) => input },
          { label: texts.cached, of: ({ cached }) => cached },
          { label: texts.cacheWrite, of: ({ cache_write }) => cache_write },
          { label: texts.output, of: ({ output }) => output },
        ])}
        {...counted}
      />
      <ChartFigure
        title={texts.latency}
        step={usage.step}
        linkOf={linkOf}
        data={latencyData(usage, {
          p50_ms: texts.wholeHalf,
          p95_ms: texts.wholeP95,
          first_p50_ms: texts.firstHalf,
          first_p95_ms: texts.firstP95,
        })}
        format={duration}
        axis={duration}
        areLines
      />
      <ChartFigure
        title={texts.errors}
        step={usage.step}
        linkOf={linkOf}
        data={largestSeriesData(usage, ({ failed }) => failed, texts.other)}
        {...counted}
        onFilter={onFilter}
      />
    </div>
  )
}
