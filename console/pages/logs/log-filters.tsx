import { Button, Select } from '@mantine/core'
import type { SearchState } from '../../parts/search-state.ts'
import { Toolbar } from '../../parts/toolbar.tsx'
import { TypedFilter } from '../../parts/typed-filter.tsx'
import { useTexts } from '../../texts/use-texts.tsx'
import { isFiltered, PERIODS, periodOf, TYPED_FILTERS } from './log-filter.ts'

const OF_ADMINS: ReadonlySet<string> = new Set(['user', 'channel'])

/** The filters of calls, kept in the address. */
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
        <Button
          variant="subtle"
          onClick={() => onChange(Object.fromEntries(TYPED_FILTERS.map((name) => [name, undefined])))}
        >
          {common.clearFilters}
        </Button>
      )}
    </Toolbar>
  )
}
