import { Select, TextInput } from '@mantine/core'
import { useEffect, useState } from 'react'
import { useTexts } from '../locales/use-texts.tsx'
import { dayRangeOf, type Period, periodFromUrl, timeRangeOf } from './period.ts'
import { usePreferences } from './preferences.ts'
import type { SearchState } from './search-state.ts'

const DAY_LENGTH = '2026-11-01'.length
/** No call was earlier. */
const FIRST_DAY = '1970-01-01'

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
          <DayInput
            key={name}
            label={texts[name]}
            value={search[name]?.slice(0, DAY_LENGTH) ?? ''}
            onDay={(day) => onChange({ [name]: day })}
          />
        ))}
    </>
  )
}

/** A field for a day. While its year is typed, it has days of the first centuries, which are passed over. */
function DayInput({
  label,
  value,
  onDay,
}: {
  readonly label: string
  readonly value: string
  readonly onDay: (day: string) => void
}) {
  const [typed, setTyped] = useState(value)
  useEffect(() => setTyped(value), [value])
  return (
    <TextInput
      type="date"
      label={label}
      value={typed}
      onChange={({ currentTarget: { value: day } }) => {
        setTyped(day)
        if (day === '' || day >= FIRST_DAY) onDay(day)
      }}
    />
  )
}
