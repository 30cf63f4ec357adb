import { Button, MultiSelect, Select } from '@mantine/core'
import { CACHE_BREAKS } from '../../../src/domain/cache-break.ts'
import type { CallScope } from '../../api/calls.ts'
import { LOG_PERIODS, type TimeRange } from '../../components/period.ts'
import { PeriodFilter } from '../../components/period-filter.tsx'
import type { SearchState } from '../../components/search-state.ts'
import { valueToUrlText, valuesToUrlText, valuesOfUrlText } from '../../components/url-values.ts'
import { CollapsibleToolbar } from '../../components/toolbar.tsx'
import { TextFilter } from '../../components/text-filter.tsx'
import { useTierNames } from '../../components/use-tier-names.ts'
import { ValueFilter } from '../../components/value-filter.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import {
  countFilters,
  DEFAULT_PERIOD,
  isFilterApplicable,
  isLogFiltered,
  FILTERS_REMOVED,
  type CallEndStatus,
  STATUS_NAMES,
  statusFromUrl,
  SUGGESTED_VALUE_FILTERS,
} from './log-filter.ts'

const OF_ADMINS: ReadonlySet<string> = new Set(['user', 'channel'])

/** Filters without an input; only links in the charts of usage set them. */
const OF_CHARTS: ReadonlySet<string> = new Set(['group', 'tier', 'region'])

/** The filters of calls, which are stored in the page's URL. */
export function LogFilters({
  scope,
  span,
  search,
  onChange,
}: {
  readonly scope: CallScope
  readonly span: TimeRange
  readonly search: SearchState
  readonly onChange: (changes: SearchState) => void
}) {
  const { logs, common } = useTexts()
  const causes: Readonly<Record<string, string>> = logs.causes
  const refusals: Readonly<Record<string, string>> = logs.refusals
  const { nameOf } = useTierNames()
  const wordsOf: Partial<Record<string, (value: string) => string>> = {
    cause: (cause) => causes[cause] ?? cause,
    code: (code) => refusals[code] ?? code,
    service_tier: nameOf,
  }
  const status = statusFromUrl(search)
  const offered = SUGGESTED_VALUE_FILTERS.filter(
    ({ name }) =>
      isFilterApplicable(status, name) &&
      (scope === 'all' || !OF_ADMINS.has(name)) &&
      (!OF_CHARTS.has(name) || (search[name] ?? '') !== ''),
  )
  return (
    <CollapsibleToolbar set={countFilters(search)}>
      <PeriodFilter periods={LOG_PERIODS} otherwise={DEFAULT_PERIOD} search={search} onChange={onChange} />
      <Select
        label={logs.status}
        placeholder={common.any}
        clearable
        data={STATUS_NAMES.map((status) => ({ value: status, label: logs.reasons[status] }))}
        value={status ?? null}
        onChange={(chosen) => onChange({ status: chosen ?? undefined })}
      />
      {offered.map(({ name, field }, index) => (
        <ValueFilter
          key={name}
          label={logs[name]}
          field={field}
          scope={scope}
          span={span}
          value={search[name]}
          isFirst={index === 0}
          {...(wordsOf[field] && { wordOf: wordsOf[field] })}
          onChange={(text) => onChange({ [name]: text })}
        />
      ))}
      <TextFilter
        label={logs.callId}
        value={search['id'] ?? ''}
        onChange={(text) => onChange({ id: text })}
      />
      <LinkedFilters status={status} search={search} onChange={onChange} />
      {isLogFiltered(search) && (
        <Button variant="subtle" onClick={() => onChange(FILTERS_REMOVED)}>
          {common.clearFilters}
        </Button>
      )}
    </CollapsibleToolbar>
  )
}

/** The filters by session, batch and the reason of a cache break; each is shown only if a link has set it. */
function LinkedFilters({
  status,
  search,
  onChange,
}: {
  readonly status: CallEndStatus | undefined
  readonly search: SearchState
  readonly onChange: (changes: SearchState) => void
}) {
  const { batches, caches, sessions, common } = useTexts()
  const isShown = (name: string): boolean => isFilterApplicable(status, name) && (search[name] ?? '') !== ''
  return (
    <>
      {isShown('session') && (
        <TextFilter
          label={sessions.session}
          value={valuesOfUrlText(search['session']).join(',')}
          onChange={(text) => onChange({ session: valueToUrlText(text) })}
        />
      )}
      {isShown('batch') && (
        <TextFilter
          label={batches.batch}
          value={search['batch'] ?? ''}
          onChange={(text) => onChange({ batch: text })}
        />
      )}
      {isShown('break') && (
        <MultiSelect
          label={caches.broke}
          clearable
          clearButtonProps={{ 'aria-label': common.clearFilters }}
          hidePickedOptions
          data={CACHE_BREAKS.map((reason) => ({ value: reason, label: caches.reasons[reason] }))}
          value={[...valuesOfUrlText(search['break'])]}
          onChange={(reasons) => onChange({ break: valuesToUrlText(reasons) })}
        />
      )}
    </>
  )
}
