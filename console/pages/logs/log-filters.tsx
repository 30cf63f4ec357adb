import { Button, Select } from '@mantine/core'
import { FAILURE_CAUSES } from '../../../src/domain/failure-cause.ts'
import type { SearchState } from '../../components/search-state.ts'
import { Toolbar } from '../../components/toolbar.tsx'
import { TypedFilter } from '../../components/typed-filter.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import {
  causeOf,
  isFiltered,
  NO_FILTERS,
  PERIODS,
  periodOf,
  STATUS_NAMES,
  statusOf,
  TYPED_FILTERS,
} from './log-filter.ts'

const OF_ADMINS: ReadonlySet<string> = new Set(['user', 'channel'])

/** The filters of calls, which are kept in the address. */
export function LogFilters({
  isAdmin,
  search,
  onChange,
}: {
  readonly isAdmin: boolean
  readonly search: SearchState
  readonly onChange: (changes: SearchState) => void
}) {
  const { logs, common } = useTexts()
  const labels = { model: logs.model, key: logs.key, user: logs.user, channel: logs.channel, id: logs.callId }
  return (
    <Toolbar>
      <Select
        label={logs.period}
        allowDeselect={false}
        data={PERIODS.map((period) => ({ value: period, label: logs.periods[period] }))}
        value={periodOf(search)}
        onChange={(period) => onChange({ period: period ?? undefined })}
      />
      <Select
        label={logs.status}
        placeholder={logs.anyStatus}
        clearable
        data={STATUS_NAMES.map((status) => ({ value: status, label: logs.reasons[status] }))}
        value={statusOf(search) ?? null}
        onChange={(status) => onChange({ status: status ?? undefined })}
      />
      <Select
        label={logs.cause}
        placeholder={logs.anyStatus}
        clearable
        data={FAILURE_CAUSES.map((cause) => ({ value: cause, label: logs.causes[cause] }))}
        value={causeOf(search) ?? null}
        onChange={(cause) => onChange({ cause: cause ?? undefined })}
      />
      {TYPED_FILTERS.filter((name) => isAdmin || !OF_ADMINS.has(name)).map((name, index) => (
        <TypedFilter
          key={name}
          label={labels[name]}
          value={search[name] ?? ''}
          isFirst={index === 0}
          onChange={(text) => onChange({ [name]: text })}
        />
      ))}
      {isFiltered(search) && (
        <Button variant="subtle" onClick={() => onChange(NO_FILTERS)}>
          {common.clearFilters}
        </Button>
      )}
    </Toolbar>
  )
}
