import { Button, Menu } from '@mantine/core'
import { IconColumns3 } from '@tabler/icons-react'
import { useCallColumns } from '../../components/call-table.tsx'
import { setPreferences, usePreferences } from '../../components/preferences.ts'
import { useTexts } from '../../locales/use-texts.tsx'

const OF_ADMINS: ReadonlySet<string> = new Set(['user', 'channel'])
/** The column that opens the row, which cannot be hidden. */
const ALWAYS = 'time'

/** A menu to choose the columns of calls. */
export function ColumnsMenu({ isAdmin }: { readonly isAdmin: boolean }) {
  const { logs } = useTexts()
  const { hiddenColumns } = usePreferences()
  const columns = useCallColumns().filter(({ key }) => key !== ALWAYS && (isAdmin || !OF_ADMINS.has(key)))
  const toggle = (key: string): void =>
    setPreferences({
      hiddenColumns: hiddenColumns.includes(key)
        ? hiddenColumns.filter((one) => one !== key)
        : [...hiddenColumns, key],
    })
  return (
    <Menu closeOnItemClick={false} position="bottom-end" width={200}>
      <Menu.Target>
        <Button variant="default" leftSection={<IconColumns3 size={16} aria-hidden />}>
          {logs.columns}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {columns.map(({ key, label }) => (
          <Menu.CheckboxItem key={key} checked={!hiddenColumns.includes(key)} onChange={() => toggle(key)}>
            {label}
          </Menu.CheckboxItem>
        ))}
      </Menu.Dropdown>
    </Menu>
  )
}
