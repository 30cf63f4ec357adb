import { Button, Group, Modal } from '@mantine/core'
import { useTexts } from '../locales/use-texts.tsx'
import { RefusalMessage } from './refusal-message.tsx'
import { useAction } from './use-action.ts'

/** Asks for confirmation before something is lost. */
export function ConfirmDialog({
  opened,
  title,
  text,
  label,
  onConfirm,
  onClose,
}: {
  readonly opened: boolean
  readonly title: string
  readonly text: string
  /** The label of the button, a verb. */
  readonly label: string
  readonly onConfirm: () => Promise<void>
  readonly onClose: () => void
}) {
  const texts = useTexts()
  const confirming = useAction(async () => {
    await onConfirm()
    onClose()
  })
  return (
    <Modal
      opened={opened}
      onClose={onClose}
      title={title}
      closeButtonProps={{ 'aria-label': texts.common.close }}
    >
      <p>{text}</p>
      <RefusalMessage error={confirming.error} />
      <Group justify="flex-end" mt="lg" gap="sm">
        <Button variant="default" data-autofocus onClick={onClose}>
          {texts.common.cancel}
        </Button>
        <Button color="red" loading={confirming.isRunning} onClick={() => void confirming.run()}>
          {label}
        </Button>
      </Group>
    </Modal>
  )
}
