import { Button, Menu, Select, TextInput } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { useState } from 'react'
import type { Scope } from '../../api/calls.ts'
import type { SearchState } from '../../components/search-state.ts'
import { Toolbar } from '../../components/toolbar.tsx'
import { TypedFilter } from '../../components/typed-filter.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import { type Grouping, groupingOf, groupings, PERIODS, periodOf } from './usage-filter.ts'

/** Period, grouping and filters of sums, which are kept in the address. */
export function UsageFilters({
  scope,
  search,
  onChange,
}: {
  readonly scope: Scope
  readonly search: SearchState
  readonly onChange: (changes: SearchState) => void
}) {
  const { usage, common } = useTexts()
  const [added, setAdded] = useState<readonly Grouping[]>([])
  const all = groupings(scope)
  const open = all.filter((name) => added.includes(name) || (search[name] ?? '') !== '')
  const period = periodOf(search)
  return (
    <Toolbar>
      <Select
        label={usage.period}
        allowDeselect={false}
        data={PERIODS.map((value) => ({ value, label: usage.periods[value] }))}
        value={period}
        onChange={(value) => onChange({ period: value ?? undefined, from: undefined, to: undefined })}
      />
      {period === 'custom' &&
        (['from', 'to'] as const).map((name) => (
          <TextInput
            key={name}
            type="date"
            label={usage[name]}
            value={search[name] ?? ''}
            onChange={({ currentTarget: { value } }) => onChange({ [name]: value })}
          />
        ))}
      <Select
        label={usage.groupBy}
        allowDeselect={false}
        data={all.map((value) => ({ value, label: usage.groupings[value] }))}
        value={groupingOf(search, scope)}
        onChange={(by) => onChange({ by: by ?? undefined })}
      />
      {open.map((name) => (
        <TypedFilter
          key={name}
          label={usage.groupings[name]}
          value={search[name] ?? ''}
          onChange={(value) => onChange({ [name]: value })}
        />
      ))}
      {open.length < all.length && (
        <Menu>
          <Menu.Target>
            <Button variant="default" leftSection={<IconPlus size={16} aria-hidden />}>
              {usage.addFilter}
            </Button>
          </Menu.Target>
          <Menu.Dropdown>
            {all
              .filter((name) => !open.includes(name))
              .map((name) => (
                <Menu.Item key={name} onClick={() => setAdded([...added, name])}>
                  {usage.groupings[name]}
                </Menu.Item>
              ))}
          </Menu.Dropdown>
        </Menu>
      )}
      {open.length > 0 && (
        <Button
          variant="subtle"
          onClick={() => {
            setAdded([])
            onChange(Object.fromEntries(all.map((name) => [name, undefined])))
          }}
        >
          {common.clearFilters}
        </Button>
      )}
    </Toolbar>
  )
}
