import { Button, Group } from '@mantine/core'
import { useTexts } from '../locales/use-texts.tsx'
import { keepFocus } from './keep-focus.ts'

/** The buttons at the end of a form in a dialog. */
export function FormActions({
  label,
  isRunning,
  onCancel,
}: {
  /** Text of the button that submits. */
  readonly label: string
  readonly isRunning: boolean
  readonly onCancel: () => void
}) {
  const { common } = useTexts()
  return (
    <Group justify="flex-end" mt="lg" gap="sm">
      <Button variant="default" onClick={onCancel}>
        {common.cancel}
      </Button>
      <Button type="submit" onMouseDown={keepFocus} loading={isRunning}>
        {label}
      </Button>
    </Group>
  )
}
