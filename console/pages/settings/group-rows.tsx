import { ActionIcon, Button, Checkbox, TextInput } from '@mantine/core'
import { IconPlus, IconTrash } from '@tabler/icons-react'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './group-rows.module.css'
import type { GroupFormValues } from './groups.ts'

const DEFAULT = 'default'

export function GroupRows({
  groups,
  onChange,
}: {
  readonly groups: readonly GroupFormValues[]
  readonly onChange: (groups: readonly GroupFormValues[]) => void
}) {
  const { settings } = useTexts()
  const change = (index: number, changes: Partial<GroupFormValues>): void =>
    onChange(groups.map((group, at) => (at === index ? { ...group, ...changes } : group)))
  return (
    <>
      {groups.map((group, index) => (
        <div key={index} className={classes['row']}>
          <TextInput
            aria-label={settings.groupName}
            value={group.name}
            disabled={group.name === DEFAULT}
            onChange={({ currentTarget: { value } }) => change(index, { name: value })}
          />
          <TextInput
            aria-label={`${settings.groupRatio} ${group.name}`}
            inputMode="decimal"
            leftSection="×"
            value={group.ratio}
            error={!/^\d+(?:\.\d+)?$/.test(group.ratio.trim()) && settings.notANumber}
            onChange={({ currentTarget: { value } }) => change(index, { ratio: value })}
          />
          <Checkbox
            label={settings.groupOpen}
            checked={group.isOpen}
            onChange={({ currentTarget: { checked } }) => change(index, { isOpen: checked })}
          />
          <ActionIcon
            aria-label={settings.removeGroup(group.name)}
            disabled={group.name === DEFAULT}
            onClick={() => onChange(groups.filter((_, at) => at !== index))}
          >
            <IconTrash size={16} />
          </ActionIcon>
        </div>
      ))}
      <Button
        variant="default"
        style={{ alignSelf: 'start' }}
        leftSection={<IconPlus size={16} aria-hidden />}
        onClick={() => onChange([...groups, { name: '', ratio: '1', isOpen: true }])}
      >
        {settings.addGroup}
      </Button>
    </>
  )
}
