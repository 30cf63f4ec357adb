import { Button, Menu, Select } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { useState } from 'react'
import type { CallScope } from '../../api/calls.ts'
import { type TimeRange, USAGE_PERIODS } from '../../components/period.ts'
import { PeriodFilter } from '../../components/period-filter.tsx'
import type { SearchState } from '../../components/search-state.ts'
import { Toolbar } from '../../components/toolbar.tsx'
import { useTierNames } from '../../components/use-tier-names.ts'
import { ValueFilter } from '../../components/value-filter.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import {
  DEFAULT_PERIOD,
  API_DIMENSION_OF_GROUPING,
  type Grouping,
  groupingOf,
  groupingsForScope,
} from './usage-filter.ts'

/** Period, grouping and filters of sums, which are stored in the page's URL. */
export function UsageFilters({
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
  const { usage, common } = useTexts()
  const [added, setAdded] = useState<readonly Grouping[]>([])
  const { nameOf } = useTierNames()
  const all = groupingsForScope(scope)
  const open = all.filter((name) => added.includes(name) || (search[name] ?? '') !== '')
  return (
    <Toolbar>
      <PeriodFilter periods={USAGE_PERIODS} otherwise={DEFAULT_PERIOD} search={search} onChange={onChange} />
      <Select
        label={usage.groupBy}
        allowDeselect={false}
        data={all.map((value) => ({ value, label: usage.groupings[value] }))}
        value={groupingOf(search, scope)}
        onChange={(by) => onChange({ by: by ?? undefined })}
      />
      {open.map((name) => (
        <ValueFilter
          key={name}
          label={usage.groupings[name]}
          field={API_DIMENSION_OF_GROUPING[name]}
          scope={scope}
          span={span}
          value={search[name]}
          {...(name === 'tier' && { wordOf: nameOf })}
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
