import { Button, Group, Modal } from '@mantine/core'
import { useBlocker } from '@tanstack/react-router'
import { useTexts } from '../locales/use-texts.tsx'
import { mayKeepForm } from './session-recovery.ts'

/**
 * Asks for confirmation before the user leaves a page with a changed form. When the tab is closed, the
 * browser asks.
 */
export function ConfirmLeave({ isChanged }: { readonly isChanged: boolean }) {
  const blocker = useBlocker({
    shouldBlockFn: ({ current, next }) =>
      isChanged && (current.pathname !== next.pathname || tabOf(current.search) !== tabOf(next.search)),
    enableBeforeUnload: () => isChanged && mayKeepForm(),
    withResolver: true,
  })
  return (
    <LeaveQuestion
      opened={blocker.status === 'blocked'}
      onStay={() => blocker.reset?.()}
      onLeave={() => blocker.proceed?.()}
    />
  )
}

/** Asks whether to leave a changed form. */
export function LeaveQuestion({
  opened,
  onStay,
  onLeave,
}: {
  readonly opened: boolean
  readonly onStay: () => void
  readonly onLeave: () => void
}) {
  const { leave, common } = useTexts()
  return (
    <Modal
      opened={opened}
      onClose={onStay}
      title={leave.title}
      closeButtonProps={{ 'aria-label': common.close }}
    >
      <p>{common.leaveForm}</p>
      <Group justify="flex-end" mt="lg" gap="sm">
        <Button variant="default" data-autofocus onClick={onStay}>
          {leave.stay}
        </Button>
        <Button color="red" onClick={onLeave}>
          {leave.leave}
        </Button>
      </Group>
    </Modal>
  )
}

// A change of the page's tab removes its form; changes of other parameters of the page's URL keep the form.
function tabOf(search: object): unknown {
  return (search as Readonly<Record<string, unknown>>)['tab']
}
