import { ActionIcon, Group } from '@mantine/core'
import { IconBan, IconCircleCheck, IconEye, IconEyeOff, IconTrash } from '@tabler/icons-react'
import type { ApiKey } from '../../api/keys.ts'
import { useTexts } from '../../locales/use-texts.tsx'

const ENABLED = 1

export function KeyActions({
  status,
  isRevealed,
  onReveal,
  onSwitch,
  onDelete,
}: Pick<ApiKey, 'status'> & {
  readonly isRevealed: boolean
  readonly onReveal: () => void
  readonly onSwitch: (isEnabled: boolean) => void
  readonly onDelete: () => void
}) {
  const { keys, common } = useTexts()
  const isEnabled = status === ENABLED
  const reveal = isRevealed ? keys.hide : keys.reveal
  const toggle = isEnabled ? common.disable : common.enable
  return (
    <Group gap={0} justify="flex-end" wrap="nowrap">
      <ActionIcon aria-label={reveal} title={reveal} onClick={onReveal}>
        {isRevealed ? <IconEyeOff size={16} /> : <IconEye size={16} />}
      </ActionIcon>
      <ActionIcon aria-label={toggle} title={toggle} onClick={() => onSwitch(!isEnabled)}>
        {isEnabled ? <IconBan size={16} /> : <IconCircleCheck size={16} />}
      </ActionIcon>
      <ActionIcon aria-label={common.delete} title={common.delete} onClick={onDelete}>
        <IconTrash size={16} />
      </ActionIcon>
    </Group>
  )
}
