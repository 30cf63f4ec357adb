import { Select, TextInput } from '@mantine/core'
import { useTexts } from '../locales/use-texts.tsx'
import { dayRangeOf, type Period, periodFromUrl, timeRangeOf } from './period.ts'
import { usePreferences } from './preferences.ts'
import type { SearchState } from './search-state.ts'

const DAY_LENGTH = '2026-11-01'.length

/**
 * A filter for the period of calls or sums, which is stored in the page's URL. A custom period has two more
 * fields for its days.
 */
export function PeriodFilter<Name extends Period>({
  periods,
  otherwise,
  search,
  onChange,
}: {
  readonly periods: readonly Name[]
  /** The period to use if the page's URL has none. */
  readonly otherwise: Name
  readonly search: SearchState
  readonly onChange: (changes: SearchState) => void
}) {
  const { period: texts } = useTexts()
  const { timeZone, language } = usePreferences()
  const period = periodFromUrl(periods, search, otherwise)
  const choose = (next: string | null): void => {
    const now = Date.now() / 1000
    const noDays = { from: undefined, to: undefined }
    // A custom period begins with the days of the period that was chosen before.
    const days =
      next === 'custom'
        ? dayRangeOf(timeRangeOf(period, search, now, timeZone, language), now, timeZone)
        : noDays
    onChange({ period: next ?? undefined, ...days })
  }
  return (
    <>
      <Select
        label={texts.label}
        allowDeselect={false}
        maxDropdownHeight={400}
        data={periods.map((value) => ({ value, label: texts.names[value] }))}
        value={period}
        onChange={choose}
      />
      {period === 'custom' &&
        (['from', 'to'] as const).map((name) => (
          <TextInput
            key={name}
            type="date"
            label={texts[name]}
            value={search[name]?.slice(0, DAY_LENGTH) ?? ''}
            onChange={({ currentTarget: { value } }) => onChange({ [name]: value })}
          />
        ))}
    </>
  )
}
