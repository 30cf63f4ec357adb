import { Select } from '@mantine/core'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import type { CallScope } from '../../api/calls.ts'
import { failuresQuery, refusalsQuery, type Usage, type UsageQuery } from '../../api/usage.ts'
import type { SearchState } from '../../components/search-state.ts'
import { useFormatters, useSignedInAccount } from '../../components/session.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import { ChartFigure } from './chart-figure.tsx'
import {
  type ChartData,
  callCountSeriesData,
  fieldSeriesData,
  largestSeriesData,
  latencyData,
  type SeriesName,
} from './chart-rows.ts'
import {
  ERROR_GROUPINGS,
  errorGroupingOf,
  errorGroupings,
  API_DIMENSION_OF_GROUPING,
  type Grouping,
} from './usage-filter.ts'
import classes from './usage-page.module.css'

/** What all charts of the page get: their data, filters and links. */
interface ChartsOf {
  readonly usage: Usage
  readonly scope: CallScope
  readonly params: UsageQuery
  readonly grouping: Grouping
  readonly search: SearchState
  readonly onSearch: (changes: SearchState) => void
  /**
   * Returns the filters of the page Logs that select the calls of one interval of time; `at` is its start in
   * Unix seconds.
   */
  readonly linkOf: (at: number) => SearchState
  readonly onFilter: (one: SeriesName, by?: Grouping) => void
}

/** Cost, calls, tokens, latency and errors of a period by time. */
export function Charts(page: ChartsOf) {
  const { usage, linkOf, onFilter } = page
  const { usage: texts } = useTexts()
  const { money, duration, moneyStep } = useFormatters()
  const counted = useCounted()
  return (
    <div className={classes['charts']}>
      <ChartFigure
        title={texts.spend}
        step={usage.step}
        linkOf={linkOf}
        data={largestSeriesData(usage, 'quota', texts.other)}
        format={money}
        axis={money}
        unit={moneyStep}
        onFilter={onFilter}
        isWide
      />
      <ChartFigure
        title={texts.calls}
        step={usage.step}
        linkOf={linkOf}
        data={largestSeriesData(usage, 'requests', texts.other)}
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
      <Errors {...page} />
    </div>
  )
}

/**
 * A chart of failed calls, grouped as the rest of the page, by another dimension or by cause; or of refused
 * calls, grouped by error code.
 */
function Errors({ usage, scope, params, grouping, search, onSearch, linkOf, onFilter }: ChartsOf) {
  const { usage: texts, logs } = useTexts()
  const { profile } = useSignedInAccount()
  const counted = useCounted()
  const chosen = errorGroupingOf(search, scope)
  // With the page's own grouping, the failed calls are already loaded.
  const asked = chosen === grouping ? undefined : chosen
  const { data } = useQuery({
    ...(asked === 'refusals'
      ? refusalsQuery(profile.id, scope, params)
      : failuresQuery(
          profile.id,
          scope,
          params,
          asked === undefined || asked === 'cause' ? 'cause' : API_DIMENSION_OF_GROUPING[asked],
        )),
    enabled: asked !== undefined,
    placeholderData: keepPreviousData,
  })
  const causes: Readonly<Record<string, string>> = { ...logs.causes, '': logs.reasons.client_gone }
  const by = asked === undefined || asked === 'cause' || asked === 'refusals' ? undefined : asked
  const shown: ChartData | undefined =
    asked === undefined
      ? largestSeriesData(usage, 'failed', texts.other)
      : data &&
        callCountSeriesData(data, (key, label) => (asked === 'cause' ? (causes[key] ?? key) : label), {
          otherLabel: texts.other,
          isFilter: by !== undefined,
        })
  // The gateway cannot group failed calls by every dimension; the page's own grouping is offered in any case.
  const own = ERROR_GROUPINGS.some((one) => one === grouping)
    ? undefined
    : { value: grouping, label: texts.groupings[grouping] }
  const options = errorGroupings(scope).map((value) => ({ value, label: texts.errorGroupings[value] }))
  return (
    <ChartFigure
      title={texts.errors}
      step={usage.step}
      linkOf={linkOf}
      data={shown ?? { series: [], rows: [] }}
      {...counted}
      onFilter={(one) => onFilter(one, by)}
    >
      <Select
        size="xs"
        aria-label={texts.errorsBy}
        allowDeselect={false}
        data={own === undefined ? options : [own, ...options]}
        value={chosen ?? grouping}
        onChange={(errors) => onSearch({ errors: errors === grouping ? undefined : (errors ?? undefined) })}
      />
    </ChartFigure>
  )
}

/** Functions that format numbers of calls or tokens. */
function useCounted() {
  const { tag } = useTexts()
  const { count } = useFormatters()
  const short = new Intl.NumberFormat(tag, { notation: 'compact', maximumFractionDigits: 1 })
  return { format: count, axis: (value: number) => short.format(value), areWhole: true }
}
